"""Models behind HTTP: two protocols, one way to send, and the file that says which model is which."""
