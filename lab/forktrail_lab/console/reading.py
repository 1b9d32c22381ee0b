"""Reads what a record holds, by a built-in schema or by one that its run declared."""

from __future__ import annotations

from typing import Any

from forktrail_projectors.graph.reads import plain
from forktrail_projectors.state import NodeKey
from forktrail_projectors.view import GraphView
from forktrail_schemas.body import plain_fields
from forktrail_schemas.declared import ForeignRecord, declared_schema
from forktrail_schemas.record import Record
from forktrail_schemas.wire import HEADER_BYTES, decode, decode_declared, foreign_fingerprint, writer_schema


def event_of(graph: GraphView, value: bytes) -> Record | ForeignRecord:
    """The record that a value holds, every field checked.

    Raises:
        EventUnreadable, InvalidEvent: as `wire.decode` and `wire.decode_declared`.
    """
    text = _declared_text(graph, value)
    return decode(value) if text is None else decode_declared(value, text)


def fields_of(graph: GraphView, value: bytes) -> dict[str, Any]:
    """The fields of a value, unchecked, as the schema has them that it was written under; fit for JSON.

    Raises:
        EventUnreadable: `code` is not_avro, unknown_schema, truncated or trailing_bytes.
    """
    text = _declared_text(graph, value)
    schema = writer_schema(value) if text is None else declared_schema(text)
    return {name: plain(field) for name, field in plain_fields(schema, value, HEADER_BYTES).items()}


def _declared_text(graph: GraphView, value: bytes) -> str | None:
    """The text of the schema that the run declared for such values; None where it declared none."""
    foreign = foreign_fingerprint(value)
    if foreign is None:
        return None
    key = NodeKey("Schema", foreign)
    row = graph.nodes([key]).get(key)
    return None if row is None else str(row["text"])
