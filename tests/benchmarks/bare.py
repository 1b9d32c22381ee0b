"""The second sides: confluent-kafka and fastavro by themselves, with nothing of ours around them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from io import BytesIO
from typing import Any

import fastavro
from confluent_kafka import Consumer, KafkaError, Message, TopicPartition
from confluent_kafka import Producer as KafkaProducer

from benchmarks.figures import WrongResult
from forktrail_producers.kafka import LOGGER, client_config
from forktrail_projectors.record import LogRecord
from forktrail_schemas.catalog import by_fingerprint
from forktrail_schemas.wire import HEADER_BYTES, MARKER

Delivered = Callable[[KafkaError | None, Message], None]
Json = Any  # an Avro schema, and what a record holds, is JSON of any shape
CONSUME_RECORDS = 1_000
TIMEOUT_SECONDS = 10.0


def bare_producer(bootstrap_servers: str) -> KafkaProducer:
    """An idempotent producer, otherwise as it comes."""
    return KafkaProducer(client_config(bootstrap_servers) | {"enable.idempotence": True}, logger=LOGGER)


def produce(producer: KafkaProducer, topic: str, record: LogRecord, delivered: Delivered | None = None) -> None:
    """Hand one record to a producer."""
    while True:
        try:
            producer.produce(
                topic,
                key=record.key,
                value=record.value,
                headers=list(record.headers),
                timestamp=record.timestamp_ms,
                partition=0,
                on_delivery=delivered,
            )
        except BufferError:  # the queue is full: let some of it leave
            producer.poll(0.1)
        else:
            producer.poll(0)
            return


def consume(bootstrap_servers: str, topic: str, count: int) -> Iterator[bytes]:
    """The values of the first records of a topic.

    Raises:
        WrongResult: there are fewer.
    """
    consumer = Consumer(
        client_config(bootstrap_servers) | {"group.id": "benchmark", "enable.auto.commit": False}, logger=LOGGER
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    missing = count
    while missing:
        messages = consumer.consume(min(CONSUME_RECORDS, missing), timeout=TIMEOUT_SECONDS)
        if not messages:
            raise WrongResult(f"{topic} lacks {missing:,} of {count:,} records")
        for message in messages:
            yield message.value() or b""
        missing -= len(messages)
    consumer.close()


def codecs() -> Mapping[bytes, Json]:
    """Every built-in schema as fastavro wants it, by fingerprint; times stay integers, as ours do."""
    return {
        fingerprint: fastavro.parse_schema(_plain(json.loads(schema.text)))
        for fingerprint, schema in by_fingerprint().items()
    }


def read_fields(value: bytes, codecs: Mapping[bytes, Json]) -> Json:
    """The fields of an event, unchecked."""
    return fastavro.schemaless_reader(BytesIO(value[HEADER_BYTES:]), codecs[value[len(MARKER) : HEADER_BYTES]], None)


def write_fields(fields: dict[str, Any], codec: Json) -> bytes:
    """The body of an event, unchecked."""
    body = BytesIO()
    fastavro.schemaless_writer(body, codec, fields)
    return body.getvalue()


def _plain(schema: Json) -> Json:
    """A schema without logical types, which fastavro would turn into datetimes."""
    if isinstance(schema, dict):
        return {name: _plain(value) for name, value in schema.items() if name != "logicalType"}
    return [_plain(item) for item in schema] if isinstance(schema, list) else schema
