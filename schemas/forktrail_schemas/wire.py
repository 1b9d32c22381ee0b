"""Bytes on the wire: Avro single-object encoding, strict both ways.

Source: Apache Avro 1.12 specification, "Single-object encoding": C3 01, the CRC-64-AVRO fingerprint of the writer's
schema (little-endian), the body.
"""

from __future__ import annotations

from functools import cache

from forktrail_schemas.body import body_of, build
from forktrail_schemas.catalog import FINGERPRINT_BYTES, Schema, by_fingerprint
from forktrail_schemas.declared import ForeignRecord, declared_reader
from forktrail_schemas.errors import EventUnreadable, InvalidEvent
from forktrail_schemas.record import Record
from forktrail_schemas.versions import ReadVersion, version_reader

__all__ = [
    "HEADER_BYTES",
    "VALUE_BYTES_MAX",
    "build",
    "decode",
    "decode_declared",
    "encode",
    "fingerprint_of",
    "foreign_fingerprint",
    "writer_schema",
]

MARKER = b"\xc3\x01"
HEADER_BYTES = len(MARKER) + FINGERPRINT_BYTES
VALUE_BYTES_MAX = 1_000_000


def encode(record: Record) -> bytes:
    """Encode a record with its own schema.

    Raises:
        InvalidEvent: the record breaks its schema (built around its checks), or is larger than VALUE_BYTES_MAX.
    """
    body = body_of(type(record))
    value = MARKER + body.schema.fingerprint + body.write(record)
    if len(value) > VALUE_BYTES_MAX:
        raise InvalidEvent(
            f"{record.TYPE} has {len(value):,} bytes, {VALUE_BYTES_MAX:,} are allowed",
            hint="put large bytes into the blob store and name their digest",
        )
    return value


def decode(value: bytes) -> Record:
    """Decode a record of any version of any built-in type, using up every byte and checking every field.

    Returns it in its type's current version. Messages hold nothing of a library's own words: the fold keeps them, and
    must say the same under every version.

    Raises:
        EventUnreadable: `code` is not_avro, unknown_schema, truncated or trailing_bytes.
        InvalidEvent: it decodes, but breaks what its schema says of its fields (`code` invalid_data).
    """
    read = _readers().get(value[:HEADER_BYTES])
    if read is None:
        read = _reader_of(writer_schema(value))
    return read(value, HEADER_BYTES)


def decode_declared(value: bytes, text: str) -> Record | ForeignRecord:
    """Decode a record by the schema that its run declared under its fingerprint, at a lower offset.

    A type that is built in comes back as a record of its current version, any other as foreign.

    Args:
        value: a value whose `foreign_fingerprint` is the schema's.
        text: of a schema that `declared_schema` takes.

    Raises:
        EventUnreadable: `code` is truncated, trailing_bytes, or schema_incompatible: the schema has the name of a
            built-in type, and what it says, or what the record holds, can't be read as that type.
        InvalidEvent: as for `decode`.
    """
    return declared_reader(text).read(value, HEADER_BYTES)


def fingerprint_of(value: bytes) -> bytes:
    """The fingerprint of the schema that a value was written with.

    Raises:
        EventUnreadable: not_avro.
    """
    if len(value) < HEADER_BYTES or not value.startswith(MARKER):
        raise EventUnreadable(
            "the value is not in Avro single-object encoding (C3 01 and a fingerprint)", code="not_avro"
        )
    return value[len(MARKER) : HEADER_BYTES]


def foreign_fingerprint(value: bytes) -> str | None:
    """The fingerprint of a value's schema in hex where no built-in schema has it; None for any other value."""
    if len(value) < HEADER_BYTES or not value.startswith(MARKER):
        return None
    fingerprint = value[len(MARKER) : HEADER_BYTES]
    return None if fingerprint in by_fingerprint() else fingerprint.hex()


def writer_schema(value: bytes) -> Schema:
    """The built-in schema that a value was written with.

    Raises:
        EventUnreadable: not_avro or unknown_schema.
    """
    fingerprint = fingerprint_of(value)
    schema = by_fingerprint().get(fingerprint)
    if schema is None:
        raise _unknown(fingerprint.hex())
    return schema


@cache
def _readers() -> dict[bytes, ReadVersion]:
    """The readers made so far, by the bytes that a value begins with."""
    return {}


def _reader_of(schema: Schema) -> ReadVersion:
    read = version_reader(schema)
    _readers()[MARKER + schema.fingerprint] = read
    return read


def _unknown(fingerprint: str) -> EventUnreadable:
    return EventUnreadable(f"no schema with fingerprint {fingerprint} is known", code="unknown_schema")
