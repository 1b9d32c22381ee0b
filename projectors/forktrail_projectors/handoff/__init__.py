"""The handoff packet: made from a run, and checked with nothing but its file."""
