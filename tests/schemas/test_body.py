"""Bodies: as the specification and another implementation have them, and hostile ones."""

from __future__ import annotations

import io
import json
import time
import tracemalloc
from typing import Any

import avro.io
import avro.schema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from forktrail_schemas.body import Incompatible, body_of, plain_fields, resolved, written
from forktrail_schemas.catalog import Schema, schema_of, schema_of_text
from forktrail_schemas.declared import declared_reader
from forktrail_schemas.errors import EventUnreadable
from forktrail_schemas.events import EARLIER_VERSIONS, EVENT_TYPES, OTHER_TYPES, ReportFiled
from forktrail_schemas.record import Record
from forktrail_schemas.schema_limits import WRAPPED_MAX
from forktrail_schemas.schema_text import readers_schema
from support import avro as by_hand
from support.drawn_schemas import Drawn, drawing, drawing_for_each, fields_of, record_schemas
from support.samples import meta

CLASSES: list[type[Record]] = [*EVENT_TYPES, *OTHER_TYPES, *EARLIER_VERSIONS]
every_class = pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: str(cls.__name__))


def fields(*listed: dict[str, Any], name: str = "R") -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": list(listed)}


def one(type: Any) -> dict[str, Any]:
    """A record with one field `a`."""
    return fields({"name": "a", "type": type})


def schema(json_schema: Any) -> Schema:
    return schema_of_text(json.dumps(json_schema))


def by_apache(json_schema: Any, body: bytes) -> Any:
    """What the `avro` package reads."""
    reader = avro.io.DatumReader(avro.schema.parse(json.dumps(json_schema)))
    return reader.read(avro.io.BinaryDecoder(io.BytesIO(body)))


@drawing
@given(st.data(), record_schemas())
def test_a_body_is_read_as_another_implementation_reads_it_and_not_cut_or_longer(
    data: st.DataObject, drawn: Drawn
) -> None:
    value, under = data.draw(drawn.values), schema(drawn.schema)
    body = written(under, value)
    assert plain_fields(under, b"before" + body, 6) == by_apache(drawn.schema, body) == value
    with pytest.raises(EventUnreadable) as caught:
        plain_fields(under, body + b"over", 0)
    assert caught.value.code == "trailing_bytes"
    for end in range(len(body)):
        with pytest.raises(EventUnreadable) as caught:
            plain_fields(under, body[:end], 0)
        assert caught.value.code == "truncated"


@drawing
@given(record_schemas(), st.binary(max_size=300))
def test_bytes_of_any_kind_are_read_or_a_fault(drawn: Drawn, body: bytes) -> None:
    under = schema(drawn.schema)
    try:
        found = plain_fields(under, body, 0, branches_named=True)
    except EventUnreadable:
        return
    again = written(under, found)
    assert repr(plain_fields(under, again, 0, branches_named=True)) == repr(found)  # NaN is not itself


@every_class
@drawing_for_each
@given(st.data())
def test_a_record_is_written_as_another_implementation_reads_it_and_comes_back(
    cls: type[Record], data: st.DataObject
) -> None:
    text = schema_of(cls).text
    record = cls.model_validate(data.draw(fields_of(json.loads(text))))
    body = body_of(cls).write(record)
    untimed = json.loads(text, object_hook=lambda part: {k: v for k, v in part.items() if k != "logicalType"})
    assert cls.model_validate(by_apache(untimed, body)) == record
    assert body_of(cls).read(body, 0) == record


# Values that a strict reader of the schema might take for others.
LOOKALIKES: list[Any] = [None, True, False, 0, 1, -1, 1.0, 2**31, 2**63, "", "a", "A", b"a", [], (), ["a"], ("a",), {}]
LOOKALIKES += ["\n", "a\n", "\ud800", "a\0", "x" * 300, "é" * 300, "a" * 70_000, ("a",) * 2_000, float("nan"), object()]


class Text(str):
    """A text that says it is another."""

    def encode(self, *_: Any, **__: Any) -> bytes:
        return b"something else"


@every_class
@drawing_for_each
@given(st.data())
def test_what_a_copy_with_another_value_takes_comes_back_as_it_was(cls: type[Record], data: st.DataObject) -> None:
    record = cls.model_validate(data.draw(fields_of(json.loads(schema_of(cls).text))))
    place = data.draw(st.sampled_from(sorted(_places(record))))
    value = data.draw(st.sampled_from([*LOOKALIKES, Text("a")]))
    try:
        altered = _altered(record, place.split("."), value)
    except ValidationError:
        return
    assert body_of(cls).read(body_of(cls).write(altered), 0) == cls.model_validate(altered.model_dump())


