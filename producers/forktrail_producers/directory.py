"""The directory of runs: announces a run, and lists those announced."""

from __future__ import annotations

from dataclasses import dataclass

from confluent_kafka import Consumer, TopicPartition

from forktrail_producers.kafka import LOGGER, REQUEST_TIMEOUT_SECONDS, Topics, client_config, log_error, log_errors
from forktrail_producers.producer import Producer
from forktrail_schemas.errors import EventUnreadable, InvalidEvent, LogUnavailable
from forktrail_schemas.events import RunAnnounced
from forktrail_schemas.topics import DIRECTORY
from forktrail_schemas.wire import decode, encode


@dataclass(frozen=True)
class Listing:
    """The directory as it stood when it was read.

    Attributes:
        runs: the last announcement of each run, oldest first.
        unreadable: how many records of the topic aren't announcements.
    """

    runs: tuple[RunAnnounced, ...]
    unreadable: int


class Directory:
    """Announces and lists runs."""

    def __init__(self, bootstrap_servers: str) -> None:
        self._bootstrap_servers = bootstrap_servers

    def announce(self, announcement: RunAnnounced, producer: Producer) -> None:
        """Put a run's line into the directory; durable on return, and harmless when done again.

        Raises:
            LogUnavailable: Kafka doesn't answer.
        """
        Topics(self._bootstrap_servers).make(DIRECTORY)
        producer.emit_keyed(DIRECTORY.name, announcement.run, encode(announcement))

    def find(self, run: str) -> RunAnnounced | None:
        """A run's announcement, or None where it has none (yet)."""
        return next((found for found in self.list().runs if found.run == run), None)

    def list(self) -> Listing:
        """Read the directory to the end that it has now.

        Raises:
            LogUnavailable: Kafka doesn't answer.
        """
        if Topics(self._bootstrap_servers).id_of(DIRECTORY.name) is None:
            return Listing((), 0)
        consumer = Consumer(
            client_config(self._bootstrap_servers)
            | {
                "group.id": "forktrail-directory",  # required by the library; nothing is committed
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "auto.offset.reset": "earliest",
                "fetch.wait.max.ms": 10,
            },
            logger=LOGGER,
        )
        try:
            with log_errors(self._bootstrap_servers):
                return self._read(consumer)
        finally:
            consumer.close()

    def _read(self, consumer: Consumer) -> Listing:
        partitions = (
            consumer.list_topics(DIRECTORY.name, timeout=REQUEST_TIMEOUT_SECONDS).topics[DIRECTORY.name].partitions
        )
        open_partitions = set(partitions)
        consumer.assign([TopicPartition(DIRECTORY.name, partition, 0) for partition in partitions])
        found: dict[str, RunAnnounced] = {}
        unreadable = 0
        while open_partitions:
            # Each open partition will give one message at least, its end; asking for more would wait for more.
            messages = consumer.consume(len(open_partitions), timeout=REQUEST_TIMEOUT_SECONDS)
            if not messages:
                raise LogUnavailable(f"Kafka at {self._bootstrap_servers} stopped answering", hint="try again")
            for message in messages:
                error = message.error()
                if error is not None:
                    if error.code() != error._PARTITION_EOF:
                        raise log_error(error, self._bootstrap_servers)
                    open_partitions.discard(message.partition())
                    continue
                announcement = _announcement(message.value())
                if announcement is None:
                    unreadable += 1
                else:
                    found[announcement.run] = announcement
        return Listing(tuple(sorted(found.values(), key=lambda run: (run.opened_at, run.run))), unreadable)


def _announcement(value: bytes | None) -> RunAnnounced | None:
    try:
        record = decode(value or b"")
    except (EventUnreadable, InvalidEvent):
        return None
    return record if isinstance(record, RunAnnounced) else None
