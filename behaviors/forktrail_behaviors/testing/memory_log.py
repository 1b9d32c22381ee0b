"""A run's log in memory, which can die in the midst of a write as a process does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from forktrail_projectors.record import LogRecord
from forktrail_schemas.errors import NotFound
from forktrail_schemas.events.base import Event
from forktrail_schemas.headers import headers_of
from forktrail_schemas.signatures import SigningKey
from forktrail_schemas.wire import encode

TOPIC_ID = "in-memory"


class Killed(BaseException):
    """The process is gone at this point; nothing catches it but who kills."""


class MemoryLog:
    """Implements `Log`.

    Attributes:
        records: all of it.
        writes_left: so many more events are written before the process dies; None for ever.
    """

    topic_id = TOPIC_ID

    def __init__(self, records: Iterable[LogRecord] = ()) -> None:
        self.records = list(records)
        self.writes_left: int | None = None

    def end(self) -> int:
        """The offset after the last record."""
        return len(self.records)

    def read(self, start: int, end: int) -> Iterator[Sequence[LogRecord]]:
        """The records [start, end) in one batch."""
        if start < end:
            yield self.records[start:end]

    def follow(self, start: int) -> Iterator[Sequence[LogRecord]]:
        """The records from `start` on, as they come; an empty batch where none does."""
        while True:
            batch = self.records[start:]
            start += len(batch)
            yield batch

    def record_at(self, offset: int) -> LogRecord:
        """One record."""
        if not 0 <= offset < len(self.records):
            raise NotFound(f"the log has no offset {offset}")
        return self.records[offset]

    def append(self, events: Iterable[Event]) -> int:
        """Write events in order, unsigned; returns the offset behind the last."""
        for event in events:
            self.write(event)
        return len(self.records)

    def write(self, event: Event, key: SigningKey | None = None) -> None:
        """Write one event.

        Raises:
            Killed: it isn't written, and the process is no more.
        """
        if self.writes_left is not None:
            if self.writes_left == 0:
                raise Killed
            self.writes_left -= 1
        value = encode(event)
        self.records.append(
            LogRecord(
                offset=len(self.records),
                timestamp_ms=event.meta.occurred_at // 1000,
                key=event.subject_id.encode(),
                value=value,
                headers=tuple(headers_of(event, key.sign(value) if key else None)),
            )
        )
