"""Chaos: real processes are killed, starved and cut off under load, and a checker looks for what got lost."""
