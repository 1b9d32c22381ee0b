"""Graphs that were set aside: kept, as one may be the only witness of lost records, until somebody prunes them."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from forktrail_projectors.graph.engine import database_files
from forktrail_schemas.settings import Settings


@dataclass(frozen=True)
class Aside:
    """A graph that was set aside.

    Attributes:
        path: its database file, which may be gone where only what lies beside it is left.
        files: everything of it.
        size: of all its files, in bytes.
    """

    path: Path
    files: tuple[Path, ...]
    size: int


def set_aside(settings: Settings, run: str) -> list[Aside]:
    """The graphs of a run that were set aside, the oldest first."""
    names = {_graph_of(file.name) for file in settings.graphs_dir.glob(f"{run}.aside-*")}
    return [_aside(settings.graphs_dir / name) for name in sorted(names)]


def prune(graphs: list[Aside]) -> int:
    """Delete graphs that were set aside; returns how many bytes that frees.

    One that another process deletes meanwhile is no error.
    """
    freed = 0
    for file in (file for graph in graphs for file in graph.files):
        with suppress(FileNotFoundError):
            size = file.stat().st_size
            file.unlink()
            freed += size
    return freed


def _graph_of(name: str) -> str:
    """The database file's name, of which `name` may be that of a file beside it: `run.aside-1.wal`."""
    run, moment = name.split(".")[:2]
    return f"{run}.{moment}"


def _aside(path: Path) -> Aside:
    files = database_files(path)
    return Aside(path, files, sum(file.stat().st_size for file in files))
