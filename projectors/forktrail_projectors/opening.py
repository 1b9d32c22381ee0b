"""Notes that a graph is being opened, since over a damaged file the engine may end the process instead of raising.

A file beside the graph has one byte for each process in a row that began to open it and didn't come to an end of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

# One may have been killed by chance.
DEATHS_MAX = 2


def deaths(graph: Path) -> int:
    """How many processes in a row died while they opened a graph."""
    try:
        return _note(graph).stat().st_size
    except FileNotFoundError:
        return 0


@contextmanager
def noted(graph: Path) -> Iterator[None]:
    """Note for the length of a `with` block that this process, which holds the graph's lock, opens and checks it."""
    with suppress(OSError), _note(graph).open("ab") as note:  # a full disk doesn't keep a graph from being read
        note.write(b".")
    try:
        yield
    finally:
        forget(graph)


def forget(graph: Path) -> None:
    """Begin to count anew."""
    _note(graph).unlink(missing_ok=True)


def _note(graph: Path) -> Path:
    return graph.with_name(f"{graph.name}.opening")
