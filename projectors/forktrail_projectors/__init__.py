"""Folding the log: reader, rules, graph, queries and what is decided from them."""
