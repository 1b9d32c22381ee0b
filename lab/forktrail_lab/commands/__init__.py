"""One module per command of `forktrail`; each is thin: it reads arguments, calls the library, prints."""
