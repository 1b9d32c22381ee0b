"""The built-in schemas: read from `avsc/` on first use, found by type name or by fingerprint."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Any

from fastavro.schema import fingerprint, parse_schema, to_parsing_canonical_form

from forktrail_schemas.events import EVENT_TYPES, RunAnnounced
from forktrail_schemas.record import Record

FINGERPRINT_BYTES = 8
Json = Any  # an Avro schema is JSON of any shape; fastavro checks it when it parses it


@dataclass(frozen=True)
class Schema:
    """One record type as it stands in its `.avsc`.

    Attributes:
        name: full Avro name.
        text: the file's text; all that another service needs to read and write the type.
        sha256: hex digest of the schema without docs; its identity.
        fingerprint: CRC-64-AVRO of the parsing canonical form, little-endian, as single-object encoding carries it.
        codec: the schema as fastavro wants it, times left as plain integers.
    """

    name: str
    text: str
    sha256: str
    fingerprint: bytes
    codec: Json


@cache
def schemas() -> Mapping[str, Schema]:
    """Every built-in schema by full name."""
    folder = resources.files("forktrail_schemas") / "avsc"
    found = [_read(path) for path in _avsc_files(folder) if path.name.removesuffix(".avsc") in _published()]
    return {schema.name: schema for schema in sorted(found, key=lambda schema: schema.name)}


@cache
def by_fingerprint() -> Mapping[bytes, Schema]:
    """Every built-in schema by its fingerprint."""
    return {schema.fingerprint: schema for schema in schemas().values()}


@cache
def record_classes() -> Mapping[str, type[Record]]:
    """Every record class by full Avro name."""
    return {cls.TYPE: cls for cls in (*EVENT_TYPES, RunAnnounced)}


def schema_of(record: Record | type[Record]) -> Schema:
    """The schema of a record or record class."""
    return schemas()[record.TYPE]


def schema_sha256(schema: object) -> str:
    """Hex SHA-256 of a schema's text without docs: keys sorted, no white space."""
    text = json.dumps(_without(schema, "doc"), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def _published() -> set[str]:
    return {name.rpartition(".")[2] for name in record_classes()}


def _avsc_files(folder: Traversable) -> list[Traversable]:
    return [path for family in folder.iterdir() for path in family.iterdir() if path.name.endswith(".avsc")]


def _read(path: Traversable) -> Schema:
    text = path.read_text(encoding="utf-8")
    schema = json.loads(text)
    canonical = to_parsing_canonical_form(schema)
    return Schema(
        name=f"{schema['namespace']}.{schema['name']}",
        text=text,
        sha256=schema_sha256(schema),
        fingerprint=bytes.fromhex(fingerprint(canonical, "CRC-64-AVRO")),
        # fastavro would turn a timestamp into a datetime, which is slow and can't hold every long.
        codec=parse_schema(_without(schema, "logicalType")),
    )


def _without(schema: Json, key: str) -> Json:
    """The schema without an annotation."""
    if isinstance(schema, dict):
        return {name: _without(value, key) for name, value in schema.items() if name != key}
    if isinstance(schema, list):
        return [_without(item, key) for item in schema]
    return schema
