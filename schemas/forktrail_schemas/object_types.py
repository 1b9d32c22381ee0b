"""Types of objects and relations that a run declares: what their data may be, and the columns it lies in.

A type's schema is JSON Schema (draft 2020-12), held to what pydantic writes for plain models, so that what it means
depends on no library. What can't be said here (a pattern, a format) is refused at the declaration; behaviors check it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache
from types import MappingProxyType

from forktrail_schemas.errors import InvalidInput
from forktrail_schemas.json_schema import Check, compile_schema, resolved
from forktrail_schemas.json_text import INTEGER_MAX, Json, canonical_json, read_json

RESERVED = frozenset({"id", "version", "retired", "created_event", "created_offset", "changed_event", "changed_offset"})
TYPES_CACHED = 512
_PROPERTY = re.compile(r"[a-z][a-z0-9_]{0,62}")
# `required` and `properties` are checked by name, and additional properties are refused whatever the schema says.
_AT_THE_TOP = {
    "type",
    "properties",
    "required",
    "additionalProperties",
    "title",
    "description",
    "examples",
    "default",
} | {
    "$schema",
    "$defs",
}

Column = str | int | float | bool | tuple[str, ...] | None


class PropertyKind(StrEnum):
    """How a property lies in the graph."""

    TEXT = "text"
    INTEGER = "integer"
    NUMBER = "number"
    BOOLEAN = "boolean"
    TEXTS = "texts"
    JSON = "json"


# Which kinds of property a merge rule is for.
MERGED_KINDS: Mapping[str, tuple[PropertyKind, ...]] = {
    "max": (PropertyKind.INTEGER, PropertyKind.NUMBER, PropertyKind.TEXT),
    "min": (PropertyKind.INTEGER, PropertyKind.NUMBER, PropertyKind.TEXT),
    "sum": (PropertyKind.INTEGER,),
    "union": (PropertyKind.TEXTS,),
    "any": (PropertyKind.BOOLEAN,),
    "all": (PropertyKind.BOOLEAN,),
}


class BadData(InvalidInput):
    """Data breaks its declared type; the message begins with the property."""

    code = "bad_data"


@dataclass(frozen=True)
class DataType:
    """The data of a declared type.

    Attributes:
        columns: the kind of each property, in the schema's order.
        required: properties that must be there.
    """

    name: str
    columns: Mapping[str, PropertyKind]
    required: frozenset[str]
    _checks: Mapping[str, Check] = field(repr=False)

    def check(self, data: Mapping[str, Json], *, whole: bool = True) -> dict[str, Column]:
        """The columns of some data.

        Args:
            whole: every column is given, None where the data says nothing; otherwise the data is a change: only what
                it names, and null clears what isn't required.

        Raises:
            BadData: naming the property and what is wrong with it.
        """
        for name in data:
            if name not in self._checks:
                raise BadData(f"{name[:80]}: {self.name} has no such property")
        if whole:
            for name in sorted(self.required - data.keys()):
                raise BadData(f"{name}: it is missing")
        made: dict[str, Column] = dict.fromkeys(self.columns) if whole else {}
        for name, value in data.items():
            if value is None and not whole and name not in self.required:
                made[name] = None
                continue
            fault = self._checks[name](value)
            if fault:
                raise BadData(f"{name}{fault}")
            made[name] = _column(name, self.columns[name], value)
        return made


@dataclass(frozen=True)
class ObjectType(DataType):
    """An object type.

    Attributes:
        references: the type of the object that a property holds the id of, by the property.
        merge: how frames that change a property come together, by the property.
    """

    references: Mapping[str, str] = field(default_factory=dict)
    merge: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class RelationType(DataType):
    """A relation type: which object types it joins."""

    sources: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()


@lru_cache(TYPES_CACHED)
def object_type(name: str, schema: str, references: tuple[str, ...], merge: tuple[str, ...] = ()) -> ObjectType:
    """The object type of a declaration.

    Args:
        schema: JSON text.
        references: each "property=Type".
        merge: each "property=rule".

    Raises:
        InvalidInput: the schema is none, or says what can't be said here; a reference is no text property; or a
            property's values can't be merged by its rule.
    """
    columns, required, checks = _properties(schema)
    named = dict(reference.split("=", 1) for reference in references)
    for name_of, target in named.items():
        if columns.get(name_of) is not PropertyKind.TEXT:
            raise InvalidInput(f"{name_of}: a reference to {target} must be a property of type string")
    rules = dict(rule.split("=", 1) for rule in merge)
    for name_of, rule in rules.items():
        if columns.get(name_of) not in MERGED_KINDS[rule] or name_of in named:
            kinds = " or ".join(MERGED_KINDS[rule])
            raise InvalidInput(f"{name_of}: only a property of kind {kinds} is merged by {rule}")
    return ObjectType(name, columns, required, checks, MappingProxyType(named), MappingProxyType(rules))


@lru_cache(TYPES_CACHED)
def relation_type(name: str, schema: str, sources: tuple[str, ...], targets: tuple[str, ...]) -> RelationType:
    """The relation type of a declaration; see `object_type`."""
    columns, required, checks = _properties(schema)
    if not sources or not targets:
        raise InvalidInput("a relation type names what it joins: at least one source and one target")
    return RelationType(name, columns, required, checks, sources, targets)


def _properties(text: str) -> tuple[Mapping[str, PropertyKind], frozenset[str], Mapping[str, Check]]:
    schema = read_json(text)
    if not isinstance(schema, dict) or schema.get("type") != "object":
        raise InvalidInput('the schema must say "type": "object"')
    beside = sorted(schema.keys() - _AT_THE_TOP)
    if beside:
        raise InvalidInput(f"{beside[0][:80]!r} can't be said of the data as a whole", hint="say it of a property")
    compile_schema(schema)  # refuses what can't be said
    properties = schema.get("properties", {})
    for name in properties:
        if name in RESERVED:
            raise InvalidInput(f"{name}: the name is taken, every object has it")
        if not _PROPERTY.fullmatch(name):
            raise InvalidInput(f"{name[:80]}: a property's name is a to z, 0 to 9 and _, at most 63, a letter first")
    columns = {name: _kind(part, schema) for name, part in properties.items()}
    definitions = {"$defs": schema.get("$defs", {})}
    checks = {name: compile_schema(_with(part, definitions)) for name, part in properties.items()}
    required = frozenset(schema.get("required", ()))
    if not required <= columns.keys():
        raise InvalidInput(f"{min(required - columns.keys())[:80]}: it is required and isn't among the properties")
    return MappingProxyType(columns), required, MappingProxyType(checks)


def _with(part: Json, definitions: Mapping[str, Json]) -> Json:
    """A property's schema as one that stands alone."""
    return {**part, **definitions} if isinstance(part, dict) else part


