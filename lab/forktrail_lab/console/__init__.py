"""What commands share: arguments, output, a run as a command meets it, and things found by how people name them."""
