"""Reads types from a schema's JSON, by the rules of the specification and some stricter ones.

Stricter, so that no body can keep its reader busy for long or fill its memory: a type doesn't contain itself, is at
most DEPTH_MAX types deep, and takes at least one byte; only a branch of a union may be null; and of records that hold
one field each, which a body pays one byte for together, at most WRAPPED_MAX lie in each other.
Source: Apache Avro 1.12 specification, "Schema Declaration".
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TypeGuard

from forktrail_schemas.schema_text import BadSchema, Json
from forktrail_schemas.schema_types import (
    MISSING,
    PRIMITIVES,
    Array,
    AvroType,
    Enum,
    Field,
    Fixed,
    Map,
    Named,
    Primitive,
    RecordType,
    Union,
    short_name,
)

DEPTH_MAX = 32
WRAPPED_MAX = 3
NAME_LENGTH_MAX = 256
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_FULL_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*")
_INT_MAX = 2**31 - 1
_OF_A_FIELD = {"name", "type", "default", "aliases", "doc", "order"}


def parse_record(schema: Json) -> RecordType:
    """The type of a record's schema.

    Raises:
        BadSchema: it is no record schema, or one of those that aren't read.
    """
    found = _Parser().type(schema, "", "it")
    if not isinstance(found, RecordType):
        raise BadSchema("it is not a record")
    return found


class _Parser:
    """Reads one schema; knows the names that it has defined so far."""

    def __init__(self) -> None:
        self._known: dict[str, Named] = {}
        self._open: set[str] = set()

    def type(self, schema: Json, namespace: str, place: str) -> AvroType:
        if isinstance(schema, str):
            return Primitive(schema) if schema in PRIMITIVES else self._reference(schema, namespace, place)
        if isinstance(schema, list):
            return self._union(schema, namespace, place)
        if not isinstance(schema, dict) or "type" not in schema:
            raise BadSchema(f"{place} has no type")
        kind = schema["type"]
        if kind == "record":
            return self._record(schema, namespace, place)
        if kind == "enum":
            return self._enum(schema, namespace, place)
        if kind == "fixed":
            return self._fixed(schema, namespace, place)
        if kind == "array":
            items = self._filled(schema.get("items"), namespace, f"an item of {place}")
            return Array(items, _deeper([items], place))
        if kind == "map":
            values = self._filled(schema.get("values"), namespace, f"a value of {place}")
            return Map(values, _deeper([values], place))
        return self.type(kind, namespace, place)

    def _filled(self, schema: Json, namespace: str, place: str) -> AvroType:
        """A type that takes a byte at least: any but null, since an empty record or fixed is no type here."""
        found = self.type(schema, namespace, place)
        if isinstance(found, Primitive) and found.name == "null":
            raise BadSchema(f"{place} is null, and only a branch of a union may be")
        return found

    def _reference(self, name: str, namespace: str, place: str) -> Named:
        full = name if "." in name or not namespace else f"{namespace}.{name}"
        if full in self._open:
            raise BadSchema(f"{full} contains itself")
        if full not in self._known:
            raise BadSchema(f"{place} has a type that isn't defined before it")
        return self._known[full]

    def _union(self, schema: list[Json], namespace: str, place: str) -> Union:
        branches = tuple(self.type(branch, namespace, f"a branch of {place}") for branch in schema)
        kinds = [_union_kind(branch) for branch in branches]
        if not branches or "union" in kinds or len(set(kinds)) < len(kinds):
            raise BadSchema(f"{place} is no union of different types")
        return Union(branches, _deeper(branches, place))

    def _record(self, schema: Json, namespace: str, place: str) -> RecordType:
        name, inner = self._define(schema, namespace, place)
        fields = schema.get("fields")
        if not isinstance(fields, list) or not fields:
            raise BadSchema(f"{name} has no fields")
        self._open.add(name)
        found = tuple(self._field(field, inner, name) for field in fields)
        self._open.discard(name)
        if len({field.name for field in found}) < len(found):
            raise BadSchema(f"{name} has two fields of one name")
        if _wrapped(found) > WRAPPED_MAX:
            raise BadSchema(f"{name} has more than {WRAPPED_MAX} records of one field in each other")
        depth = _deeper([field.type for field in found], name)
        ours = schema.get("forktrail", {})
        record = RecordType(name, _aliases(schema, inner), found, ours if isinstance(ours, dict) else {}, depth)
        self._known[name] = record
        return record

    def _field(self, field: Json, namespace: str, record: str) -> Field:
        if not isinstance(field, dict):
            raise BadSchema(f"a field of {record} is no object")
        name = field.get("name")
        if not _is_name(name):
            raise BadSchema(f"a field of {record} has no name")
        place = f"{record}.{name}"
        type = self._filled(field.get("type"), namespace, place)
        default = default_value(type, field["default"], place) if "default" in field else MISSING
        return Field(name, type, _aliases(field, ""), default, _attributes(field))

    def _enum(self, schema: Json, namespace: str, place: str) -> Enum:
        name, inner = self._define(schema, namespace, place)
        symbols, default = schema.get("symbols"), schema.get("default")
        if not isinstance(symbols, list) or not symbols:
            raise BadSchema(f"{name} has no symbols")
        if not all(map(_is_name, symbols)):
            raise BadSchema(f"{name} has a symbol that is no name")
        if len(set(symbols)) < len(symbols):
            raise BadSchema(f"{name} has a symbol twice")
        if default is not None and default not in symbols:
            raise BadSchema(f"{name} has a default that is none of its symbols")
        found = Enum(name, _aliases(schema, inner), tuple(symbols), default)
        self._known[name] = found
        return found

    def _fixed(self, schema: Json, namespace: str, place: str) -> Fixed:
        name, inner = self._define(schema, namespace, place)
        size = schema.get("size")
        if type(size) is not int or not 0 < size <= _INT_MAX:
            raise BadSchema(f"{name} has no size, or none from 1 to {_INT_MAX}")
        found = Fixed(name, _aliases(schema, inner), size)
        self._known[name] = found
        return found

    def _define(self, schema: Json, namespace: str, place: str) -> tuple[str, str]:
        """The full name of a definition, and the namespace inside it."""
        name, space = schema.get("name"), schema.get("namespace", namespace)
        if not _is_full_name(name):
            raise BadSchema(f"{place} defines a type without a name")
        if space != "" and not _is_full_name(space):
            raise BadSchema(f"{place} has a namespace that is none")
        full = name if "." in name or not space else f"{space}.{name}"
        if len(full) > NAME_LENGTH_MAX:
            raise BadSchema(f"{place} defines a type with a name of more than {NAME_LENGTH_MAX} characters")
        if short_name(full) in PRIMITIVES or full in self._known or full in self._open:
            raise BadSchema(f"{full} is defined already")
        return full, full.rpartition(".")[0]


def default_value(type: AvroType, default: Json, place: str) -> object:
    """A default as a Python value; of a union, that of the first branch that may take it.

    Raises:
        BadSchema: it is no value of the type.
    """
    if isinstance(type, Union):
        fitting = next((branch for branch in type.branches if _may_take(branch, default)), None)
        if fitting is not None:
            return default_value(fitting, default, place)
    elif not _may_take(type, default):
        pass
    elif isinstance(type, Array):
        return [default_value(type.items, item, place) for item in default]
    elif isinstance(type, Map):
        return {key: default_value(type.values, value, place) for key, value in default.items()}
    elif isinstance(type, RecordType):
        return {field.name: _field_default(field, default, place) for field in type.fields}
    elif isinstance(type, Fixed) or type.name == "bytes":
        return default.encode("latin-1")  # bytes stand in JSON as the text of their code points
    else:
        return float(default) if type.name in ("float", "double") else default
    raise BadSchema(f"{place} has a default that is none of its type")


def _may_take(type: AvroType, default: Json) -> bool:
    """Whether a default is of a type, without looking into it: so a union's branch is chosen at once."""
    if isinstance(type, Array):
        return isinstance(default, list)
    if isinstance(type, Map | RecordType):
        return isinstance(default, dict)
    if isinstance(type, Enum):
        return default in type.symbols
    if isinstance(type, Fixed):
        return _is_primitive("bytes", default) and len(default) == type.size
    return isinstance(type, Primitive) and _is_primitive(type.name, default)