def _places(record: Record) -> list[str]:
    """The dotted paths of a record's fields, those of records in it included."""
    found = []
    for name, value in record:
        found.append(name)
        if isinstance(value, Record):
            found += [f"{name}.{inner}" for inner in _places(value)]
    return found


def _altered(record: Record, path: list[str], value: Any) -> Record:
    if len(path) > 1:
        value = _altered(getattr(record, path[0]), path[1:], value)
    return record.model_copy(update={path[0]: value})


@pytest.mark.parametrize(
    ("type", "body"),
    [
        ("string", by_hand.long(-1) + b"ab"),
        ("string", by_hand.long(2**62) + b"ab"),
        ("string", b"\x04\xff\xfe"),
        ("bytes", by_hand.long(-1)),
        ("float", b"\x00" * 3),
        ("double", b"\x00" * 7),
        ({"type": "fixed", "name": "F", "size": 2**31 - 1}, b"\x00" * 100),
        ({"type": "enum", "name": "E", "symbols": ["x"]}, by_hand.long(1)),
        (["null", "int"], by_hand.long(2)),
        ({"type": "array", "items": "int"}, by_hand.long(-(2**63)) + by_hand.long(2) + b"\x02\x00"),
    ],
)
def test_a_body_that_the_specification_does_not_allow_is_truncated(type: Any, body: bytes) -> None:
    with pytest.raises(EventUnreadable) as caught:
        plain_fields(schema(one(type)), body, 0)
    assert (caught.value.code, caught.value.message) == ("truncated", "R ends or breaks inside")


# Bodies that claim much and hold little, of at most a megabyte.

MEGABYTE = 1_000_000
BOOLEANS: Any = {"type": "array", "items": "boolean"}
ENDLESS = by_hand.long(2**62)
WRAPPED: Any = "boolean"
for level in range(WRAPPED_MAX):
    WRAPPED = fields({"name": "a", "type": WRAPPED}, name=f"L{level}")


