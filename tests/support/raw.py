"""Records put on a real run topic as they are, right or wrong, and runs that hold a told story."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from confluent_kafka import Producer as KafkaProducer

from forktrail_producers.kafka import Topics
from forktrail_projectors.record import LogRecord
from forktrail_schemas.ids import new_run_id
from forktrail_schemas.topics import run_topic, run_topic_spec
from support.story import Story


def write(bootstrap_servers: str, run: str, records: Iterable[LogRecord]) -> None:
    """Append records to a run's topic with their bytes, headers and times."""
    producer = KafkaProducer({"bootstrap.servers": bootstrap_servers, "enable.idempotence": True})
    for record in records:
        producer.produce(
            run_topic(run),
            key=record.key,
            value=record.value,
            headers=list(record.headers),
            timestamp=record.timestamp_ms,
            partition=0,
        )
    assert producer.flush(30) == 0


def make_run(bootstrap_servers: str) -> str:
    """A new, empty run topic; returns the run's id."""
    run = new_run_id()
    Topics(bootstrap_servers).make(run_topic_spec(run))
    return run


def told(bootstrap_servers: str) -> Story:
    """A story under a fresh run id whose topic is there, still empty; `write` puts its records on it."""
    return Story(make_run(bootstrap_servers))


@contextmanager
def transaction(bootstrap_servers: str, name: str) -> Iterator[KafkaProducer]:
    """A Kafka transaction that commits at the end of the `with` block."""
    producer = KafkaProducer({"bootstrap.servers": bootstrap_servers, "transactional.id": name})
    producer.init_transactions(30)
    producer.begin_transaction()
    yield producer
    producer.commit_transaction(30)
