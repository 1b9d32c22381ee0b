"""The built-in schemas: read from `avsc/` on first use, found by type name, record class or fingerprint."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable

from forktrail_schemas.events import EARLIER_VERSIONS, EVENT_TYPES, OTHER_TYPES
from forktrail_schemas.record import Record
from forktrail_schemas.schema_limits import parse_record
from forktrail_schemas.schema_text import (
    Json,
    read_json,
    readers_schema,
    schema_fingerprint,
    schema_sha256,
    writers_schema,
)
from forktrail_schemas.schema_types import RecordType

FINGERPRINT_BYTES = 8


@dataclass(frozen=True)
class Schema:
    """One version of a record type.

    Attributes:
        name: full Avro name.
        version: 1 and up, without gaps, for the built-in ones; as it says of itself, for a declared one.
        text: all that another service needs to read and write it; of a built-in one, its file's.
        sha256: hex digest of the schema without docs; its identity.
        fingerprint: CRC-64-AVRO of the parsing canonical form, little-endian, as single-object encoding carries it.
        type: what the text says.
        codec: the same as fastavro takes it (schema_text.writers_schema).
    """

    name: str
    version: int
    text: str
    sha256: str
    fingerprint: bytes
    type: RecordType
    codec: Json = field(compare=False)


def schema_of_text(text: str) -> Schema:
    """Read the schema of a record.

    Raises:
        BadSchema: the text is none, or one of those that aren't read (see schema_limits).
    """
    json = read_json(text)
    record = parse_record(json)
    version = record.attributes.get("version", 1)
    codec = writers_schema(json)
    return Schema(
        name=record.name,
        version=version if type(version) is int and version > 0 else 1,
        text=text,
        sha256=schema_sha256(json),
        fingerprint=schema_fingerprint(codec),
        type=record,
        codec=codec,
    )


@cache
def schemas() -> Mapping[str, Schema]:
    """The current version of every built-in type by full name."""
    return {name: versions[-1] for name, versions in published().items()}


@cache
def published() -> Mapping[str, tuple[Schema, ...]]:
    """Every version of every built-in type by full name, the first version first."""
    folder = resources.files("forktrail_schemas") / "avsc"
    found: dict[str, list[Schema]] = {cls.TYPE: [] for cls in _classes()}
    for path in _avsc_files(folder):
        schema = schema_of_text(path.read_text(encoding="utf-8"))
        if schema.name in found:  # the others are embedded in these
            found[schema.name].append(schema)
    return {name: tuple(sorted(found[name], key=lambda schema: schema.version)) for name in sorted(found)}


@cache
def by_fingerprint() -> Mapping[bytes, Schema]:
    """Every version of every built-in type by its fingerprint."""
    return {schema.fingerprint: schema for versions in published().values() for schema in versions}


@cache
def record_classes() -> Mapping[str, type[Record]]:
    """The class of every type's current version by full Avro name."""
    return {cls.TYPE: cls for cls in (*EVENT_TYPES, *OTHER_TYPES)}


@cache
def class_of(name: str, version: int) -> type[Record]:
    """The class of one version of a built-in type."""
    (found,) = [cls for cls in _classes() if (name, version) == (cls.TYPE, cls.VERSION)]
    return found


def schema_of(record: Record | type[Record]) -> Schema:
    """The schema of a record or record class."""
    return published()[record.TYPE][record.VERSION - 1]


@cache
def resolving_codec(name: str, version: int) -> Json:
    """One version of a built-in type as fastavro reads what was written under other schemas into it."""
    return readers_schema(read_json(published()[name][version - 1].text))


def _classes() -> tuple[type[Record], ...]:
    return (*EVENT_TYPES, *OTHER_TYPES, *EARLIER_VERSIONS)


def _avsc_files(folder: Traversable) -> list[Traversable]:
    return [path for family in folder.iterdir() for path in family.iterdir() if path.name.endswith(".avsc")]
