"""The log as a worker needs it; Kafka's and one in memory both do."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

from forktrail_producers.producer import Producer
from forktrail_projectors.reader import LogReader
from forktrail_projectors.record import LogRecord
from forktrail_schemas.events.base import Event
from forktrail_schemas.settings import Settings
from forktrail_schemas.signatures import SigningKey


class Records(Protocol):
    """Records of a log, read in order."""

    def read(self, start: int, end: int) -> Iterator[Sequence[LogRecord]]:
        """The records [start, end) in batches."""
        ...


class Log(Records, Protocol):
    """The log of one run: read in order, written at its end.

    Attributes:
        topic_id: of its topic.
    """

    topic_id: str

    def end(self) -> int:
        """The offset after the last record there is now."""
        ...

    def follow(self, start: int) -> Iterator[Sequence[LogRecord]]:
        """The records from `start` on, in batches as they come; an empty one where for a moment none does."""
        ...

    def record_at(self, offset: int) -> LogRecord:
        """One record; may be asked in the midst of reading."""
        ...

    def append(self, events: Iterable[Event]) -> int:
        """Write events in order, signed; returns the offset behind the last, once all are durable."""
        ...


class KafkaLog:
    """Implements `Log` on a run's topic. One thread reads; several may write."""

    def __init__(self, settings: Settings, run: str, key: SigningKey) -> None:
        """Connect.

        Raises:
            NotFound: no such run.
            LogUnavailable: Kafka doesn't answer.
        """
        self._settings = settings
        self._run = run
        self._key = key
        self._reader = LogReader(settings.bootstrap_servers, run)
        self._single: LogReader | None = None
        self._producer = Producer(settings.bootstrap_servers)
        self._writing = threading.Lock()
        self.topic_id = self._reader.topic_id

    def end(self) -> int:
        """The offset after the last record there is now."""
        return self._reader.end()

    def read(self, start: int, end: int) -> Iterator[Sequence[LogRecord]]:
        """The records [start, end) in batches."""
        return self._reader.read(start, end)

    def follow(self, start: int) -> Iterator[Sequence[LogRecord]]:
        """The records from `start` on, in batches as they come."""
        return self._reader.follow(start)

    def record_at(self, offset: int) -> LogRecord:
        """One record, by a connection of its own, since the other is reading on."""
        if self._single is None:
            self._single = LogReader(self._settings.bootstrap_servers, self._run)
        return self._single.record_at(offset)

    def append(self, events: Iterable[Event]) -> int:
        """Write events in order, signed by the worker's key; see `Producer.emit_all` for errors."""
        with self._writing:
            return 1 + self._producer.emit_all((event, self._key) for event in events)[-1]

    def close(self) -> None:
        """Let go of all connections."""
        self._producer.close()
        self._reader.close()
        if self._single is not None:
            self._single.close()
