"""Reads a compacted topic to the end that it has now."""

from __future__ import annotations

from collections.abc import Iterator

from confluent_kafka import Consumer, Message, TopicPartition

from forktrail_producers.kafka import LOGGER, REQUEST_TIMEOUT_SECONDS, Topics, client_config, log_error, log_errors
from forktrail_schemas.errors import LogUnavailable


def records_of(bootstrap_servers: str, topic: str) -> Iterator[Message]:
    """The records of a topic, each partition's in order; none where there is no such topic.

    Of one key there may be several: the last one counts.

    Raises:
        LogUnavailable: Kafka doesn't answer, or stops answering.
    """
    if Topics(bootstrap_servers).id_of(topic) is None:
        return
    consumer = Consumer(
        client_config(bootstrap_servers)
        | {
            "group.id": "forktrail-compacted",  # required by the library; nothing is committed
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "earliest",
            "fetch.wait.max.ms": 10,
        },
        logger=LOGGER,
    )
    try:
        with log_errors(bootstrap_servers):
            yield from _read(consumer, bootstrap_servers, topic)
    finally:
        consumer.close()


def _read(consumer: Consumer, bootstrap_servers: str, topic: str) -> Iterator[Message]:
    partitions = consumer.list_topics(topic, timeout=REQUEST_TIMEOUT_SECONDS).topics[topic].partitions
    open_partitions = set(partitions)
    consumer.assign([TopicPartition(topic, partition, 0) for partition in partitions])
    while open_partitions:
        # Each open partition will give one message at least, its end; asking for more would wait for more.
        messages = consumer.consume(len(open_partitions), timeout=REQUEST_TIMEOUT_SECONDS)
        if not messages:
            raise LogUnavailable(f"Kafka at {bootstrap_servers} stopped answering", hint="try again")
        for message in messages:
            error = message.error()
            if error is None:
                yield message
            elif error.code() == error._PARTITION_EOF:
                open_partitions.discard(message.partition())
            else:
                raise log_error(error, bootstrap_servers)
