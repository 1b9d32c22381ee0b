"""Avro schemas that chance draws, each with a strategy of its values; and records of our own types."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

Json = Any
INT_MAX, LONG_MAX = 2**31 - 1, 2**63 - 1
DEPTH = 3
# A busy machine is slow now and then; that is no fault of what is tested.
drawing = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True)
drawing_for_each = settings(drawing, max_examples=25)  # where a test runs for each of our types


@dataclass(frozen=True)
class Drawn:
    """A schema and what may be written under it, as fastavro takes it."""

    schema: Json
    values: st.SearchStrategy[Any]


PRIMITIVES: dict[str, st.SearchStrategy[Any]] = {
    "boolean": st.booleans(),
    "int": st.integers(-INT_MAX - 1, INT_MAX),
    "long": st.integers(-LONG_MAX - 1, LONG_MAX),
    "float": st.floats(width=32, allow_nan=False),
    "double": st.floats(allow_nan=False),
    "bytes": st.binary(max_size=200),
    "string": st.text(max_size=200),
}


# Of each format the shortest and the longest text, and lengths of one, two and three bytes of length.
TEXTS: dict[str, list[str]] = {
    "uuid": ["00000000-0000-7000-8000-000000000000", "017f22e2-79b0-7cc3-98c4-dc0c0c07398f"],
    "sha256": ["0" * 64, "0123456789abcdef" * 4],
    "public-key": ["f" * 64, "a1" * 32],
    "fingerprint": ["0" * 16, "0123456789abcdef"],
    "run-id": ["0", "run-3f9a1c2b7d4e", "z" + "-" * 62],
    "slug": ["a", "9._-", "s" + "." * 62, "s" * 64, "t" * 127],
    "local-id": ["a-00000000", "case-0123456789abcdef0123", "z" * 32 + "-" + "f-" * 32],
    "goal-id": ["goal-0123456789abcdef0123"],
    "name": [" ", "é", "x" * 63, "x" * 64, "😀" * 256],
    "line": ["", " ", "é", "x" * 64, "😀" * 256],
    "text": ["", "a", "é😀\n\t", "x" * 63, "x" * 64, "é" * 4_095, "x" * 8_192, "😀" * 65_536],
    "json": ["0", "null", ' {"é": [1.5e-3, "\\u0000"]}\n', '"' + "😀" * 65_534 + '"', "[" * 32 + "]" * 32],
    "object-type": ["A", "Company", "Z9" + "z" * 61],
    "relation-type": ["A", "HAS_2", "Z" + "_" * 62],
    "property": ["a", "due_at", "z" + "9" * 62],
}


class _Namer:
    """Gives each type of one schema a name of its own."""

    def __init__(self) -> None:
        self._given = 0

    def __call__(self) -> str:
        self._given += 1
        return f"T{self._given}"


@st.composite
def record_schemas(draw: st.DrawFn) -> Drawn:
    """A record schema, nested a few types deep."""
    return _record(draw, _Namer(), DEPTH)


def _record(draw: st.DrawFn, name: _Namer, depth: int) -> Drawn:
    fields = {f"f{index}": _type(draw, name, depth) for index in range(draw(st.integers(1, 4)))}
    listed = [{"name": field, "type": part.schema} for field, part in fields.items()]
    schema = {"type": "record", "name": name(), "fields": listed}
    return Drawn(schema, st.fixed_dictionaries({field: part.values for field, part in fields.items()}))


def _type(draw: st.DrawFn, name: _Namer, depth: int) -> Drawn:
    kinds: list[Callable[[st.DrawFn, _Namer, int], Drawn]] = [_primitive, _enum, _fixed]
    kinds += [_record, _array, _map, _nullable] if depth else []
    return draw(st.sampled_from(kinds))(draw, name, depth - 1)


def _primitive(draw: st.DrawFn, name: _Namer, depth: int) -> Drawn:
    kind = draw(st.sampled_from(sorted(PRIMITIVES)))
    return Drawn(kind, PRIMITIVES[kind])


def _enum(draw: st.DrawFn, name: _Namer, depth: int) -> Drawn:
    symbols = [f"S{index}" for index in range(draw(st.sampled_from([1, 2, 70])))]
    return Drawn({"type": "enum", "name": name(), "symbols": symbols}, st.sampled_from(symbols))


def _fixed(draw: st.DrawFn, name: _Namer, depth: int) -> Drawn:
    size = draw(st.integers(1, 8))
    return Drawn({"type": "fixed", "name": name(), "size": size}, st.binary(min_size=size, max_size=size))


def _array(draw: st.DrawFn, name: _Namer, depth: int) -> Drawn:
    items = _type(draw, name, depth)
    return Drawn({"type": "array", "items": items.schema}, st.lists(items.values, max_size=4))


def _map(draw: st.DrawFn, name: _Namer, depth: int) -> Drawn:
    values = _type(draw, name, depth)
    return Drawn(
        {"type": "map", "values": values.schema}, st.dictionaries(st.text(max_size=5), values.values, max_size=4)
    )


def _nullable(draw: st.DrawFn, name: _Namer, depth: int) -> Drawn:
    part = _primitive(draw, name, depth)
    schema = ["null", part.schema] if draw(st.booleans()) else [part.schema, "null"]
    return Drawn(schema, st.none() | part.values)


def fields_of(schema: Json) -> st.SearchStrategy[dict[str, Any]]:
    """Fields of one of our own record schemas, right by its formats and bounds."""
    return _fields(schema, {})


def _fields(schema: Json, named: dict[str, Json]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({field["name"]: _values(field["type"], field, named) for field in schema["fields"]})


def _values(schema: Json, field: Json, named: dict[str, Json]) -> st.SearchStrategy[Any]:
    if isinstance(schema, list):
        return st.one_of([_values(branch, field, named) for branch in schema])
    if not isinstance(schema, dict):
        return _values(named[schema], field, named) if schema in named else _scalars(schema, field)
    kind = schema["type"]
    if "name" in schema:
        named[schema["name"]] = schema
    if kind == "record":
        return _fields(schema, named)
    if kind == "enum":
        return st.sampled_from(schema["symbols"])
    if kind == "array":
        least, most = field.get("minimum_items", 0), min(field.get("maximum_items", 70), 70)
        return st.lists(_values(schema["items"], field, named), min_size=least, max_size=most)
    return _scalars(kind, field)


def _scalars(kind: str, field: Json) -> st.SearchStrategy[Any]:
    if kind == "null":
        return st.none()
    if kind in ("boolean", "bytes"):
        return st.booleans() if kind == "boolean" else st.binary(max_size=200)
    if kind == "string":
        return st.sampled_from(TEXTS[field["format"]])
    least, most = (-INT_MAX - 1, INT_MAX) if kind == "int" else (-LONG_MAX - 1, LONG_MAX)
    return st.integers(field.get("minimum", least), field.get("maximum", most))
