"""The directory of runs: announces a run, and lists those announced."""

from __future__ import annotations

from dataclasses import dataclass

from forktrail_producers.compacted import records_of
from forktrail_producers.kafka import Topics
from forktrail_producers.producer import Producer
from forktrail_schemas.errors import EventUnreadable, InvalidEvent
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
        found: dict[str, RunAnnounced] = {}
        unreadable = 0
        for message in records_of(self._bootstrap_servers, DIRECTORY.name):
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
