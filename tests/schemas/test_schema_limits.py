from __future__ import annotations

import json
import time
from typing import Any

import avro.schema
import pytest
from hypothesis import given

from forktrail_schemas.schema_limits import DEPTH_MAX, NAME_LENGTH_MAX, WRAPPED_MAX, parse_record
from forktrail_schemas.schema_text import BadSchema, canonical_form, writers_schema
from forktrail_schemas.schema_types import MISSING, RecordType
from support.drawn_schemas import Drawn, drawing, record_schemas


def record(*types: Any, name: str = "R", **more: Any) -> dict[str, Any]:
    """A record with a field `f0`, `f1` … of each type."""
    fields = [{"name": f"f{index}", "type": type} for index, type in enumerate(types)]
    return {"type": "record", "name": name, "fields": fields, **more}


NO_UNION = "R.f0 is no union of different types"
TOO_LONG = f"it defines a type with a name of more than {NAME_LENGTH_MAX} characters"
NULL = "is null, and only a branch of a union may be"
ENUM = {"type": "enum", "name": "E", "symbols": ["a", "b"]}


def test_the_canonical_form_is_the_specifications() -> None:
    # Worked by hand: full names, short primitives, no attributes, the order name, type, fields, symbols, items, values,
    # size, and a name alone where it is defined before.
    schema = {
        "fields": [
            {"default": 1, "type": {"type": "int", "logicalType": "date"}, "doc": "x", "name": "a", "order": "ignore"},
            {
                "name": "b",
                "type": [{"type": "null"}, {"size": 2, "name": "other.F", "type": "fixed", "aliases": ["G"]}],
            },
            {"name": "c", "type": {"items": {"values": "other.F", "type": "map"}, "type": "array"}},
            {"name": "d", "type": {"symbols": ["x"], "name": "E", "type": "enum", "default": "x"}},
            {"name": "e", "type": "E"},
        ],
        "namespace": "n.s",
        "name": "R",
        "type": "record",
    }
    assert canonical_form(writers_schema(schema)) == (
        '{"name":"n.s.R","type":"record","fields":[{"name":"a","type":"int"},'
        '{"name":"b","type":["null",{"name":"other.F","type":"fixed","size":2}]},'
        '{"name":"c","type":{"type":"array","items":{"type":"map","values":"other.F"}}},'
        '{"name":"d","type":{"name":"n.s.E","type":"enum","symbols":["x"]}},{"name":"e","type":"n.s.E"}]}'
    )


@drawing
@given(record_schemas())
def test_the_canonical_form_is_that_of_another_implementation(drawn: Drawn) -> None:
    parse_record(drawn.schema)
    ours = canonical_form(writers_schema(drawn.schema))
    assert ours == avro.schema.parse(json.dumps(drawn.schema)).canonical_form


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ("string", "it is not a record"),
        (ENUM, "it is not a record"),
        (["null", record("int")], "it is not a record"),
        (None, "it has no type"),
        ({"name": "R"}, "it has no type"),
        ({"type": "error", "name": "R", "fields": []}, "it has a type that isn't defined before it"),
        ({"type": "record", "fields": []}, "it defines a type without a name"),
        (record("int", name="1R"), "it defines a type without a name"),
        (record("int", name="a\x00b"), "it defines a type without a name"),
        (record("int", name="R\n"), "it defines a type without a name"),
        (record("int", name="a." * 200 + "R"), TOO_LONG),
        (record("int", namespace="."), "it has a namespace that is none"),
        (record("int", namespace=5), "it has a namespace that is none"),
        (record("int", name="string"), "string is defined already"),
        (record(), "R has no fields"),
        ({"type": "record", "name": "R", "fields": {}}, "R has no fields"),
        ({"type": "record", "name": "R", "fields": ["int"]}, "a field of R is no object"),
        ({"type": "record", "name": "R", "fields": [{"type": "int"}]}, "a field of R has no name"),
        ({"type": "record", "name": "R", "fields": [{"name": "a-b", "type": "int"}]}, "a field of R has no name"),
        ({"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}] * 2}, "R has two fields of one name"),
        ({"type": "record", "name": "R", "fields": [{"name": "a"}]}, "R.a has no type"),
        (record("integer"), "R.f0 has a type that isn't defined before it"),
        (record("R"), "R contains itself"),
        (record(["null", "R"]), "R contains itself"),
        (record({"type": "array", "items": "R"}), "R contains itself"),
        (record(record("R", name="S")), "R contains itself"),
        (record(ENUM, ENUM), "E is defined already"),
        (record("null"), f"R.f0 {NULL}"),
        (record({"type": "array", "items": "null"}), f"an item of R.f0 {NULL}"),
        (record({"type": "map", "values": {"type": "null"}}), f"a value of R.f0 {NULL}"),
        (record({"type": "array"}), "an item of R.f0 has no type"),
        (record([]), NO_UNION),
        (record(["int", "int"]), NO_UNION),
        (record(["null", ["int"]]), NO_UNION),
        (record([{"type": "map", "values": "int"}, {"type": "map", "values": "long"}]), NO_UNION),
        (record({**ENUM, "symbols": []}), "E has no symbols"),
        (record({**ENUM, "symbols": ["a", "a"]}), "E has a symbol twice"),
        (record({**ENUM, "symbols": ["a", 1]}), "E has a symbol that is no name"),
        (record({**ENUM, "default": "c"}), "E has a default that is none of its symbols"),
        (record({"type": "fixed", "name": "F", "size": 0}), f"F has no size, or none from 1 to {2**31 - 1}"),
        (record({"type": "fixed", "name": "F", "size": True}), f"F has no size, or none from 1 to {2**31 - 1}"),
        (record({"type": "fixed", "name": "F", "size": 2**31}), f"F has no size, or none from 1 to {2**31 - 1}"),
        (record("int", aliases="A"), "aliases are no list of names"),
    ],
)  # fmt: skip
def test_what_is_not_read_is_refused_in_words(schema: Any, said: str) -> None:
    with pytest.raises(BadSchema) as caught:
        parse_record(schema)
    assert str(caught.value) == said


