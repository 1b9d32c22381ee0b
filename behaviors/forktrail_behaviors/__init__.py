"""Reacting to the graph: durable executions on the log."""