def _field_default(field: Field, default: dict[str, Json], place: str) -> object:
    if field.name in default:
        return default_value(field.type, default[field.name], place)
    if field.default is MISSING:
        raise BadSchema(f"{place} has a default that lacks a field")
    return field.default


def _is_primitive(name: str, value: Json) -> bool:
    if name == "null":
        return value is None
    if name == "boolean":
        return isinstance(value, bool)
    if name in ("int", "long"):
        limit = 2**31 if name == "int" else 2**63
        return type(value) is int and -limit <= value < limit
    if name in ("float", "double"):
        return type(value) in (int, float)
    return isinstance(value, str) and (name == "string" or all(ord(char) < 256 for char in value))


def _wrapped(fields: Sequence[Field]) -> int:
    """How many records of one field lie in each other, the one with these fields included."""
    count = 0
    while len(fields) == 1:
        count += 1
        (only,) = fields
        fields = only.type.fields if isinstance(only.type, RecordType) else ()
    return count


def _union_kind(type: AvroType) -> str:
    """What may stand only once in a union."""
    if isinstance(type, Array | Map | Union):
        return {Array: "array", Map: "map", Union: "union"}[type.__class__]
    return type.name


def _aliases(schema: Json, namespace: str) -> tuple[str, ...]:
    aliases = schema.get("aliases", [])
    if not isinstance(aliases, list) or not all(_is_full_name(name) for name in aliases):
        raise BadSchema("aliases are no list of names")
    return tuple(name if "." in name or not namespace else f"{namespace}.{name}" for name in aliases)


def _is_name(name: Json) -> TypeGuard[str]:
    return isinstance(name, str) and len(name) <= NAME_LENGTH_MAX and _NAME.fullmatch(name) is not None


def _is_full_name(name: Json) -> TypeGuard[str]:
    return isinstance(name, str) and _FULL_NAME.fullmatch(name) is not None


def _attributes(field: Json) -> Mapping[str, Json]:
    return {key: value for key, value in field.items() if key not in _OF_A_FIELD}


def _deeper(types: Sequence[AvroType], place: str) -> int:
    depth = 1 + max(type.depth for type in types)
    if depth > DEPTH_MAX:
        raise BadSchema(f"{place} is more than {DEPTH_MAX} types deep")
    return depth
