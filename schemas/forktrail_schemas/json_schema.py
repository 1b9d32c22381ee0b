"""The part of JSON Schema (draft 2020-12) that a declared type may use, as checks that are made once.

Keywords: type, enum, const, minimum, maximum, exclusiveMinimum, exclusiveMaximum, minLength, maxLength, items,
minItems, maxItems, properties, required, additionalProperties (true or false), anyOf, $ref to $defs without recursion;
and the words that check nothing: title, description, default, examples, $schema, $defs.

Definitions are put in the place of what refers to them. So few words could ask for very many checks, at every value;
a schema may ask for CHECKS_MAX of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import cast

from forktrail_schemas.errors import InvalidInput
from forktrail_schemas.json_text import DEPTH_MAX, Json

CHECKS_MAX = 1_000
# Says what is wrong with a value: "" where nothing is, else a path from it and the fault, as ".stage: it is no string".
Check = Callable[[Json], str]

_OF_OBJECTS = frozenset({"properties", "required", "additionalProperties"})
_TELLING = frozenset({"title", "description", "default", "examples", "$schema", "$defs"})
_LENGTHS = ("minLength", "maxLength", "minItems", "maxItems")
_BOUNDS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
_CHECKING = frozenset({"type", "enum", "const", "items", "anyOf", "$ref", *_OF_OBJECTS, *_LENGTHS, *_BOUNDS})
_DEFS = "#/$defs/"

_TYPES: Mapping[str, Callable[[Json], bool]] = {
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    # 1.0 is an integer to JSON Schema.
    "integer": lambda value: (
        (isinstance(value, int) and not isinstance(value, bool)) or (isinstance(value, float) and value.is_integer())
    ),
}


def compile_schema(schema: Json) -> Check:
    """The check that a schema asks for.

    Raises:
        InvalidInput: it is no schema, says what can't be said here, or asks for too many checks.
    """
    return _Compiler(schema if isinstance(schema, dict) else {}).check_of(schema, 0)


def resolved(schema: Json, root: Mapping[str, Json]) -> Mapping[str, Json]:
    """A schema with the definition that it refers to in its place."""
    for _ in range(DEPTH_MAX):
        if not isinstance(schema, dict):
            return {}
        if "$ref" not in schema:
            return cast("Mapping[str, Json]", schema)
        schema = _definition(schema["$ref"], root)
    raise InvalidInput("the schema refers to itself")


class _Compiler:
    """Compiles one schema; counts what it asks for."""

    def __init__(self, root: Mapping[str, Json]) -> None:
        self._root = root
        self._count = 0

    def check_of(self, schema: Json, depth: int) -> Check:
        self._count += 1
        if self._count > CHECKS_MAX:
            raise InvalidInput(f"the schema asks for more than {CHECKS_MAX} checks")
        if depth > DEPTH_MAX:
            raise InvalidInput("the schema refers to itself, or is nested too deep", hint="keep deep data as JSON text")
        if schema is True:
            return _nothing
        if not isinstance(schema, dict):
            raise InvalidInput("a schema is an object, or true")
        for word in schema:
            if word not in _CHECKING and word not in _TELLING:
                raise InvalidInput(f"{word[:40]!r} can't be said in a declared type", hint="check it in the behavior")
        checks = self._checks(schema, depth)
        if len(checks) < 2:
            return checks[0] if checks else _nothing
        return lambda value: next(filter(None, (check(value) for check in checks)), "")

    def _checks(self, schema: Mapping[str, Json], depth: int) -> list[Check]:
        made: list[Check] = []
        if "$ref" in schema:
            made.append(self.check_of(_definition(schema["$ref"], self._root), depth + 1))
        if "type" in schema:
            made.append(_type_check(schema["type"]))
        if "enum" in schema:
            made.append(_choice(_listed(schema, "enum")))
        if "const" in schema:
            made.append(_choice([schema["const"]]))
        made += [_bound(word, schema[word]) for word in _BOUNDS if word in schema]
        made += [_length(word, schema[word]) for word in _LENGTHS if word in schema]
        if "items" in schema:
            made.append(_items(self.check_of(schema["items"], depth + 1)))
        if "anyOf" in schema:
            made.append(_any_of([self.check_of(part, depth + 1) for part in _listed(schema, "anyOf")]))
        if _OF_OBJECTS & schema.keys():
            made.append(self._object(schema, depth))
        return made

    def _object(self, schema: Mapping[str, Json], depth: int) -> Check:
        properties = schema.get("properties", {})
        required = schema.get("required", [])
        more = schema.get("additionalProperties", True)
        if not isinstance(properties, dict) or not isinstance(more, bool):
            raise InvalidInput("properties is an object, additionalProperties true or false")
        if not isinstance(required, list) or any(not isinstance(name, str) for name in required):
            raise InvalidInput("required is a list of names")
        checks = {name: self.check_of(part, depth + 1) for name, part in properties.items()}
        return _object(checks, tuple(required), more)


def _nothing(value: Json) -> str:
    return ""


def _definition(reference: Json, root: Mapping[str, Json]) -> Json:
    if not isinstance(reference, str) or not reference.startswith(_DEFS):
        raise InvalidInput("$ref can only name one of the schema's own $defs")
    definitions = root.get("$defs")
    name = reference[len(_DEFS) :].replace("~1", "/").replace("~0", "~")
    if not isinstance(definitions, dict) or name not in definitions:
        raise InvalidInput(f"$defs has no {name[:80]!r}")
    return definitions[name]


def _listed(schema: Mapping[str, Json], word: str) -> list[Json]:
    value = schema[word]
    if not isinstance(value, list) or not value:
        raise InvalidInput(f"{word} is a list with something in it")
    return value


def _type_check(kinds: Json) -> Check:
    names = kinds if isinstance(kinds, list) else [kinds]
    if not names or any(not isinstance(name, str) or name not in _TYPES for name in names):
        raise InvalidInput(f"a type is one of {', '.join(_TYPES)}")
    tests = [_TYPES[name] for name in names]
    wanted = " or ".join(names)
    return lambda value: "" if any(test(value) for test in tests) else f": it is no {wanted}"


def _choice(values: list[Json]) -> Check:
    def check(value: Json) -> str:
        return "" if any(_same(value, one) for one in values) else ": it is none of the values that it may be"

    return check


def _same(one: Json, other: Json) -> bool:
    """Equal as JSON Schema has it: numbers by their value, but true isn't 1."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(value, other[name]) for name, value in one.items())
    return bool(one == other)


