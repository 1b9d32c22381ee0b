"""Fold from the log: a run read from Kafka, decoded, judged and folded into a graph in memory.

Second side: the same records consumed with a bare confluent-kafka consumer and decoded with fastavro, nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks import bare
from benchmarks.checks import check_digest, check_memory, check_rows
from benchmarks.figures import Figure, Reading, events_of, rate
from benchmarks.logs import StoredLog, stored_stream
from benchmarks.stage import Stage
from benchmarks.workload import BULK, MIXED, Mix
from forktrail_projectors.projection import fold_in_memory

_AGAINST = "bare consume and fastavro decode"
FIGURES = (
    Figure("fold.bulk", "events/s", "high", aim=80_000, against=_AGAINST),
    Figure("fold.mixed", "events/s", "high", against=_AGAINST),
)
_WARM_UP_EVENTS = 500


def prepare(stage: Stage) -> None:
    """Write both logs."""
    for mix in (BULK, MIXED):
        _log(stage, mix)


def measure(stage: Stage) -> Iterator[Reading]:
    """Fold each log once, and read it once without folding."""
    codecs = bare.codecs()
    for mix in (BULK, MIXED):
        log = _log(stage, mix)
        fold_in_memory(stage.settings, log.run, _WARM_UP_EVENTS)
        with stage.timed(f"fold.{mix.name}") as clock:
            graph, projector = fold_in_memory(stage.settings, log.run)
        check_digest(stage, log, projector.cursor.next_offset, projector.state_digest)
        check_rows(stage, projector)
        check_memory(stage, log, graph)
        graph.close()
        with stage.timed_second_side() as second:
            for value in bare.consume(stage.bootstrap_servers, log.topic, log.events):
                bare.read_fields(value, codecs)
        yield Reading(
            f"fold.{mix.name}",
            rate(log.events, clock.seconds),
            events_of(log.events),
            rate(log.events, second.seconds),
        )


def _log(stage: Stage, mix: Mix) -> StoredLog:
    return stored_stream(stage, mix, stage.size(100_000, 10_000))
