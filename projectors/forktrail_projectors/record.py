"""A record as it lies on a run topic, and what the fold made of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

VerdictKind = Literal["valid", "duplicate", "void", "unreadable", "unhandled"]


# Stands for headers that the Kafka client can't give, since a name in them isn't UTF-8. No name that it gives has NUL.
UNREADABLE_HEADERS: tuple[tuple[str, bytes | None], ...] = (("\x00unreadable", None),)


@dataclass(frozen=True, slots=True)
class LogRecord:
    """One Kafka record.

    Attributes:
        offset: its address in the run.
        timestamp_ms: milliseconds since 1970 UTC, as its writer gave it.
        key: the subject id in UTF-8, if it has one.
        value: an Avro single-object encoded event, if the writer kept to the contract.
        headers: in order, names may repeat; UNREADABLE_HEADERS where they can't be read.
    """

    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()


class Verdict(NamedTuple):
    """What became of the record at an offset.

    Attributes:
        kind: only a valid one changes anything.
        reason: stable reason code; "" where it is valid. A duplicate has the reason of what it is a copy of.
        detail: what the reason is about, an id say; for people.
        event_id: as the event claims, "" where it can't be read.
        type: full Avro name, "" where it can't be told.
    """

    offset: int
    kind: VerdictKind
    reason: str = ""
    detail: str = ""
    event_id: str = ""
    type: str = ""

    @property
    def valid(self) -> bool:
        """Whether it counts: it is valid, or a copy of a valid one that is on the log."""
        return self.kind == "valid" or (self.kind == "duplicate" and not self.reason)
