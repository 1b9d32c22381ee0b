"""The graph: its tables, the protocol rules and queries see, and the two that implement it."""
