"""Everything that may be wrong with a record apart from what its event asks for."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from io import BytesIO
from typing import Any, cast

from fastavro import parse_schema, schemaless_reader, schemaless_writer

from forktrail_projectors.record import UNREADABLE_HEADERS, LogRecord
from forktrail_schemas.events import RunAnnounced
from forktrail_schemas.events.base import Event
from forktrail_schemas.headers import SIGNATURE
from forktrail_schemas.signatures import SigningKey
from forktrail_schemas.wire import HEADER_BYTES, build, encode, writer_schema
from support.moves import Move
from support.refused_authority import with_header, with_signature
from support.story import STRANGER, Story


def flawed(story: Story, event: Event, key: SigningKey | None, move: Move) -> LogRecord:
    """The record that would hold the event, with the move's flaw."""
    if move.flaw == "wrong_run":
        event = event.model_copy(update={"meta": event.meta.model_copy(update={"run": "elsewhere"})})
    signer = {"unsigned": None, "stranger": STRANGER}.get(move.flaw, key)
    record = story.record(event, signer)
    if move.flaw == "forged" and key is not None:
        forged = dataclasses.replace(STRANGER.sign(record.value or b""), key_id=key.key_id)
        return with_signature(record, forged.to_json().encode())
    change = _CHANGES.get(move.flaw)
    return change(record, move) if change else record


def unchecked(value: bytes, change: Callable[[dict[str, Any]], None]) -> bytes:
    """An event's bytes with fields changed to what its class would not take; written by fastavro alone."""
    schema = _schema(writer_schema(value).text)
    fields = schemaless_reader(BytesIO(value[HEADER_BYTES:]), schema, None)
    assert isinstance(fields, dict)
    change(cast("dict[str, Any]", fields))
    body = BytesIO()
    schemaless_writer(body, schema, fields)
    return value[:HEADER_BYTES] + body.getvalue()


@cache
def _schema(text: str) -> dict[str, Any]:
    return cast("dict[str, Any]", parse_schema(json.loads(text)))


def _with_value(record: LogRecord, value: bytes | None) -> LogRecord:
    return replace(record, value=value)


def _value(record: LogRecord) -> bytes:
    return record.value or b""


def _invalid(record: LogRecord, move: Move) -> LogRecord:
    def change(fields: dict[str, Any]) -> None:
        fields["meta"]["run"] = "No Run"

    return _with_value(record, unchecked(_value(record), change))


def _other_bytes(record: LogRecord, move: Move) -> LogRecord:
    """One bit of the body is another."""
    value = bytearray(_value(record))
    at = HEADER_BYTES + (move.a * 64 + move.b) % (len(value) - HEADER_BYTES)
    value[at] ^= 1 << move.c % 8
    return _with_value(record, bytes(value))


def _cut(record: LogRecord, move: Move) -> LogRecord:
    value = _value(record)
    return _with_value(record, value[: HEADER_BYTES + (move.a * 64 + move.b) % (len(value) - HEADER_BYTES)])


def _no_event(record: LogRecord, move: Move) -> LogRecord:
    fields = {"run": "tale", "topic": "t", "goal": "", "status": "open", "opened_at": move.a}
    return replace(record, value=encode(build(RunAnnounced, fields)), headers=())


def _contradicting(record: LogRecord, move: Move) -> LogRecord:
    names = ("ce_id", "ce_type", "ce_subject", "ce_time", "ce_specversion", "content-type")
    return with_header(record, {names[move.a % len(names)]: b"other"})


def _bare(record: LogRecord, move: Move) -> LogRecord:
    """No CloudEvents headers, which is fine; another service's, and no key."""
    kept = tuple(header for header in record.headers if header[0] == SIGNATURE)
    return replace(record, headers=(("traceparent", b"\xff"), *kept), key=None)


_CHANGES: dict[str, Callable[[LogRecord, Move], LogRecord]] = {
    "broken_signature": lambda record, move: with_signature(record, (b"{}", b"", b"\xff", None)[move.a % 4]),
    "other_bytes": _other_bytes,
    "invalid_field": _invalid,
    "cut": _cut,
    "longer": lambda record, move: _with_value(record, _value(record) + b"\x00"),
    "other_schema": lambda record, move: _with_value(
        record, _value(record)[:2] + bytes(8) + _value(record)[HEADER_BYTES:]
    ),
    "no_event": _no_event,
    "no_avro": lambda record, move: _with_value(record, (b"", b"\xc3", b"{}", b"\x00\x01")[move.a % 4]),
    "no_value": lambda record, move: _with_value(record, None),
    "contradicting_header": _contradicting,
    "unreadable_headers": lambda record, move: replace(record, headers=UNREADABLE_HEADERS),
    "bare": _bare,
}
