"""The journal of a producer: what it was about to send, and what was acknowledged at which offset.

An event's line is written before it is sent, and its acknowledgement after it is known; both outlive SIGKILL, which
leaves the page cache. So an event without an acknowledgement may or may not be on the log, and one with it must be.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

import orjson

from chaos.plan import Expected
from forktrail_projectors.record import LogRecord

_READ_BYTES = 1 << 20


class Content(NamedTuple):
    """What a record is apart from its offset."""

    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


def content_of(record: LogRecord) -> Content:
    """A record's content."""
    return Content(record.timestamp_ms, record.key, record.value, record.headers)


@dataclass(frozen=True)
class Sent:
    """An event that was sent, once or several times, always with the same bytes.

    Attributes:
        number: its place in the producer's plan.
        event_id: its id.
        expected: the verdict that it must get.
    """

    number: int
    event_id: str
    content: Content
    expected: Expected


class JournalWriter:
    """Appends to a journal, which nobody else writes meanwhile."""

    def __init__(self, path: Path) -> None:
        """Go on with a journal; half a line, as a kill may leave it, is cut off."""
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        os.ftruncate(self._descriptor, path.read_bytes().rfind(b"\n") + 1)

    def __enter__(self) -> JournalWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._descriptor)

    def sending(self, events: Iterable[Sent]) -> None:
        """These are about to be sent for the first time."""
        self._append(b"".join(_line_of(event) for event in events))

    def acknowledged(self, numbers: Sequence[int], offsets: Sequence[int]) -> None:
        """These lie at these offsets, as Kafka said."""
        self._append(orjson.dumps({"acknowledged": list(zip(numbers, offsets, strict=True))}) + b"\n")

    def _append(self, lines: bytes) -> None:
        view = memoryview(lines)
        while view:
            view = view[os.write(self._descriptor, view) :]


class Journal:
    """A journal as somebody reads it while it grows.

    Attributes:
        sent: every event, in the order of their numbers.
        offsets: where each acknowledged event lies, by number, as it was acknowledged first.
        end: the offset after the highest that was acknowledged.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._position = 0
        self._rest = b""
        self.sent: list[Sent] = []
        self.offsets: dict[int, int] = {}
        self.end = 0
        self._in_flight: dict[int, None] = {}

    @property
    def in_flight(self) -> set[int]:
        """Numbers of events that were sent and not acknowledged."""
        return set(self._in_flight)

    def unacknowledged(self) -> list[Sent]:
        """The events that were sent and not acknowledged, in order."""
        return [self.sent[number] for number in sorted(self._in_flight)]

    def update(self) -> None:
        """Read what was written since; half a line waits for its other half."""
        try:
            with self._path.open("rb") as file:
                file.seek(self._position)
                while piece := file.read(_READ_BYTES):
                    self._position += len(piece)
                    *lines, self._rest = (self._rest + piece).split(b"\n")
                    for line in lines:
                        self._take(orjson.loads(line))
        except FileNotFoundError:
            return

    def cut_half_line(self) -> None:
        """Its writer was killed, and all it wrote is read: cut off half a line, before it is read a second time."""
        self._position -= len(self._rest)
        self._rest = b""
        if self._path.exists():
            os.truncate(self._path, self._position)

    def _take(self, entry: dict[str, Any]) -> None:
        if "acknowledged" not in entry:
            event = _event_of(entry)
            assert event.number == len(self.sent), "a journal has no gaps"
            self.sent.append(event)
            self._in_flight[event.number] = None
            return
        for number, offset in entry["acknowledged"]:
            self.offsets.setdefault(number, offset)
            self._in_flight.pop(number, None)
            self.end = max(self.end, offset + 1)


def _line_of(event: Sent) -> bytes:
    content = event.content
    fields = {
        "number": event.number,
        "id": event.event_id,
        "expected": list(event.expected),
        "timestamp_ms": content.timestamp_ms,
        "key": _text(content.key),
        "value": _text(content.value),
        "headers": [[name, _text(value)] for name, value in content.headers],
    }
    return orjson.dumps(fields) + b"\n"


def _event_of(entry: dict[str, Any]) -> Sent:
    headers = tuple((name, _bytes(value)) for name, value in entry["headers"])
    content = Content(entry["timestamp_ms"], _bytes(entry["key"]), _bytes(entry["value"]), headers)
    return Sent(entry["number"], entry["id"], content, Expected(*entry["expected"]))


def _text(value: bytes | None) -> str | None:
    return None if value is None else base64.b64encode(value).decode()


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)
