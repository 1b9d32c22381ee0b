"""What one version of a type may not change of the one before, and why.

Each rule has a name, which stands in its message:

    unreadable  Avro resolution can't read the earlier version's records as the later version's
    dropped     a field without a default is gone: earlier code can't read the later version, and what was said is lost
    narrowed    `format`, `minimum`, `maximum`, `minimum_items` or `maximum_items` takes less than it took
    role        another role must sign it; records that are on logs were signed by the earlier one
    subject     it is about something else, under another Kafka key
    shape       it has another name

An upcaster settles the first three; the others need a type of another name.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

import avro.compatibility
import avro.schema

from forktrail_schemas.compatibility.snapshot import Published
from forktrail_schemas.schema_text import Json
from forktrail_schemas.schema_types import MISSING, Array, AvroType, Field, Map, RecordType, Union
from forktrail_schemas.values import FORMATS

# Formats that take all that some others take. Two names of one class take the same.
_WIDER: dict[str, set[str]] = {"Line": {"Name"}, "Text": set(FORMATS.values())}
_FLOORS, _CEILINGS = ("minimum", "minimum_items"), ("maximum", "maximum_items")


@dataclass(frozen=True)
class Break:
    """A rule that a change breaks.

    Attributes:
        field: dotted path of the field concerned, "" where it is the type itself.
        settled_by_upcaster: whether an upcaster makes it good.
    """

    rule: str
    field: str
    what: str
    settled_by_upcaster: bool = True


def breaks(earlier: Published, later: Published) -> list[Break]:
    """Every rule that a later version breaks against an earlier one, in the order of the fields."""
    found = list(_fixed(earlier.type, later.type))
    found += _unreadable(_avro(later.schema), _avro(earlier.schema), "")
    found += _changed(earlier.type, later.type, "")
    return found


def _fixed(earlier: RecordType, later: RecordType) -> Iterator[Break]:
    """What no version of a type may change."""
    if earlier.name != later.name:
        yield Break("shape", "", f"it was {earlier.name}, is {later.name}", settled_by_upcaster=False)
    for rule in ("role", "subject"):
        was, now = earlier.attributes.get(rule), later.attributes.get(rule)
        if was != now:
            yield Break(rule, "", f"it was {json.dumps(was)}, is {json.dumps(now)}", settled_by_upcaster=False)


def _avro(schema: Json) -> avro.schema.Schema:
    return avro.schema.parse(json.dumps(schema))


def _unreadable(reader: avro.schema.Schema, writer: avro.schema.Schema, place: str) -> Iterator[Break]:
    """Ask the `avro` package's checker, field by field, so that each answer names its field."""
    if isinstance(reader, avro.schema.RecordSchema) and isinstance(writer, avro.schema.RecordSchema):
        for field in reader.fields:
            inner = f"{place}.{field.name}".lstrip(".")
            written = avro.compatibility.lookup_writer_field(writer, field)
            if written is not None:
                yield from _unreadable(field.type, written.type, inner)
            elif not field.has_default:
                yield Break("unreadable", inner, "it is new and has no default")
    elif isinstance(reader, avro.schema.ArraySchema) and isinstance(writer, avro.schema.ArraySchema):
        yield from _unreadable(reader.items, writer.items, place)
    else:
        checker = avro.compatibility.ReaderWriterCompatibilityChecker()  # type: ignore[no-untyped-call]  # untyped there
        answer = checker.get_compatibility(reader, writer)
        if answer.compatibility is not avro.compatibility.SchemaCompatibilityType.compatible:
            kinds = ", ".join(sorted({str(kind.value) for kind in answer.incompatibilities}))
            yield Break("unreadable", place, f"{kinds}: {'; '.join(sorted(answer.messages))}")


def _changed(earlier: AvroType, later: AvroType, place: str) -> Iterator[Break]:
    """What is dropped or narrowed, in records however deep."""
    if isinstance(earlier, RecordType) and isinstance(later, RecordType):
        for field in earlier.fields:
            inner = f"{place}.{field.name}".lstrip(".")
            kept = next((new for new in later.fields if field.name in (new.name, *new.aliases)), None)
            if kept is not None:
                yield from _narrowed(field, kept, inner)
                yield from _changed(field.type, kept.type, inner)
            elif field.default is MISSING:
                yield Break("dropped", inner, "it is gone and had no default")
    elif isinstance(earlier, Array) and isinstance(later, Array):
        yield from _changed(earlier.items, later.items, place)
    elif isinstance(earlier, Map) and isinstance(later, Map):
        yield from _changed(earlier.values, later.values, place)
    elif isinstance(earlier, Union) and isinstance(later, Union):
        for one, other in zip(earlier.branches, later.branches, strict=False):
            yield from _changed(one, other, place)


def _narrowed(earlier: Field, later: Field, place: str) -> Iterator[Break]:
    for name in (*_FLOORS, *_CEILINGS, "format"):
        was, now = earlier.attributes.get(name), later.attributes.get(name)
        if now is not None and _takes_less(name, was, now):
            yield Break("narrowed", place, f"{name} was {json.dumps(was)}, is {json.dumps(now)}")


def _takes_less(name: str, was: Json, now: Json) -> bool:
    if name == "format":
        before, after = FORMATS.get(str(was)), FORMATS[now]
        return before != after and before not in _WIDER.get(after, set())
    if was is None:
        return True
    return bool(now > was) if name in _FLOORS else bool(now < was)
