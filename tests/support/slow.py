"""Statements that keep the engine busy: one that it stops when it is told, and one over which it doesn't listen."""

LISTENS = "UNWIND range(1, 1000000) AS a UNWIND range(1, 1000000) AS b RETURN sum(a * b % 7) AS n"
# Computed while the statement is planned, when the engine looks neither at the time nor at an interrupt: about
# 1.5 ns a square of `size`, 4 s at 50,000 and two minutes at 300,000.
DEAF = "RETURN levenshtein(repeat('a', {size}), repeat('b', {size})) AS n"
