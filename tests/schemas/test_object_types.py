"""Declared types, held against the `jsonschema` library, and the columns that their data lie in."""

from __future__ import annotations

import json
from typing import Any, Literal

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from forktrail_schemas.errors import InvalidInput
from forktrail_schemas.json_schema import CHECKS_MAX, compile_schema
from forktrail_schemas.json_text import canonical_json, read_json
from forktrail_schemas.object_types import BadData, PropertyKind, object_type, relation_type
from support.drawn_schemas import drawing

Json = Any
WORDS = ("a", "b", "count", "é")

scalars = (
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.sampled_from([0.0, 0.5, 1.0, -2.5, 1e20])
    | st.sampled_from(["", "a", "b", "abc", "é😀"])
)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(WORDS), inner, max_size=3)
)
_types = st.sampled_from(["string", "integer", "number", "boolean", "null", "array", "object"])


def _object(inner: st.SearchStrategy[Json]) -> st.SearchStrategy[Json]:
    return st.fixed_dictionaries(
        {"properties": st.dictionaries(st.sampled_from(WORDS), inner, max_size=3)},
        optional={
            "type": st.just("object"),
            "required": st.lists(st.sampled_from(WORDS), max_size=2, unique=True),
            "additionalProperties": st.booleans(),
        },
    )


_leaves = st.one_of(
    st.just(True),
    st.fixed_dictionaries({"$ref": st.sampled_from(["#/$defs/Word", "#/$defs/Pair"])}),
    st.fixed_dictionaries(
        {},
        optional={
            "type": _types | st.lists(_types, min_size=1, max_size=3, unique=True),
            "enum": st.lists(values, min_size=1, max_size=3),
            "const": values,
            "minimum": st.integers(-2, 2),
            "exclusiveMinimum": st.sampled_from([-1, 0.5]),
            "maximum": st.sampled_from([0, 1.5]),
            "exclusiveMaximum": st.integers(-2, 2),
            "minLength": st.integers(0, 2),
            "maxLength": st.integers(0, 2),
            "minItems": st.integers(0, 2),
            "maxItems": st.integers(0, 2),
            "title": st.just("T"),
            "default": values,
        },
    ),
)
schemas = st.recursive(
    _leaves,
    lambda inner: (
        st.fixed_dictionaries({"items": inner}, optional={"type": st.just("array")})
        | st.fixed_dictionaries({"anyOf": st.lists(inner, min_size=1, max_size=3)})
        | _object(inner)
    ),
    max_leaves=6,
)
DEFS = {
    "Word": {"type": "string", "enum": ["a", "b"]},
    "Pair": {"type": "object", "properties": {"a": {"$ref": "#/$defs/Word"}}, "required": ["a"]},
}


def by_jsonschema(schema: Json, value: Json) -> bool:
    return bool(jsonschema.Draft202012Validator(schema).is_valid(value))


@drawing
@given(schemas, st.lists(values, min_size=1, max_size=8))
def test_a_value_is_right_where_jsonschema_says_so(schema: Json, some: list[Json]) -> None:
    whole = {**schema, "$defs": DEFS} if isinstance(schema, dict) else schema
    check = compile_schema(whole)
    for value in some:
        assert (check(value) == "") is by_jsonschema(whole, value), value


@drawing
@given(st.dictionaries(st.sampled_from(("a", "b", "c")), schemas, min_size=1), st.data())
def test_data_are_right_where_jsonschema_says_so_and_every_column_has_a_value_of_its_kind(
    properties: dict[str, Json], data: st.DataObject
) -> None:
    required = data.draw(st.lists(st.sampled_from(sorted(properties)), unique=True))
    schema = {"type": "object", "properties": properties, "required": required, "$defs": DEFS}
    declared = object_type("Thing", json.dumps(schema), ())
    given_data = data.draw(st.dictionaries(st.sampled_from((*properties, "z")), values))
    strict = {**schema, "additionalProperties": False}
    right = by_jsonschema(strict, given_data)
    try:
        columns = declared.check(given_data)
    except BadData:
        # What lies plainly in an integer's column has to fit it; 1e20 is an integer to JSON Schema.
        assert not right or any(declared.columns[name] is PropertyKind.INTEGER for name in given_data)
        return
    assert right
    assert columns.keys() == declared.columns.keys() == properties.keys()
    for name, value in columns.items():
        assert value is None or type(value) is TYPES[declared.columns[name]]
        assert value == (None if given_data.get(name) is None else expected(declared.columns[name], given_data[name]))


