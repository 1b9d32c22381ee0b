"""The text of a schema: read strictly as JSON, and its two names, the fingerprint and the digest.

What is made of a text depends on nothing but the text: not on the stack of whoever reads it, nor on the environment.
Sources: RFC 8259; Apache Avro 1.12 specification, "Parsing Canonical Form for Schemas" and "Schema Fingerprints".
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

from fastavro import parse_schema
from fastavro.schema import SchemaParseException, fingerprint, to_parsing_canonical_form

Json = Any  # a schema is JSON of any shape until schema_limits has read it

NESTING_MAX = 100
DIGITS_MAX = 19  # of a long
# What the bytes of a value depend on; a reader's schema has defaults and aliases beside.
_WRITERS_KEYS = {"type", "name", "namespace", "fields", "items", "values", "symbols", "size"}
_READERS_KEYS = _WRITERS_KEYS | {"default", "aliases"}


class BadSchema(ValueError):
    """A text or JSON value is no schema that can be read; the message says why, in words of ours alone."""


def read_json(text: str) -> Json:
    """Read JSON in which each object names a key once, numbers are short, and nothing is nested deep.

    Raises:
        BadSchema: it is none.
    """
    if _nesting(text) > NESTING_MAX:
        raise BadSchema(f"it is nested more than {NESTING_MAX} deep")
    try:
        found = json.loads(text, object_pairs_hook=_object, parse_int=_integer, parse_constant=_constant)
        json.dumps(found, ensure_ascii=False).encode()  # half a surrogate pair has no UTF-8
    except BadSchema:
        raise
    except ValueError:
        raise BadSchema("it is not JSON") from None
    return found


def schema_sha256(schema: Json) -> str:
    """Hex SHA-256 of a schema's text without docs: keys sorted, no white space. A schema's identity."""
    text = json.dumps(without(schema, "doc"), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def writers_schema(schema: Json) -> Json:
    """A schema as fastavro writes values with it and reads what was written.

    Nothing but what the bytes depend on: no logical types, since datetimes are slow and can't hold every long, no
    default that would be checked again and again, and no key that fastavro might take for one of its own.

    Raises:
        BadSchema: it doesn't take it.
    """
    return _parsed(schema, _WRITERS_KEYS)


def readers_schema(schema: Json) -> Json:
    """A schema as fastavro reads values into it that were written under another; of schemas that are built in.

    Raises:
        BadSchema: it doesn't take it.
    """
    return _parsed(schema, _READERS_KEYS)


def canonical_form(writers: Json) -> str:
    """The parsing canonical form of a `writers_schema`, or of a type in one."""
    return to_parsing_canonical_form(writers)


def schema_fingerprint(writers: Json) -> bytes:
    """The CRC-64-AVRO of a `writers_schema`'s canonical form, little-endian, as single-object encoding carries it."""
    return bytes.fromhex(fingerprint(canonical_form(writers), "CRC-64-AVRO"))


def without(schema: Json, key: str) -> Json:
    """The schema without an annotation, wherever it stands."""
    if isinstance(schema, dict):
        return {name: without(value, key) for name, value in schema.items() if name != key}
    if isinstance(schema, list):
        return [without(item, key) for item in schema]
    return schema


def _nesting(text: str) -> int:
    """How deep brackets are nested outside strings."""
    deepest = depth = 0
    in_string = escaped = False
    for char in text:
        if in_string:
            in_string = escaped or char != '"'
            escaped = char == "\\" and not escaped
        elif char == '"':
            in_string = True
        elif char in "[{":
            depth += 1
            deepest = max(deepest, depth)
        elif char in "]}":
            depth -= 1
    return deepest


def _object(pairs: list[tuple[str, Json]]) -> Json:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise BadSchema("an object names a key twice")
    return found


def _integer(digits: str) -> int:
    if len(digits.lstrip("-")) > DIGITS_MAX:
        raise BadSchema(f"a number has more than {DIGITS_MAX} digits")
    return int(digits)


def _constant(word: str) -> Json:
    raise BadSchema("it is not JSON")


def _parsed(schema: Json, keys: set[str]) -> Json:
    try:
        return parse_schema(_only(schema, keys))
    except (SchemaParseException, LookupError, TypeError, ValueError):
        raise BadSchema("it is no Avro schema") from None


def _only(schema: Json, keys: set[str]) -> Json:
    """The schema with these keys alone, wherever it stands; a default is a value and stays whole."""
    if isinstance(schema, dict):
        return {key: value if key == "default" else _only(value, keys) for key, value in schema.items() if key in keys}
    if isinstance(schema, list):
        return [_only(item, keys) for item in schema]
    return schema
