"""Memory of a graph in memory: by how much the process's resident set grows with a fold of the log, per event.

Packages are imported and the start of the log is folded before the first look, so that what every process has doesn't
count.
"""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.checks import check_digest
from benchmarks.figures import Figure, Reading, events_of
from benchmarks.logs import StoredLog, stored_stream
from benchmarks.process_memory import settled_bytes
from benchmarks.stage import Stage
from benchmarks.workload import BULK
from forktrail_projectors.projection import fold_in_memory

FIGURES = (Figure("memory_fold", "bytes/event", "low", aim=1_024),)
_WARM_UP_EVENTS = 1_000


def prepare(stage: Stage) -> None:
    """Write the log."""
    _log(stage)


def measure(stage: Stage) -> Iterator[Reading]:
    """Fold once, and keep the graph."""
    log = _log(stage)
    fold_in_memory(stage.settings, log.run, _WARM_UP_EVENTS)
    before = settled_bytes()
    with stage.timed("memory_fold"):
        graph, projector = fold_in_memory(stage.settings, log.run)
    growth = settled_bytes() - before
    check_digest(stage, log, projector.cursor.next_offset, projector.state_digest)
    graph.close()
    yield Reading("memory_fold", growth / log.events, events_of(log.events))


def _log(stage: Stage) -> StoredLog:
    return stored_stream(stage, BULK, stage.size(100_000, 10_000))
