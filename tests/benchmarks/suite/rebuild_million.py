"""Rebuild of a run of a million events; left out at quick sizes."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.figures import Figure, Reading
from benchmarks.logs import stored_stream
from benchmarks.stage import Stage
from benchmarks.suite.rebuild import rebuild
from benchmarks.workload import BULK

FIGURES = (
    Figure("rebuild_million", "s", "low", aim=20),
    Figure("rebuild_million.peak", "MiB", "low"),
)
_EVENTS = 1_000_000


def prepare(stage: Stage) -> None:
    """Write the log."""
    if not stage.quick:
        stored_stream(stage, BULK, _EVENTS)


def measure(stage: Stage) -> Iterator[Reading]:
    """Rebuild once."""
    if not stage.quick:
        yield from rebuild(stage, "rebuild_million", _EVENTS)
