"""Schemas that a run may declare, and values written under them: by fastavro, as another service would."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache, cached_property
from io import BytesIO
from typing import Any, cast

from fastavro import parse_schema, schemaless_reader, schemaless_writer
from fastavro.schema import fingerprint, to_parsing_canonical_form

from forktrail_schemas import events
from forktrail_schemas.catalog import schema_of
from forktrail_schemas.events.base import Event
from forktrail_schemas.wire import HEADER_BYTES, MARKER


@dataclass(frozen=True)
class ForeignSchema:
    """The text of a schema that isn't built in."""

    text: str

    @cached_property
    def fingerprint(self) -> str:
        """CRC-64-AVRO of its parsing canonical form, little-endian, in hex."""
        return fingerprint(to_parsing_canonical_form(json.loads(self.text)), "CRC-64-AVRO")

    def value(self, fields: dict[str, Any]) -> bytes:
        """Fields as a single-object encoded value."""
        body = BytesIO()
        schemaless_writer(body, _parsed(self.text), fields)
        return MARKER + bytes.fromhex(self.fingerprint) + body.getvalue()

    def wrote(self, value: bytes) -> bool:
        """Whether a value was written under it."""
        return value[len(MARKER) : HEADER_BYTES].hex() == self.fingerprint

    def fields(self, value: bytes) -> dict[str, Any]:
        """The fields of a value that was."""
        return cast("dict[str, Any]", schemaless_reader(BytesIO(value[HEADER_BYTES:]), _parsed(self.text), None))


def other_type(name: str, default: int = 0) -> ForeignSchema:
    """A record of a type that this code doesn't know."""
    percent = {"name": "percent", "type": "int", "default": default}
    return ForeignSchema(json.dumps({"type": "record", "name": name, "namespace": "acme", "fields": [percent]}))


def later_goal() -> ForeignSchema:
    """A later version of GoalSet, with `links` more; it reads as the one that this code knows."""
    schema = json.loads(schema_of(events.GoalSet).text)
    schema["fields"].append({"name": "links", "type": {"type": "array", "items": "string"}, "default": []})
    return ForeignSchema(json.dumps(schema))


def broken_goal() -> ForeignSchema:
    """A GoalSet whose text is a number, which can't be read as one."""
    schema = json.loads(schema_of(events.GoalSet).text)
    schema["fields"][-1]["type"] = "long"
    return ForeignSchema(json.dumps(schema))


def fields_of(event: Event, **more: Any) -> dict[str, Any]:
    """An event's fields as plain values, some of them others."""
    return {**event.model_dump(), **more}


@cache
def _parsed(text: str) -> dict[str, Any]:
    return cast("dict[str, Any]", parse_schema(json.loads(text, object_hook=_untimed)))


def _untimed(schema: dict[str, Any]) -> dict[str, Any]:
    """Without what would make times of plain numbers."""
    return {name: value for name, value in schema.items() if name != "logicalType"}
