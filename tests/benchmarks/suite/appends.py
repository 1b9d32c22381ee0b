"""Validated durable appends: events built from plain fields, encoded, sent and acknowledged, 1,000 at a time.

Second side: the same bytes, encoded beforehand, through a bare confluent-kafka producer that is flushed every 1,000.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

from benchmarks.author import Draft
from benchmarks.bare import bare_producer, produce
from benchmarks.figures import Figure, Reading, events_of, rate
from benchmarks.logs import make_topic
from benchmarks.stage import Stage
from benchmarks.workload import BULK, Workload, record_of, tests_for
from forktrail_producers.producer import Producer
from forktrail_projectors.reader import LogReader
from forktrail_projectors.record import LogRecord
from forktrail_schemas.ids import new_run_id
from forktrail_schemas.topics import run_topic
from forktrail_schemas.wire import build

FIGURES = (
    Figure("appends", "events/s", "high", aim=40_000, against="bare producer, the same bytes encoded beforehand"),
)
BATCH_EVENTS = 1_000

T = TypeVar("T")


def prepare(stage: Stage) -> None:
    """Nothing: every repeat writes topics of its own."""


def measure(stage: Stage) -> Iterator[Reading]:
    """Write the stream twice: with the producer under test, and bare. The signed preamble warms each up, untimed."""
    count = stage.size(100_000, 10_000)
    run, bare_run = new_run_id(), new_run_id()
    workload = Workload(BULK, tests=tests_for(count), run=run)
    preamble = list(workload.drafts(workload.preamble_events))
    drafts = list(workload.drafts(count))
    records = [record_of(draft, offset) for offset, draft in enumerate([*preamble, *drafts])]
    make_topic(stage.bootstrap_servers, run)
    with Producer(stage.bootstrap_servers) as producer:
        offsets = _emit(producer, preamble)
        with stage.timed("appends") as clock:
            for batch in _batches(drafts):
                offsets += _emit(producer, batch)
    stage.expect("the offsets", offsets, list(range(len(records))))
    _check_topic(stage, run, records)
    make_topic(stage.bootstrap_servers, bare_run)
    bare = bare_producer(stage.bootstrap_servers)
    for record in records[: len(preamble)]:
        produce(bare, run_topic(bare_run), record)
    bare.flush()
    with stage.timed_second_side() as second:
        for records_of_batch in _batches(records[len(preamble) :]):
            for record in records_of_batch:
                produce(bare, run_topic(bare_run), record)
            bare.flush()
    _check_topic(stage, bare_run, records)
    yield Reading("appends", rate(count, clock.seconds), events_of(count), rate(count, second.seconds))


def _emit(producer: Producer, drafts: Sequence[Draft]) -> list[int]:
    return producer.emit_all([(build(draft.cls, draft.fields), draft.key) for draft in drafts])


def _batches(items: Sequence[T]) -> Iterator[Sequence[T]]:
    for start in range(0, len(items), BATCH_EVENTS):
        yield items[start : start + BATCH_EVENTS]


def _check_topic(stage: Stage, run: str, records: Sequence[LogRecord]) -> None:
    """The log holds just these records, in this order."""
    with LogReader(stage.bootstrap_servers, run) as reader:
        end = reader.end()
        stage.expect(f"the end of {run}", end, len(records))
        for batch in reader.read(0, end):
            first = batch[0].offset
            if batch != list(records[first : first + len(batch)]):
                stage.expect("a batch of the log", batch, records[first : first + len(batch)])
