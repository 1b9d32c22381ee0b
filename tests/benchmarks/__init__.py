"""Benchmarks: `make bench` runs them and prints one table. README.md beside this file says how to read it."""