def _bound(word: str, limit: Json) -> Check:
    if not _TYPES["number"](limit):
        raise InvalidInput(f"{word} is a number")
    outside: Callable[[Json], bool] = {
        "minimum": lambda value: value < limit,
        "maximum": lambda value: value > limit,
        "exclusiveMinimum": lambda value: value <= limit,
        "exclusiveMaximum": lambda value: value >= limit,
    }[word]
    return lambda value: f": it breaks {word} {limit}" if _TYPES["number"](value) and outside(value) else ""


def _length(word: str, limit: Json) -> Check:
    if type(limit) is not int or limit < 0:
        raise InvalidInput(f"{word} is a number of things, 0 or more")
    kind = str if word.endswith("Length") else list
    least = word.startswith("min")

    def check(value: Json) -> str:
        if not isinstance(value, kind):
            return ""
        return f": it breaks {word} {limit}" if (len(value) < limit if least else len(value) > limit) else ""

    return check


def _items(each: Check) -> Check:
    def check(value: Json) -> str:
        if not isinstance(value, list):
            return ""
        faults = ((place, each(item)) for place, item in enumerate(value))
        return next((f"[{place}]{fault}" for place, fault in faults if fault), "")

    return check


def _any_of(parts: list[Check]) -> Check:
    def check(value: Json) -> str:
        faults = [part(value) for part in parts]
        return "" if "" in faults else min(faults, key=lambda fault: fault.startswith(": it is no"))

    return check


def _object(checks: Mapping[str, Check], required: tuple[str, ...], more: bool) -> Check:
    def check(value: Json) -> str:
        if not isinstance(value, dict):
            return ""
        for name in required:
            if name not in value:
                return f".{name[:80]}: it is missing"
        for name, item in value.items():
            if name not in checks:
                if not more:
                    return f".{name[:80]}: there is no such property"
            elif fault := checks[name](item):
                return f".{name[:80]}{fault}"
        return ""

    return check
