"""The test registry: its file, its shape, what its parts say of each other, and whether the graph agrees with it."""
