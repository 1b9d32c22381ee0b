"""Records put on a real run topic as they are, right or wrong, and runs that hold a told story."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import confluent_kafka
import pytest
from confluent_kafka import Producer as KafkaProducer

from forktrail_producers.kafka import Topics, client_config
from forktrail_projectors.record import LogRecord
from forktrail_schemas.ids import new_run_id
from forktrail_schemas.topics import run_topic, run_topic_spec
from support.story import Story


def write(bootstrap_servers: str, run: str, records: Iterable[LogRecord]) -> None:
    """Append records to a run's topic with their bytes, headers and times."""
    producer = KafkaProducer(client_config(bootstrap_servers) | {"enable.idempotence": True})
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


def reported(bootstrap_servers: str) -> Story:
    """A story of one registered test and one reported case, on its topic."""
    story = told(bootstrap_servers)
    story.open()
    story.register("root", enables=["a"])
    story.report("root")
    write(bootstrap_servers, story.run, story.records)
    return story


@contextmanager
def transaction(bootstrap_servers: str, name: str) -> Iterator[KafkaProducer]:
    """A Kafka transaction that commits at the end of the `with` block."""
    producer = KafkaProducer({"bootstrap.servers": bootstrap_servers, "transactional.id": name})
    producer.init_transactions(30)
    producer.begin_transaction()
    yield producer
    producer.commit_transaction(30)


def produce_with_header_name(bootstrap_servers: str, topic: str, value: bytes, name: bytes) -> None:
    """Write a record with one header whose name may be any bytes, which Python's client wouldn't send.

    It calls the librdkafka that comes inside the client's wheel; where it doesn't, the test is skipped.
    """
    found = list((Path(confluent_kafka.__file__).parents[1] / "confluent_kafka.libs").glob("librdkafka*"))
    if not found:
        pytest.skip("this build of the Kafka client has no librdkafka of its own to call")
    library = ctypes.CDLL(str(found[0]))
    for constructor in ("rd_kafka_conf_new", "rd_kafka_new", "rd_kafka_headers_new"):
        getattr(library, constructor).restype = ctypes.c_void_p
    fault = ctypes.create_string_buffer(512)
    config = ctypes.c_void_p(library.rd_kafka_conf_new())
    library.rd_kafka_conf_set(config, b"bootstrap.servers", bootstrap_servers.encode(), fault, 512)
    producer = ctypes.c_void_p(library.rd_kafka_new(0, config, fault, 512))
    headers = ctypes.c_void_p(library.rd_kafka_headers_new(ctypes.c_size_t(1)))
    library.rd_kafka_header_add(headers, name, ctypes.c_ssize_t(len(name)), b"v", ctypes.c_ssize_t(1))
    arguments = (
        *(ctypes.c_int(1), ctypes.c_char_p(topic.encode())),  # topic
        *(ctypes.c_int(3), ctypes.c_int32(0)),  # partition
        *(ctypes.c_int(4), ctypes.c_char_p(value), ctypes.c_size_t(len(value))),  # value
        *(ctypes.c_int(7), ctypes.c_int(2)),  # flags: copy the value
        *(ctypes.c_int(10), headers),
        ctypes.c_int(0),
    )
    assert library.rd_kafka_producev(producer, *arguments) == 0
    assert library.rd_kafka_flush(producer, ctypes.c_int(10_000)) == 0
    library.rd_kafka_destroy(producer)
