"""Ways to damage a graph's files."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import NamedTuple

PAGE_BYTES = 4_096
_GARBAGE_BYTES_MAX = 3 * PAGE_BYTES

Harm = Callable[[Path, Path, Random], None]


class Damage(NamedTuple):
    """One way, and how often to draw it.

    Attributes:
        harm: takes the graph's file, an older copy of it, and chance.
    """

    name: str
    harm: Harm
    times: int


def wal_of(graph: Path) -> Path:
    """The write-ahead log beside a graph."""
    return graph.with_name(graph.name + ".wal")


def truncate(path: Path, chance: Random) -> None:
    """Cut a file at a random point."""
    os.truncate(path, chance.randrange(path.stat().st_size))


def flip(path: Path, chance: Random) -> None:
    """Flip one bit of a file."""
    with path.open("r+b") as file:
        place = chance.randrange(path.stat().st_size)
        file.seek(place)
        byte = file.read(1)[0]
        file.seek(place)
        file.write(bytes([byte ^ 1 << chance.randrange(8)]))


def blank_page(path: Path, chance: Random) -> None:
    """Fill one page with zeros, as a disk may that lost a write."""
    with path.open("r+b") as file:
        file.seek(chance.randrange(path.stat().st_size // PAGE_BYTES) * PAGE_BYTES)
        file.write(bytes(PAGE_BYTES))


def append_garbage(path: Path, chance: Random) -> None:
    """Let a file go on with bytes of chance."""
    with path.open("ab") as file:
        file.write(chance.randbytes(1 + chance.randrange(_GARBAGE_BYTES_MAX)))


def _of_graph(harm: Callable[[Path, Random], None]) -> Harm:
    return lambda graph, old, chance: harm(graph, chance)


def _of_wal(harm: Callable[[Path, Random], None]) -> Harm:
    return lambda graph, old, chance: harm(wal_of(graph), chance)


def _lose_wal(graph: Path, old: Path, chance: Random) -> None:
    wal_of(graph).unlink()


def _lose_graph(graph: Path, old: Path, chance: Random) -> None:
    graph.unlink()


def _empty_graph(graph: Path, old: Path, chance: Random) -> None:
    os.truncate(graph, 0)


def _empty_wal(graph: Path, old: Path, chance: Random) -> None:
    os.truncate(wal_of(graph), 0)


def _restore_older(graph: Path, old: Path, chance: Random) -> None:
    """A backup that is put back without a thought of the write-ahead log."""
    shutil.copyfile(old, graph)


def _restore_older_alone(graph: Path, old: Path, chance: Random) -> None:
    shutil.copyfile(old, graph)
    wal_of(graph).unlink()


DAMAGES = (
    Damage("graph cut", _of_graph(truncate), 3),
    Damage("write-ahead log cut", _of_wal(truncate), 3),
    Damage("bit of the graph flipped", _of_graph(flip), 5),
    Damage("bit of the write-ahead log flipped", _of_wal(flip), 3),
    Damage("page of the graph zeroed", _of_graph(blank_page), 4),
    Damage("garbage after the graph", _of_graph(append_garbage), 1),
    Damage("garbage after the write-ahead log", _of_wal(append_garbage), 1),
    Damage("write-ahead log lost", _lose_wal, 1),
    Damage("graph lost beside its write-ahead log", _lose_graph, 1),
    Damage("graph empty", _empty_graph, 1),
    Damage("write-ahead log empty", _empty_wal, 1),
    Damage("older graph under a newer write-ahead log", _restore_older, 1),
    Damage("older graph put back", _restore_older_alone, 1),
)