TYPES: dict[PropertyKind, type] = {
    PropertyKind.TEXT: str,
    PropertyKind.JSON: str,
    PropertyKind.INTEGER: int,
    PropertyKind.NUMBER: float,
    PropertyKind.BOOLEAN: bool,
    PropertyKind.TEXTS: tuple,
}


def expected(kind: PropertyKind, value: Json) -> object:
    if kind is PropertyKind.JSON:
        return canonical_json(value)
    return tuple(value) if kind is PropertyKind.TEXTS else value


# What pydantic writes.


class Address(BaseModel):
    street: str
    number: int | None = None


class Company(BaseModel):
    """As a pack declares one."""

    name: str
    founded: int | None = None
    share: float = 0.5
    listed: bool = False
    stage: Literal["seed", "grown"] = "seed"
    tags: list[str] = []
    address: Address | None = None
    numbers: list[int] = []


def company() -> Any:
    return object_type("Company", json.dumps(Company.model_json_schema()), ())


def test_a_pydantic_models_properties_have_the_kinds_that_one_expects() -> None:
    assert {name: str(kind) for name, kind in company().columns.items()} == {
        "name": "text",
        "founded": "integer",
        "share": "number",
        "listed": "boolean",
        "stage": "text",
        "tags": "texts",
        "address": "json",
        "numbers": "json",
    }


def test_defaults_are_not_filled_in() -> None:
    assert company().check({"name": "Acme"}) == {"name": "Acme", **dict.fromkeys(list(Company.model_fields)[1:])}


def test_nested_data_are_canonical_json() -> None:
    columns = company().check({"name": "A", "address": {"street": "é", "number": 1.0}, "numbers": [2, 1]})
    assert (columns["address"], columns["numbers"]) == ('{"number":1,"street":"é"}', "[2,1]")


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({}, "name: it is missing"),
        ({"name": None}, "name: it is no string"),
        ({"name": "A", "phone": 1}, "phone: Company has no such property"),
        ({"name": "A", "stage": "old"}, "stage: it is none of the values that it may be"),
        ({"name": "A", "address": {"number": 1}}, "address.street: it is missing"),
        ({"name": "A", "numbers": [1, "2"]}, "numbers[1]: it is no integer"),
        ({"name": "A\0"}, "name: its text holds NUL, which graph engines cut texts at"),
        ({"name": "A", "tags": ["\0"]}, "tags: its text holds NUL, which graph engines cut texts at"),
        ({"name": "A", "founded": 1e20}, "founded: it is an integer beyond 2^53 - 1"),
        ({"name": "A", "listed": 1}, "listed: it is no boolean"),
    ],
)
def test_bad_data_name_the_property_and_the_fault(data: dict[str, Json], said: str) -> None:
    with pytest.raises(BadData) as caught:
        company().check(data)
    assert caught.value.message == said


