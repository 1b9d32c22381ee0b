"""Whether any record at all that is written under one schema can be read as another type.

Avro resolves a value when it is read: one with a symbol or a branch that the reader lacks fails alone, others are read.
Here it is looked at beforehand what fails with every value.
Source: Apache Avro 1.12 specification, "Schema Resolution".
"""

from __future__ import annotations

from collections.abc import Iterator

from forktrail_schemas.schema_types import (
    MISSING,
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

# What a reader takes beside its own type.
_PROMOTED = {
    "long": {"int"},
    "float": {"int", "long"},
    "double": {"int", "long", "float"},
    "string": {"bytes"},
    "bytes": {"string"},
}


def hindrances(writer: AvroType, reader: AvroType, place: str = "") -> list[str]:
    """What keeps every value of the writer's type from being read as the reader's; empty where some can be read.

    Args:
        place: dotted path of the field, for the messages.
    """
    if isinstance(writer, Union):
        of_branches = [hindrances(branch, reader, place) for branch in writer.branches]
        return of_branches[0] if of_branches and all(of_branches) else []
    if isinstance(reader, Union):
        of_branches = [hindrances(writer, branch, place) for branch in reader.branches]
        return [_mismatch(writer, reader, place)] if all(of_branches) else []
    if not _fit(writer, reader):
        return [_mismatch(writer, reader, place)]
    if isinstance(writer, Enum) and isinstance(reader, Enum):
        known = reader.default is not None or set(writer.symbols) & set(reader.symbols)
        return [] if known else [f"{place}: none of its symbols is known"]
    if isinstance(writer, RecordType) and isinstance(reader, RecordType):
        return list(_of_fields(writer, reader, place))
    return []


def _of_fields(writer: RecordType, reader: RecordType, place: str) -> Iterator[str]:
    for field in reader.fields:
        inner = f"{place}.{field.name}".lstrip(".")
        written = _written(writer, field)
        if written is not None:
            yield from hindrances(written.type, field.type, inner)
        elif field.default is MISSING:
            yield f"{inner}: it is missing"


def _written(writer: RecordType, field: Field) -> Field | None:
    """The writer's field that a reader's field takes its value from."""
    by_name = {written.name: written for written in writer.fields}
    return next((by_name[name] for name in (field.name, *field.aliases) if name in by_name), None)


def _fit(writer: AvroType, reader: AvroType) -> bool:
    """Whether two types match before their insides are looked at; a list doesn't where its items don't, even empty."""
    if isinstance(writer, Union) or isinstance(reader, Union):
        return True
    if isinstance(writer, Primitive) and isinstance(reader, Primitive):
        return writer.name == reader.name or writer.name in _PROMOTED.get(reader.name, ())
    if isinstance(writer, Array) and isinstance(reader, Array):
        return _fit(writer.items, reader.items)
    if isinstance(writer, Map) and isinstance(reader, Map):
        return _fit(writer.values, reader.values)
    if isinstance(writer, Named) and isinstance(reader, Named):
        return type(writer) is type(reader) and _of_one_name(writer, reader) and _size(writer) == _size(reader)
    return False


def _of_one_name(writer: Named, reader: Named) -> bool:
    return short_name(writer.name) == short_name(reader.name) or writer.name in reader.aliases


def _size(type: Named) -> int | None:
    return type.size if isinstance(type, Fixed) else None


def _mismatch(writer: AvroType, reader: AvroType, place: str) -> str:
    return f"{place}: {_shown(writer)} can't be read as {_shown(reader)}"


def _shown(type: AvroType) -> str:
    if isinstance(type, Array):
        return f"a list of {_shown(type.items)}"
    if isinstance(type, Map):
        return f"a map of {_shown(type.values)}"
    if isinstance(type, Union):
        return " or ".join(_shown(branch) for branch in type.branches)
    if isinstance(type, Fixed):
        return f"{short_name(type.name)} of {type.size} bytes"
    return short_name(type.name)
