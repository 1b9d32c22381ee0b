"""Memory of an open graph on disk: by how much the process's resident set grows by opening and asking it, per event.

Packages are imported and the start of the log is folded in memory before the first look. What the engine takes for any
database, however small, is in the figure, and stated apart: the growth by opening a graph of 1,000 events.
"""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.figures import Figure, Reading, events_of
from benchmarks.graphs import make_graph
from benchmarks.logs import StoredLog, stored_stream
from benchmarks.process_memory import MEBIBYTE, settled_bytes
from benchmarks.stage import Stage
from benchmarks.workload import BULK
from forktrail_projectors.projection import fold_in_memory, open_projection

FIGURES = (
    Figure("memory_disk", "bytes/event", "low", aim=1_024),
    Figure("memory_disk.engine", "MiB", "low"),
)
_SMALL_EVENTS = 1_000
_SCAN = "MATCH (e:Event)-[:PRODUCED]->(r:Report) WHERE e.verdict = 'valid' AND r.outcome <> '' RETURN count(*)"


def prepare(stage: Stage) -> None:
    """Fold both graphs."""
    make_graph(stage, _log(stage))
    make_graph(stage, _small_log(stage))


def measure(stage: Stage) -> Iterator[Reading]:
    """Open each graph and scan events, reports and the relations between them."""
    log, small_log = _log(stage), _small_log(stage)
    fold_in_memory(stage.settings, log.run, _SMALL_EVENTS)
    before = settled_bytes()
    engine = _open_and_scan(stage, small_log) - before
    growth = _open_and_scan(stage, log) - before
    yield Reading("memory_disk", growth / log.events, events_of(log.events))
    yield Reading("memory_disk.engine", engine / MEBIBYTE, events_of(small_log.events))


def _open_and_scan(stage: Stage, log: StoredLog) -> int:
    """The resident set with a graph open."""
    with open_projection(stage.settings, log.run) as projection:
        reports = projection.graph.query(_SCAN).rows[0][0]
        resident = settled_bytes()
    stage.expect("the count of reports", reports, log.rows["Report"])
    return resident


def _small_log(stage: Stage) -> StoredLog:
    return stored_stream(stage, BULK, _SMALL_EVENTS)


def _log(stage: Stage) -> StoredLog:
    return stored_stream(stage, BULK, stage.size(100_000, 10_000))
