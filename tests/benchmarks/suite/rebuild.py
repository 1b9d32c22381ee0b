"""Rebuild: a run's graph made anew on disk from the log: read, fold, bulk load, digest check, and put in place.

The rebuild itself holds the digest of its rows against the one that the fold kept, within the time stated. The peak is
that of the whole process, Python, packages and the engine's buffer pool included.
"""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.checks import check_cypher, check_digest
from benchmarks.figures import Figure, Reading, events_of
from benchmarks.logs import stored_stream
from benchmarks.process_memory import MEBIBYTE, peak_bytes
from benchmarks.stage import Stage
from benchmarks.workload import BULK
from forktrail_projectors.projection import open_projection

FIGURES = (
    Figure("rebuild.100k", "s", "low", aim=2.5),
    Figure("rebuild.100k.peak", "MiB", "low"),
)


def prepare(stage: Stage) -> None:
    """Write the log."""
    stored_stream(stage, BULK, _events(stage))


def measure(stage: Stage) -> Iterator[Reading]:
    """Rebuild once."""
    return rebuild(stage, "rebuild.100k", _events(stage))


def rebuild(stage: Stage, figure: str, events: int) -> Iterator[Reading]:
    """Rebuild the graph of the bulk stream with so many events, and check it against the stream."""
    log = stored_stream(stage, BULK, events)
    with stage.timed(figure) as clock:
        opening = open_projection(stage.settings, log.run, rebuild=True)
        projection = opening.__enter__()
    peak = peak_bytes()
    try:
        position = projection.position()
        check_digest(stage, log, position.next_offset, position.state_digest)
        check_cypher(stage, log, projection.graph)
    finally:
        opening.__exit__(None, None, None)
        _forget_set_aside(stage, log.run)
    yield Reading(figure, clock.seconds, events_of(events))
    yield Reading(f"{figure}.peak", peak / MEBIBYTE, events_of(events))


def _forget_set_aside(stage: Stage, run: str) -> None:
    """Free the disk of the graphs that this one replaced."""
    for file in stage.settings.graphs_dir.glob(f"{run}.aside-*"):
        file.unlink()


def _events(stage: Stage) -> int:
    return stage.size(100_000, 10_000)
