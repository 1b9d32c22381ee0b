"""Avro types as values: what a schema's text says, as the limits on it and the compatibility check look at it.

Source: Apache Avro 1.12 specification, "Schema Declaration".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from forktrail_schemas.schema_text import Json

PRIMITIVES = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")


class Missing:
    """Stands for a default that a field doesn't have."""


MISSING = Missing()


@dataclass(frozen=True, eq=False)
class Primitive:
    """One of PRIMITIVES."""

    name: str
    depth: int = 1


@dataclass(frozen=True, eq=False)
class Fixed:
    """So many bytes."""

    name: str
    aliases: tuple[str, ...]
    size: int
    depth: int = 1


@dataclass(frozen=True, eq=False)
class Enum:
    """One of some symbols; `default` is what a reader takes for one that it doesn't know."""

    name: str
    aliases: tuple[str, ...]
    symbols: tuple[str, ...]
    default: str | None
    depth: int = 1


@dataclass(frozen=True, eq=False)
class Array:
    """Any number of items."""

    items: AvroType
    depth: int


@dataclass(frozen=True, eq=False)
class Map:
    """Any number of values, each under a string."""

    values: AvroType
    depth: int


@dataclass(frozen=True, eq=False)
class Union:
    """One of several types."""

    branches: tuple[AvroType, ...]
    depth: int


@dataclass(frozen=True, eq=False)
class Field:
    """A field of a record.

    Attributes:
        default: as a Python value, MISSING where there is none.
        attributes: what the schema says beyond Avro: format, minimum, maximum, minimum_items, maximum_items.
    """

    name: str
    type: AvroType
    aliases: tuple[str, ...]
    default: object
    attributes: Mapping[str, Json]


@dataclass(frozen=True, eq=False)
class RecordType:
    """Fields in their order.

    Attributes:
        attributes: what the schema says beyond Avro, under `forktrail`: subject, role, version.
    """

    name: str
    aliases: tuple[str, ...]
    fields: tuple[Field, ...]
    attributes: Mapping[str, Json]
    depth: int


Named = Fixed | Enum | RecordType
AvroType = Primitive | Fixed | Enum | Array | Map | Union | RecordType


def short_name(full_name: str) -> str:
    """A name without its namespace; types of two schemas match by it."""
    return full_name.rpartition(".")[2]