@pytest.mark.parametrize(
    ("type", "body"),
    [
        (BOOLEANS, ENDLESS),
        (BOOLEANS, ENDLESS + b"\x01" * 900_000),
        (BOOLEANS, by_hand.long(-(2**62)) + ENDLESS + b"\x01" * 900_000),
        (BOOLEANS, b"\x02\x01" * 450_000),  # a block for each item
        ({"type": "array", "items": "int"}, ENDLESS + b"\x02" * 900_000),
        ("long", b"\x80" * 900_000),
        ({"type": "map", "values": "boolean"}, ENDLESS + b"\x00\x01" * 450_000),
        ({"type": "array", "items": ["null", "boolean"]}, ENDLESS + b"\x00" * 900_000),
        ({"type": "array", "items": BOOLEANS}, ENDLESS + b"\x00" * 900_000),
        ({"type": "array", "items": {"type": "fixed", "name": "F", "size": 2**31 - 1}}, ENDLESS + b"\x00" * 900_000),
    ],
)
def test_a_body_is_read_in_time_and_memory_of_its_size(type: Any, body: bytes) -> None:
    under = schema(fields({"name": "a", "type": type}, {"name": "b", "type": "int"}))
    started = time.process_time()
    with pytest.raises(EventUnreadable):
        plain_fields(under, body, 0)
    assert time.process_time() - started < 5
    traced = body[: MEGABYTE // 50]
    assert _peak(under, traced) < 200 * len(traced) + MEGABYTE // 10


def test_records_that_a_body_pays_one_byte_for_take_a_bounded_memory() -> None:
    under = schema(fields({"name": "a", "type": {"type": "array", "items": WRAPPED}}, {"name": "b", "type": "int"}))
    body = ENDLESS + b"\x01" * (MEGABYTE // 50)
    assert _peak(under, body) < 1_000 * len(body)


def _peak(under: Schema, body: bytes) -> int:
    tracemalloc.start()
    try:
        with pytest.raises(EventUnreadable):
            plain_fields(under, body, 0)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_what_is_passed_over_in_a_declared_record_ends_with_its_bytes() -> None:
    """fastavro passes over booleans without looking for the end, and believes the size of a block."""
    json_schema = json.loads(schema_of(ReportFiled).text)
    json_schema["fields"] += [{"name": "more", "type": BOOLEANS}, {"name": "most", "type": BOOLEANS}]
    under = schema(json_schema)
    report = body_of(ReportFiled).write(ReportFiled.model_validate({"meta": meta(), "test_id": "t", "summary": "s"}))
    reader = declared_reader(under.text)
    started = time.process_time()
    with pytest.raises(EventUnreadable) as caught:
        reader.read(report + ENDLESS + b"\x01" * 1_000, 0)
    assert caught.value.code == "truncated"
    # One item in a block that claims three bytes: whoever believes it finds a count of 2**62 after them.
    lying = b"\x01" + by_hand.long(3) + b"\x01\x00" + by_hand.long(len(ENDLESS)) + ENDLESS + b"\x00"
    assert isinstance(reader.read(report + lying, 0), ReportFiled)
    assert time.process_time() - started < 5


# Resolution: writer's type, its value, reader's type, and what is read.

E_AB, E_A = ({"type": "enum", "name": "E", "symbols": symbols} for symbols in (["a", "b"], ["a"]))
RESOLVED = [
    ("int", 5, "long", 5),
    ("int", 5, "double", 5.0),
    ("long", 2**40, "float", float(2**40)),
    ("float", 1.5, "double", 1.5),
    ("string", "é", "bytes", "é".encode()),
    ("bytes", b"ab", "string", "ab"),
    ("int", 5, ["null", "int"], 5),
    ("int", 5, ["null", "string", "long"], 5),
    (["null", "int"], 5, "long", 5),
    (["null", "int"], None, ["int", "null"], None),
    (["int", "string"], "x", ["string", "null"], "x"),
    (E_AB, "a", E_A, "a"),
    (E_AB, "b", {**E_A, "default": "a"}, "a"),
    (E_A, "a", {**E_AB, "name": "other.E"}, "a"),
    ({"type": "array", "items": "int"}, [1], {"type": "array", "items": "long"}, [1]),
    ({"type": "map", "values": "int"}, {"k": 1}, {"type": "map", "values": ["null", "int"]}, {"k": 1}),
    ({"type": "fixed", "name": "F", "size": 2}, b"ab", {"type": "fixed", "name": "n.F", "size": 2}, b"ab"),
]
UNRESOLVED = [
    ("long", 5, "int"),
    ("double", 5.0, "long"),
    ("int", 5, "string"),
    ("string", "5", "int"),
    (["null", "int"], None, "int"),
    (["int", "string"], "x", ["int", "null"]),
    (E_AB, "b", E_A),
    (E_A, "a", {**E_A, "name": "Other"}),
    ({"type": "array", "items": "int"}, [1], {"type": "map", "values": "int"}),
    ({"type": "array", "items": "string"}, ["x"], {"type": "array", "items": "int"}),
    ({"type": "fixed", "name": "F", "size": 2}, b"ab", {"type": "fixed", "name": "F", "size": 3}),
]


@pytest.mark.parametrize(("writer", "value", "reader", "expected"), RESOLVED)
def test_a_value_is_resolved_as_the_specification_says(writer: Any, value: Any, reader: Any, expected: Any) -> None:
    under = schema(one(writer))
    assert resolved(under, written(under, {"a": value}), readers_schema(one(reader))) == {"a": expected}


@pytest.mark.parametrize(("writer", "value", "reader"), UNRESOLVED)
def test_a_value_that_has_no_counterpart_is_incompatible(writer: Any, value: Any, reader: Any) -> None:
    under = schema(one(writer))
    with pytest.raises(Incompatible):
        resolved(under, written(under, {"a": value}), readers_schema(one(reader)))


def test_fields_are_matched_by_name_and_alias_dropped_and_defaulted() -> None:
    a = {"name": "a", "type": "int"}
    b: dict[str, Any] = {"name": "b", "type": {"type": "array", "items": "string"}, "default": ["x"]}
    under = schema(fields({"name": "gone", "type": BOOLEANS}, a, {"name": "old", "type": "string"}))
    body = written(under, {"gone": [True], "a": 1, "old": "kept"})
    new = {"name": "new", "type": "string", "aliases": ["old"]}
    assert resolved(under, body, readers_schema(fields(new, b, a))) == {"new": "kept", "b": ["x"], "a": 1}
    with pytest.raises(Incompatible):
        resolved(under, body, readers_schema(fields(a, {"name": "c", "type": "int"})))