def test_a_change_gives_what_it_names_and_null_clears_what_may_be_missing() -> None:
    declared = company()
    assert declared.check({"share": 1, "tags": None, "founded": None}, whole=False) == {
        "share": 1.0,
        "tags": None,
        "founded": None,
    }
    for wrong in ({"name": None}, {"share": "1"}, {"phone": None}):
        with pytest.raises(BadData):
            declared.check(wrong, whole=False)


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string", "pattern": "^a"},
        {"type": "string", "format": "date"},
        {"type": "array", "uniqueItems": True},
        {"allOf": [{"type": "string"}]},
        {"type": "text"},
        {"type": []},
        {"enum": []},
        {"enum": "a"},
        {"anyOf": []},
        {"minimum": "1"},
        {"minLength": -1},
        {"maxItems": 1.5},
        {"$ref": "https://example.com/schema"},
        {"$ref": "#/$defs/Missing"},
        {"$ref": "#/$defs/Loop"},
        {"properties": []},
        {"required": "a"},
        {"additionalProperties": {"type": "string"}},
        False,
        7,
    ],
)
def test_what_cannot_be_said_is_refused_at_the_declaration(schema: Json) -> None:
    text = json.dumps(
        {"type": "object", "properties": {"a": schema}, "$defs": {"Loop": {"items": {"$ref": "#/$defs/Loop"}}}}
    )
    with pytest.raises(InvalidInput):
        object_type("Thing", text, ())


def test_few_words_cannot_ask_for_very_many_checks() -> None:
    """Each definition names the next one twice: 2^30 checks, of one value."""
    defs: dict[str, Json] = {f"D{n}": {"anyOf": [{"$ref": f"#/$defs/D{n + 1}"}] * 2} for n in range(15)}
    schema = {"type": "object", "properties": {"a": {"$ref": "#/$defs/D0"}}, "$defs": {**defs, "D15": {"type": "null"}}}
    with pytest.raises(InvalidInput, match=str(CHECKS_MAX)):
        object_type("Thing", json.dumps(schema), ())


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": {"id": {"type": "string"}}},
        {"type": "object", "properties": {"Name": {"type": "string"}}},
        {"type": "object", "properties": {"a" * 64: {"type": "string"}}},
        {"type": "object", "required": ["a"]},
        {"type": "object", "anyOf": [{"required": ["a"]}]},
        {"properties": {}},
        [],
    ],
)
def test_a_type_is_of_objects_with_properties_of_plain_names(schema: Json) -> None:
    with pytest.raises(InvalidInput):
        object_type("Thing", json.dumps(schema), ())


def test_a_reference_is_a_text() -> None:
    schema = json.dumps({"type": "object", "properties": {"about": {"type": "string"}, "n": {"type": "integer"}}})
    assert dict(object_type("Claim", schema, ("about=Company",)).references) == {"about": "Company"}
    for reference in ("n=Company", "missing=Company"):
        with pytest.raises(InvalidInput):
            object_type("Claim", schema, (reference,))


def test_a_relation_type_joins_something() -> None:
    text = '{"type":"object"}'
    assert relation_type("HAS", text, ("A",), ("B", "C")).targets == ("B", "C")
    with pytest.raises(InvalidInput):
        relation_type("HAS", text, (), ("B",))


# JSON texts.


@drawing
@given(values)
def test_canonical_json_comes_back(value: Json) -> None:
    assert read_json(canonical_json(value)) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("-0.0", 0.0),
        ("-0", 0),
        ("9007199254740991", 2**53 - 1),
        ("100000000000000000000", 1e20),
        (' "\\ud83d\\ude00"', "😀"),
    ],
)
def test_json_is_read(text: str, value: Json) -> None:
    found = read_json(text)
    assert (found, type(found), str(found)) == (value, type(value), str(value))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "nul",
        "NaN",
        "Infinity",
        "-Infinity",
        "1e999",
        "01",
        "'a'",
        '"\n"',
        "{} {}",
        '{"a":1,"a":1}',
        '{"a":{"b":1,"b":2}}',
        "9007199254740993",
        "1" * 400,
        '"\\ud800"',
        '{"\\udc00":1}',
        "[" * 33 + "]" * 33,
        '{"a":' * 33 + "1" + "}" * 33,
        "[" * 100_000,
    ],
)
def test_what_not_every_reader_reads_alike_is_no_json(text: str) -> None:
    with pytest.raises(InvalidInput):
        read_json(text)


def test_brackets_in_a_text_are_no_depth() -> None:
    assert read_json(json.dumps(["[" * 100 + '\\"{' * 20])) == ["[" * 100 + '\\"{' * 20]
    assert read_json("[" * 32 + "]" * 32) != []
