"""Writing the log: the client other services install, keys, runs and blobs."""