def defaulted(type: Any, default: Any) -> RecordType:
    return parse_record({"type": "record", "name": "R", "fields": [{"name": "a", "type": type, "default": default}]})


@pytest.mark.parametrize(
    ("type", "default", "value"),
    [
        ("boolean", True, True),
        ("int", -(2**31), -(2**31)),
        ("long", 2**63 - 1, 2**63 - 1),
        ("double", 1, 1.0),
        ("string", "é", "é"),
        ("bytes", "\xff\x00", b"\xff\x00"),
        ({"type": "fixed", "name": "F", "size": 2}, "\x01\xfe", b"\x01\xfe"),
        (ENUM, "b", "b"),
        ({"type": "array", "items": "int"}, [1, 2], [1, 2]),
        ({"type": "map", "values": "long"}, {"k": 1}, {"k": 1}),
        (["null", "int"], None, None),
        (["null", "int"], 5, 5),
        (record("int", name="S"), {"f0": 1}, {"f0": 1}),
    ],
)
def test_a_default_is_a_value_of_its_type(type: Any, default: Any, value: Any) -> None:
    found = defaulted(type, default).fields[0].default
    assert (found, found.__class__) == (value, value.__class__)


def test_a_records_default_takes_the_defaults_of_the_fields_that_it_lacks() -> None:
    inner = {"type": "record", "name": "S", "fields": [{"name": "x", "type": "int", "default": 7}]}
    assert defaulted(inner, {}).fields[0].default == {"x": 7}
    assert parse_record(record("int")).fields[0].default is MISSING


@pytest.mark.parametrize(
    ("type", "default"),
    [
        ("boolean", 1),
        ("int", True),
        ("int", 1.0),
        ("int", 2**31),
        ("long", 2**63),
        ("double", "1"),
        ("string", None),
        ("bytes", "\u0100"),
        ({"type": "fixed", "name": "F", "size": 2}, "a"),
        (ENUM, "c"),
        (ENUM, []),
        ({"type": "array", "items": "int"}, [1, "2"]),
        ({"type": "map", "values": "long"}, {"k": "v"}),
        ({"type": "map", "values": "long"}, []),
        (["null", "int"], "x"),
        (record("int", name="S"), {}),
        (record("int", name="S"), 1),
    ],
)
def test_a_default_that_is_none_of_its_type_is_refused(type: Any, default: Any) -> None:
    with pytest.raises(BadSchema, match=r"R\.a has a default that"):
        defaulted(type, default)


def nested(depth: int) -> Any:
    """A record that is so many types deep, the innermost an int."""
    schema: Any = "int"
    for level in range(depth - 1):
        schema = record(schema, "int", name=f"R{level}")
    return schema


def test_how_deep_types_may_lie_is_bounded() -> None:
    assert parse_record(nested(DEPTH_MAX)).depth == DEPTH_MAX
    with pytest.raises(BadSchema, match="types deep"):
        parse_record(nested(DEPTH_MAX + 1))


def wrapped(count: int) -> Any:
    """So many records of one field in each other."""
    schema: Any = "boolean"
    for level in range(count):
        schema = record(schema, name=f"R{level}")
    return schema


def test_how_many_records_of_one_field_lie_in_each_other_is_bounded() -> None:
    """A body may pay one byte for all of them, and each takes some two hundred bytes of memory."""
    parse_record(wrapped(WRAPPED_MAX))
    parse_record(record(["null", wrapped(WRAPPED_MAX)], name="Around"))  # the branch takes a byte
    for around in (wrapped(WRAPPED_MAX + 1), record({"type": "array", "items": wrapped(WRAPPED_MAX + 1)}, name="S")):
        with pytest.raises(BadSchema, match="records of one field in each other"):
            parse_record(around)
    listed = record({"type": "array", "items": record("R0", name="R9")}, "int", name="S")
    listed["fields"].insert(0, {"name": "first", "type": wrapped(WRAPPED_MAX)})
    parse_record(listed)
    listed["fields"][1]["type"]["items"] = record(f"R{WRAPPED_MAX - 1}", name="R9")
    with pytest.raises(BadSchema, match="records of one field in each other"):
        parse_record(listed)


def chain(length: int) -> Any:
    """Records side by side, each of two of the one before: 2**length values, and little text."""
    fields: list[Any] = [{"name": "r0", "type": record("int", name="R0")}]
    for level in range(1, length):
        fields.append({"name": f"r{level}", "type": record(f"R{level - 1}", f"R{level - 1}", name=f"R{level}")})
    return {"type": "record", "name": "Chain", "fields": fields}


def test_types_that_are_named_again_and_again_are_read_in_the_time_of_their_text() -> None:
    started = time.process_time()
    parse_record(chain(DEPTH_MAX - 2))
    writers_schema(chain(DEPTH_MAX - 2))
    with pytest.raises(BadSchema, match="types deep"):
        parse_record(chain(600))
    defaults = record("int", name="R0")
    defaults["fields"][0]["default"] = 0
    for level in range(1, DEPTH_MAX - 1):
        fields = [{"name": name, "type": f"R{level - 1}", "default": {}} for name in "bc"]
        fields.insert(0, {"name": "a", "type": defaults, "default": {}})
        defaults = {"type": "record", "name": f"R{level}", "fields": fields}
    parse_record(defaults)
    writers_schema(defaults)
    assert time.process_time() - started < 1