_PLAIN: Mapping[str, PropertyKind] = {
    "string": PropertyKind.TEXT,
    "integer": PropertyKind.INTEGER,
    "number": PropertyKind.NUMBER,
    "boolean": PropertyKind.BOOLEAN,
}


def _kind(schema: Json, root: Mapping[str, Json]) -> PropertyKind:
    """How a property's values lie in the graph: plainly where all of them are of one plain type, or null."""
    schema = resolved(schema, root)
    if "anyOf" in schema:
        kinds = {_kind(part, root) for part in schema["anyOf"] if resolved(part, root).get("type") != "null"}
        return kinds.pop() if len(kinds) == 1 else PropertyKind.JSON
    kind = schema.get("type")
    if isinstance(kind, list):
        plain = [name for name in kind if name != "null"]
        kind = plain[0] if len(plain) == 1 else None
    elif kind is None and (values := schema.get("enum", [schema["const"]] if "const" in schema else [])):
        return PropertyKind.TEXT if all(isinstance(value, str) for value in values) else PropertyKind.JSON
    if kind == "array" and _kind(schema.get("items", True), root) is PropertyKind.TEXT:
        return PropertyKind.TEXTS if resolved(schema["items"], root).get("type") == "string" else PropertyKind.JSON
    return _PLAIN.get(str(kind), PropertyKind.JSON)


def _column(name: str, kind: PropertyKind, value: Json) -> Column:
    if value is None:
        return None
    if kind is PropertyKind.NUMBER:
        return float(value)
    if kind is PropertyKind.INTEGER:
        if abs(value) > INTEGER_MAX:
            raise BadData(f"{name}: it is an integer beyond 2^53 - 1")
        return int(value)
    if kind is PropertyKind.JSON:
        return canonical_json(value)
    texts: list[str] = value if kind is PropertyKind.TEXTS else [value] if kind is PropertyKind.TEXT else []
    if any("\0" in one for one in texts):
        raise BadData(f"{name}: its text holds NUL, which graph engines cut texts at")
    if kind is PropertyKind.TEXTS:
        return tuple(texts)
    plain: Column = value
    return plain
