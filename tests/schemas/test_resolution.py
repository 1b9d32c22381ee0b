"""What keeps every record of one schema from being read as another: the specification's rules, fastavro's verdict."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from fastavro import parse_schema, schemaless_reader, schemaless_writer
from hypothesis import given
from hypothesis import strategies as st

from forktrail_schemas.catalog import published, schema_of, schema_of_text
from forktrail_schemas.declared import hindrances_as_built_in
from forktrail_schemas.events import EVENT_TYPES, ApprovalDecided, ReportFiled
from forktrail_schemas.record import Record
from forktrail_schemas.resolution import hindrances
from forktrail_schemas.schema_limits import parse_record
from support.drawn_schemas import Drawn, drawing, record_schemas

Json = Any
PRIMITIVES = ("boolean", "int", "long", "float", "double", "bytes", "string")
# The specification's list: which types a reader of the named one takes beside its own.
PROMOTIONS = {
    ("int", "long"), ("int", "float"), ("int", "double"), ("long", "float"), ("long", "double"), ("float", "double"),
    ("string", "bytes"), ("bytes", "string"),
}  # fmt: skip
COLOURS = {"type": "enum", "name": "Colour", "symbols": ["red", "green"]}


def found(writer: Json, reader: Json) -> list[str]:
    """The hindrances between two types, each the one field of a record."""
    of_writer, of_reader = (
        parse_record({"type": "record", "name": "R", "fields": [{"name": "f", "type": type}]})
        for type in (writer, reader)
    )
    return hindrances(of_writer, of_reader)


def renamed(schema: Json, top: str | None = None) -> Json:
    """The schema with each name telling the kind of its type.

    fastavro takes a fixed type for an enum of its name, and the like; the specification doesn't.
    """
    if isinstance(schema, list):
        return [renamed(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    made = {key: renamed(value) for key, value in schema.items()}
    if schema.get("type") in ("record", "enum", "fixed"):
        made["name"] = top or f"{schema['type']}_{schema['name']}"
    return made


@pytest.mark.parametrize("reader", PRIMITIVES)
@pytest.mark.parametrize("writer", PRIMITIVES)
def test_a_primitive_is_read_as_itself_and_as_what_it_is_promoted_to(writer: str, reader: str) -> None:
    readable = writer == reader or (writer, reader) in PROMOTIONS
    assert found(writer, reader) == ([] if readable else [f"f: {writer} can't be read as {reader}"])


@pytest.mark.parametrize(
    ("writer", "reader", "readable"),
    [
        (["null", "string"], "string", True),  # where it is not null
        (["null", "int"], "string", False),
        ("string", ["null", "string"], True),
        ("boolean", ["null", "string"], False),
        (["null", "boolean"], ["null", "string"], True),  # where it is null
        (COLOURS, {**COLOURS, "symbols": ["green", "blue"]}, True),
        (COLOURS, {**COLOURS, "symbols": ["blue"]}, False),
        (COLOURS, {**COLOURS, "symbols": ["blue"], "default": "blue"}, True),
        (COLOURS, {**COLOURS, "name": "Color"}, False),
        (COLOURS, {**COLOURS, "name": "Color", "aliases": ["Colour"]}, True),
        (COLOURS, "string", False),
        ({"type": "array", "items": "int"}, {"type": "array", "items": "long"}, True),
        ({"type": "array", "items": "long"}, {"type": "array", "items": "int"}, False),
        ({"type": "array", "items": "int"}, {"type": "map", "values": "int"}, False),
        ({"type": "map", "values": "int"}, {"type": "map", "values": "string"}, False),
        ({"type": "fixed", "name": "F", "size": 4}, {"type": "fixed", "name": "F", "size": 4}, True),
        ({"type": "fixed", "name": "F", "size": 4}, {"type": "fixed", "name": "F", "size": 8}, False),
    ],
)
def test_other_types_by_the_specifications_rules(writer: Json, reader: Json, readable: bool) -> None:
    assert (found(writer, reader) == []) is readable


@pytest.mark.parametrize("cls", EVENT_TYPES, ids=lambda cls: str(cls.__name__))
def test_every_published_version_can_be_read_as_itself(cls: type[Record]) -> None:
    for schema in published()[cls.TYPE]:
        assert hindrances(schema.type, schema.type) == []


def test_each_field_that_is_missing_or_of_another_type_is_named() -> None:
    schema = json.loads(schema_of(ApprovalDecided).text)
    schema["fields"] = [field for field in schema["fields"] if field["name"] != "reason"]
    (decision,) = [field for field in schema["fields"] if field["name"] == "decision"]
    decision["type"]["symbols"] = ["perhaps"]
    meta = schema["fields"][0]["type"]
    (run,) = [field for field in meta["fields"] if field["name"] == "run"]
    run["type"] = "int"
    assert hindrances_as_built_in(schema_of_text(json.dumps(schema))) == [
        "meta.run: int can't be read as string",
        "decision: none of its symbols is known",
        "reason: it is missing",
    ]


def test_a_field_with_a_default_may_be_missing_and_others_may_come() -> None:
    schema = json.loads(schema_of(ReportFiled).text)
    schema["fields"] = [field for field in schema["fields"] if "default" not in field]
    schema["fields"].append({"name": "severity", "type": "int"})
    assert hindrances_as_built_in(schema_of_text(json.dumps(schema))) == []


def test_a_name_that_is_not_built_in_is_hindered_by_nothing() -> None:
    text = json.dumps({"type": "record", "name": "Anything", "fields": [{"name": "f", "type": "int"}]})
    assert hindrances_as_built_in(schema_of_text(text)) == []


@drawing
@given(record_schemas(), record_schemas(), st.data())
def test_fastavro_reads_no_value_that_is_said_to_be_hindered(writer: Drawn, reader: Drawn, data: st.DataObject) -> None:
    of_writer, of_reader = renamed(writer.schema, "Top"), renamed(reader.schema, "Top")
    if not hindrances(parse_record(of_writer), parse_record(of_reader)):
        return
    written, read = parse_schema(of_writer), parse_schema(of_reader)
    body = io.BytesIO()
    schemaless_writer(body, written, data.draw(writer.values))
    body.seek(0)
    with pytest.raises(Exception):  # noqa: B017, PT011  # of several types
        schemaless_reader(body, written, read)
