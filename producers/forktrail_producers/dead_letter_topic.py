"""The topic of dead letters: each record that a run refused for what it is, and whether somebody has dealt with it.

A letter's key is `RUN/OFFSET`, its acknowledgement's `RUN/OFFSET/ack`, so that a letter which is published again brings
nothing back.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass

from forktrail_producers.compacted import records_of
from forktrail_producers.kafka import Topics
from forktrail_producers.producer import Producer
from forktrail_schemas.errors import EventUnreadable, InvalidEvent
from forktrail_schemas.events import DeadLetter, DeadLetterAcknowledged
from forktrail_schemas.topics import DEAD_LETTERS
from forktrail_schemas.wire import decode, encode

ACKNOWLEDGED = "ack"


@dataclass(frozen=True)
class RunLetters:
    """The letters and acknowledgements of one run, the last of each, by offset."""

    letters: dict[int, DeadLetter]
    acknowledged: dict[int, DeadLetterAcknowledged]


class DeadLetterTopic:
    """Publishes, acknowledges and reads letters."""

    def __init__(self, bootstrap_servers: str) -> None:
        self._bootstrap_servers = bootstrap_servers

    def publish(self, letters: Iterable[DeadLetter], producer: Producer) -> None:
        """Put letters on the topic; durable on return, and harmless when done again.

        Raises:
            LogUnavailable: Kafka doesn't answer, or lets us not.
        """
        Topics(self._bootstrap_servers).make(DEAD_LETTERS)
        for letter in letters:
            producer.emit_keyed(DEAD_LETTERS.name, letter_key(letter.run, letter.offset), encode(letter))

    def acknowledge(self, acknowledgement: DeadLetterAcknowledged, producer: Producer) -> None:
        """Say that a letter is dealt with; durable on return.

        Raises:
            LogUnavailable: Kafka doesn't answer, or lets us not.
        """
        Topics(self._bootstrap_servers).make(DEAD_LETTERS)
        key = f"{letter_key(acknowledgement.run, acknowledgement.offset)}/{ACKNOWLEDGED}"
        producer.emit_keyed(DEAD_LETTERS.name, key, encode(acknowledgement))

    def of_run(self, run: str) -> RunLetters:
        """What the topic holds of a run; nothing where there is no topic yet.

        Raises:
            LogUnavailable: Kafka doesn't answer.
        """
        found = RunLetters({}, {})
        for record in self._records(run):
            if isinstance(record, DeadLetter):
                found.letters[record.offset] = record
            elif isinstance(record, DeadLetterAcknowledged):
                found.acknowledged[record.offset] = record
        return found

    def _records(self, run: str) -> Iterator[object]:
        prefix = letter_key(run, "").encode()
        for message in records_of(self._bootstrap_servers, DEAD_LETTERS.name):
            key, value = message.key(), message.value()
            if isinstance(key, bytes) and key.startswith(prefix) and isinstance(value, bytes):
                with suppress(EventUnreadable, InvalidEvent):  # somebody else's, or of a later version
                    yield decode(value)


def letter_key(run: str, offset: int | str) -> str:
    """The key of a letter."""
    return f"{run}/{offset}"
