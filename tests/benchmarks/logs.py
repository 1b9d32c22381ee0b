"""Streams of events as logs on Kafka: written once by whichever benchmark needs one first, then read by all."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass

from confluent_kafka import KafkaError, Message

from benchmarks.bare import bare_producer, produce
from benchmarks.figures import WrongResult
from benchmarks.investigation import Investigation
from benchmarks.stage import Stage
from benchmarks.workload import Mix, Workload, tests_for
from forktrail_producers.kafka import Topics
from forktrail_projectors.record import LogRecord
from forktrail_schemas.topics import run_topic, run_topic_spec


@dataclass(frozen=True)
class StoredLog:
    """A log on Kafka, and what the fold must make of it: every event is valid.

    Attributes:
        run: its run id; `topic` is made from it.
        events: how many records it has.
        causes: how many relations CAUSED follow.
        rows: how many rows some of the node tables have.
        reports: how many reports came to which outcome.
    """

    run: str
    events: int
    causes: int
    rows: dict[str, int]
    reports: dict[str, int]

    @property
    def topic(self) -> str:
        """Its topic."""
        return run_topic(self.run)


def stored_stream(stage: Stage, mix: Mix, events: int) -> StoredLog:
    """The log with the first events of a mix; written now, if no benchmark did so before."""
    run = stream_run(mix, events)

    def write() -> Investigation:
        workload = Workload(mix, tests=tests_for(events), run=run)
        write_records(stage.bootstrap_servers, run, workload.records(events))
        return workload.story

    return stored_log(stage, run, write)


def stream_run(mix: Mix, events: int) -> str:
    """The run id of a stored stream; always as long as a real one, since each event carries it."""
    return f"run-{mix.name[0]}{events:011d}"


def stored_log(stage: Stage, run: str, write: Callable[[], Investigation]) -> StoredLog:
    """A log by its run id; `write` writes it, where no benchmark did so before, and returns its story."""
    kept = stage.kept(run)
    if kept is None:
        story = write()
        tally = story.tally
        log = StoredLog(run, story.author.events, story.author.causes, dict(tally.rows), dict(tally.reports))
        stage.keep(run, asdict(log))
        return log
    return StoredLog(**kept)


def make_topic(bootstrap_servers: str, run: str) -> None:
    """Make the topic of a run."""
    Topics(bootstrap_servers).make(run_topic_spec(run))


def write_records(bootstrap_servers: str, run: str, records: Iterable[LogRecord]) -> None:
    """Write records to the new topic of a run, as fast as Kafka takes them; durable on return.

    Raises:
        WrongResult: Kafka didn't acknowledge one.
    """
    make_topic(bootstrap_servers, run)
    producer = bare_producer(bootstrap_servers)
    failures: list[str] = []

    def delivered(error: KafkaError | None, _: Message) -> None:
        if error is not None:
            failures.append(error.str())

    for record in records:
        produce(producer, run_topic(run), record, delivered)
    producer.flush()
    if failures:
        raise WrongResult(f"Kafka didn't take {len(failures):,} records of {run}: {failures[0]}")
