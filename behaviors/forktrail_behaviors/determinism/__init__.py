"""Keeps a behavior a function of what it is given: a check of its code, a guard while it runs, a digest of its code."""
