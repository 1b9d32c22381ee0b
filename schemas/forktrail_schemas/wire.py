"""Bytes on the wire: Avro single-object encoding, strict both ways.

Source: Apache Avro 1.12 specification, "Single-object encoding": C3 01, the CRC-64-AVRO fingerprint of the writer's
schema (little-endian), the body.
"""

from __future__ import annotations

import struct
from io import BytesIO
from typing import Any, TypeVar, cast

from fastavro import schemaless_reader, schemaless_writer
from pydantic import ValidationError

from forktrail_schemas.catalog import FINGERPRINT_BYTES, Schema, by_fingerprint, record_classes, schema_of
from forktrail_schemas.errors import EventUnreadable, InvalidEvent
from forktrail_schemas.record import Record

MARKER = b"\xc3\x01"
HEADER_BYTES = len(MARKER) + FINGERPRINT_BYTES
VALUE_BYTES_MAX = 1_000_000

R = TypeVar("R", bound=Record)


def encode(record: Record) -> bytes:
    """Encode a record with its own schema.

    Raises:
        InvalidEvent: the record breaks its schema (built around its checks), or is larger than VALUE_BYTES_MAX.
    """
    schema = schema_of(record)
    # A copy with other values was never checked, and fastavro would write 1.7 as 1 and 2**31 into an int.
    fields = build(type(record), record.model_dump(warnings=False)).model_dump()
    body = BytesIO()
    body.write(MARKER + schema.fingerprint)
    try:
        schemaless_writer(body, schema.codec, fields, strict=True)
    except (ValueError, TypeError, struct.error, OverflowError) as error:
        raise InvalidEvent(f"{schema.name} can't be encoded: {error}", hint="build it with its class") from error
    value = body.getvalue()
    if len(value) > VALUE_BYTES_MAX:
        raise InvalidEvent(
            f"{schema.name} has {len(value):,} bytes, {VALUE_BYTES_MAX:,} are allowed",
            hint="put large bytes into the blob store and name their digest",
        )
    return value


def build(cls: type[R], fields: dict[str, Any]) -> R:
    """Build a record from plain values.

    Raises:
        InvalidEvent: naming the first field that is wrong and what it should be.
    """
    try:
        return cls.model_validate(fields)
    except ValidationError as error:
        raise InvalidEvent(f"{cls.TYPE}: {first_fault(error)}") from error


def decode(value: bytes) -> Record:
    """Decode a record of any built-in type, using up every byte and checking every field.

    Messages hold nothing of a library's own words: the fold keeps them, and must say the same under every version.

    Raises:
        EventUnreadable: `code` is not_avro, unknown_schema, truncated or trailing_bytes.
        InvalidEvent: it decodes, but breaks what its schema says of its fields (`code` invalid_data).
    """
    schema = writer_schema(value)
    fields = decode_fields(value, schema)
    try:
        return record_classes()[schema.name].model_validate(fields)
    except ValidationError as error:
        raise InvalidEvent(f"{schema.name}: {_place(error)} breaks its schema", code="invalid_data") from error


def writer_schema(value: bytes) -> Schema:
    """The built-in schema that a value was written with.

    Raises:
        EventUnreadable: not_avro or unknown_schema.
    """
    if len(value) < HEADER_BYTES or value[: len(MARKER)] != MARKER:
        raise EventUnreadable(
            "the value is not in Avro single-object encoding (C3 01 and a fingerprint)", code="not_avro"
        )
    fingerprint = value[len(MARKER) : HEADER_BYTES]
    schema = by_fingerprint().get(fingerprint)
    if schema is None:
        raise EventUnreadable(f"no schema with fingerprint {fingerprint.hex()} is known", code="unknown_schema")
    return schema


def decode_fields(value: bytes, schema: Schema) -> dict[str, Any]:
    """The fields of a value as plain Python values, unchecked.

    Raises:
        EventUnreadable: truncated or trailing_bytes.
    """
    body = BytesIO(value)
    body.seek(HEADER_BYTES)
    try:
        # Broken bytes make the decoder raise whatever its branch happens to raise; none may end the fold.
        fields = schemaless_reader(body, schema.codec, None)
    except Exception as error:
        raise EventUnreadable(f"{schema.name} ends or breaks inside", code="truncated") from error
    left = len(value) - body.tell()
    if left:
        raise EventUnreadable(f"{schema.name} leaves {left} bytes over", code="trailing_bytes")
    return cast(dict[str, Any], fields)


def first_fault(error: ValidationError) -> str:
    """One line for a validation error: where, and what was expected. The value itself is not repeated."""
    fault = error.errors(include_url=False, include_input=False)[0]
    return f"{_place(error)}: {fault['msg']}"


def _place(error: ValidationError) -> str:
    """Where the first fault is, as a dotted path."""
    fault = error.errors(include_url=False, include_input=False)[0]
    return ".".join(str(part) for part in fault["loc"]) or "record"
