"""Schemas that a run declares: read from their text once, and what a value written under one amounts to.

Source: DESIGN.md, "What is readable is decided by the log".
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, lru_cache

from forktrail_schemas.body import Incompatible, plain_fields, resolved, validated, written
from forktrail_schemas.catalog import Schema, record_classes, resolving_codec, schema_of, schema_of_text
from forktrail_schemas.errors import EventUnreadable, InvalidEvent, InvalidSchema
from forktrail_schemas.events.base import Event
from forktrail_schemas.events.shared import Meta
from forktrail_schemas.record import Record
from forktrail_schemas.resolution import hindrances
from forktrail_schemas.schema_text import BadSchema, canonical_form
from forktrail_schemas.schema_types import MISSING

TEXTS_KEPT = 1_024


@dataclass(frozen=True)
class ForeignRecord:
    """A record of a type that this code doesn't know, written under a schema that its run declared.

    Attributes:
        type: full Avro name.
        meta: what it says of itself, where its first field is the `meta` that ours have.
    """

    type: str
    meta: Meta | None


@lru_cache(TEXTS_KEPT)
def declared_schema(text: str) -> Schema:
    """Read the text of a schema that a run declares.

    Pure: what is refused, and in which words, depends on the text alone.

    Raises:
        InvalidSchema: it is no Avro schema of a record, or one that isn't read (see schema_limits and schema_text).
    """
    try:
        return schema_of_text(text)
    except BadSchema as error:
        raise InvalidSchema(str(error), hint="give the Avro schema of a record, as JSON") from None


def hindrances_as_built_in(schema: Schema) -> list[str]:
    """What keeps every record under a declared schema from being read as the built-in type of its name.

    Empty where some can be read, and where no built-in type has the name.
    """
    cls = record_classes().get(schema.name)
    return [] if cls is None else hindrances(schema.type, schema_of(cls).type)


class DeclaredReader:
    """Reads values that were written under one declared schema."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._cls = record_classes().get(schema.name)
        self._lacking = self._cls is not None and _lacks_a_field(schema, schema_of(self._cls))
        self._says_meta = self._cls is None and _begins_with_our_meta(schema)

    def read(self, value: bytes, at: int) -> Record | ForeignRecord:
        """The record whose body begins at `at`: of a built-in type in its current version, of any other as foreign.

        Raises:
            EventUnreadable: truncated, trailing_bytes or schema_incompatible.
            InvalidEvent: invalid_data.
        """
        if self._cls is None:
            return ForeignRecord(self._schema.name, self._meta(plain_fields(self._schema, value, at)))
        if self._lacking:
            raise self._incompatible()
        fields = plain_fields(self._schema, value, at, branches_named=True)
        try:
            # Written anew, since `resolved` takes no body from elsewhere.
            codec = resolving_codec(self._cls.TYPE, self._cls.VERSION)
            return validated(self._cls, resolved(self._schema, written(self._schema, fields), codec))
        except Incompatible:
            raise self._incompatible() from None

    def _incompatible(self) -> EventUnreadable:
        return EventUnreadable(
            f"{self._schema.name} as declared can't be read as the type of that name", code="schema_incompatible"
        )

    def _meta(self, fields: dict[str, object]) -> Meta | None:
        if not self._says_meta:
            return None
        try:
            return validated(Meta, fields["meta"])
        except InvalidEvent:
            return None


@lru_cache(TEXTS_KEPT)
def declared_reader(text: str) -> DeclaredReader:
    """The reader of a schema that `declared_schema` takes, made once."""
    return DeclaredReader(declared_schema(text))


def _lacks_a_field(writer: Schema, reader: Schema) -> bool:
    """Whether the reader asks for a field, without a default, that the writer's schema doesn't have."""
    has = {field.name for field in writer.type.fields}
    asked_for = [field for field in reader.type.fields if field.default is MISSING]
    return any(has.isdisjoint((field.name, *field.aliases)) for field in asked_for)


def _begins_with_our_meta(schema: Schema) -> bool:
    first = schema.codec["fields"][0]
    return first["name"] == "meta" and canonical_form(first["type"]) == _meta_form()


@cache
def _meta_form() -> str:
    """The canonical form of the `meta` that every event has."""
    any_event = next(cls for cls in record_classes().values() if issubclass(cls, Event))
    return canonical_form(schema_of(any_event).codec["fields"][0]["type"])
