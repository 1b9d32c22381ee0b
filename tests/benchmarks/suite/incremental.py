"""Incremental: batches folded and committed on top of a graph on disk; records from memory, so no broker in the path.

The engine's CHECKPOINT is run before each figure and timed apart, after the last; commits run it only when it is due.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from pathlib import Path

from benchmarks.checks import check_rows
from benchmarks.figures import Figure, Reading, rate
from benchmarks.graphs import make_graph, open_copy
from benchmarks.logs import stored_stream, stream_run
from benchmarks.stage import Stage
from benchmarks.workload import BULK, Workload, tests_for
from forktrail_projectors.projector import Projector
from forktrail_projectors.record import LogRecord

FIGURES = (
    Figure("incremental.1", "events/s", "high"),
    Figure("incremental.100", "events/s", "high"),
    Figure("incremental.1000", "events/s", "high", aim=20_000),
    Figure("incremental.checkpoint", "ms", "low"),
)
_WARM_UP_EVENTS = 50


def prepare(stage: Stage) -> None:
    """Fold the graph to build on, and encode the records that follow its own."""
    make_graph(stage, stored_stream(stage, BULK, _base(stage)))
    workload = Workload(BULK, tests=tests_for(_base(stage)), run=stream_run(BULK, _base(stage)))
    for _ in workload.drafts(_base(stage)):
        pass
    following = _WARM_UP_EVENTS + sum(count for _, count in _plan(stage))
    _records_file(stage).write_bytes(pickle.dumps(list(workload.records(following))))


def measure(stage: Stage) -> Iterator[Reading]:
    """Commit on a copy of the graph: one by one, by 100, by 1,000."""
    log = stored_stream(stage, BULK, _base(stage))
    records: list[LogRecord] = pickle.loads(_records_file(stage).read_bytes())
    with open_copy(stage, make_graph(stage, log)) as graph:
        cursor = graph.cursor()
        assert cursor is not None, "it was folded"
        projector = Projector(graph, cursor.topic_id)
        start = _WARM_UP_EVENTS
        projector.apply(records[:start])
        for batch_events, count in _plan(stage):
            figure = f"incremental.{batch_events}"
            batches = [records[at : at + batch_events] for at in range(start, start + count, batch_events)]
            graph.checkpoint()
            verdicts = []
            with stage.timed(figure) as clock:
                for batch in batches:
                    verdicts += projector.apply(batch)
            stage.expect("the count of valid events", sum(verdict.valid for verdict in verdicts), count)
            yield Reading(figure, rate(count, clock.seconds), f"{count:,} on {log.events + start:,}")
            start += count
        with stage.timed("incremental.checkpoint") as clock:
            graph.checkpoint()
        check_rows(stage, projector)
        stage.expect_same(f"state digest of {log.run} at {log.events + start}", projector.state_digest)
        yield Reading("incremental.checkpoint", clock.seconds * 1000, f"after {count:,} by 1,000")


def _base(stage: Stage) -> int:
    return stage.size(100_000, 10_000)


def _plan(stage: Stage) -> tuple[tuple[int, int], ...]:
    """Batch sizes, and how many events to commit in batches of each."""
    return (1, stage.size(500, 100)), (100, stage.size(5_000, 500)), (1_000, stage.size(20_000, 3_000))


def _records_file(stage: Stage) -> Path:
    return stage.folder / "incremental.pickle"
