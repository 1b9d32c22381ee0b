"""Records of one version of one type: built from plain values, read from bytes and written to them by fastavro.

fastavro coerces what it writes (1.7 → 1, 2**31 into an int) and checks no bounds, so the class checks every field,
before writing and after reading.
"""

from __future__ import annotations

from functools import cache
from io import BytesIO
from typing import Any, TypeVar

from fastavro import schemaless_reader, schemaless_writer
from pydantic import ValidationError

from forktrail_schemas.catalog import Schema, class_of, schema_of
from forktrail_schemas.errors import EventUnreadable, InvalidEvent
from forktrail_schemas.record import Record
from forktrail_schemas.schema_text import Json

R = TypeVar("R", bound=Record)


class Incompatible(Exception):
    """The reader's schema has no value for what was written."""


class Body:
    """How one version of a type is read and written."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.cls = class_of(schema.name, schema.version)
        self._dump = self.cls.__pydantic_serializer__.to_python

    def read(self, value: bytes, at: int) -> Record:
        """The record whose body begins at `at` and ends with the value.

        Raises:
            EventUnreadable: truncated or trailing_bytes.
            InvalidEvent: invalid_data.
        """
        return validated(self.cls, plain_fields(self.schema, value, at))

    def write(self, record: Record) -> bytes:
        """The body of a record of the version's class.

        Raises:
            InvalidEvent: a value was put into it around its checks, and isn't of its field's type.
        """
        try:
            return written(self.schema, self._dump(record, warnings="error"))
        except (ValueError, TypeError, AttributeError, OverflowError) as error:
            raise InvalidEvent(f"{self.schema.name} can't be encoded", hint="build it with its class") from error


@cache
def body_of(cls: type[Record]) -> Body:
    """How records of a class are read and written."""
    return Body(schema_of(cls))


def plain_fields(schema: Schema, value: bytes, at: int, *, branches_named: bool = False) -> Any:
    """The fields of a body that must end with the value.

    Args:
        schema: that it was written under.
        branches_named: give a named type in a union as (name, value), so that `written` takes the same branch again.

    Raises:
        EventUnreadable: truncated or trailing_bytes.
    """
    body = BytesIO(value)
    body.seek(at)
    try:
        # Broken bytes make fastavro raise whatever its branch happens to raise; none may end the fold.
        fields = schemaless_reader(body, schema.codec, None, return_named_type=branches_named)
    except Exception:
        raise EventUnreadable(f"{schema.name} ends or breaks inside", code="truncated") from None
    left = len(value) - body.tell()
    if left:
        raise EventUnreadable(f"{schema.name} leaves {left} bytes over", code="trailing_bytes")
    return fields


def written(schema: Schema, fields: Any) -> bytes:
    """The body of fields that are right."""
    body = BytesIO()
    schemaless_writer(body, schema.codec, fields, strict=True)
    return body.getvalue()


def resolved(schema: Schema, body: bytes, into: Json) -> Any:
    """The fields of a body as Avro resolution gives them to a reader of another schema.

    Args:
        schema: that it was written under.
        body: made by `written` alone. What the reader's schema lacks, fastavro passes over without looking for the end
            of the bytes, so a count from elsewhere could keep it busy for ever.
        into: of `catalog.resolving_codec`.

    Raises:
        Incompatible: there is no such value.
    """
    try:
        return schemaless_reader(BytesIO(body), schema.codec, into)
    except Exception:  # of several types, and the body is whole
        raise Incompatible from None


def build(cls: type[R], fields: dict[str, Any]) -> R:
    """Build a record from plain values.

    Raises:
        InvalidEvent: naming the first field that is wrong and what it should be.
    """
    try:
        return cls.__pydantic_validator__.validate_python(fields)  # type: ignore[no-any-return]  # an instance of cls
    except ValidationError as error:
        raise InvalidEvent(f"{cls.TYPE}: {first_fault(error)}") from error


def validated(cls: type[R], fields: object) -> R:
    """A record of fields that were read; messages hold nothing of a library's own words, since the fold keeps them.

    Raises:
        InvalidEvent: invalid_data, naming the first field that is wrong.
    """
    try:
        return cls.__pydantic_validator__.validate_python(fields)  # type: ignore[no-any-return]  # an instance of cls
    except ValidationError as error:
        raise InvalidEvent(f"{cls.TYPE}: {_place(error)} breaks its schema", code="invalid_data") from error


def first_fault(error: ValidationError) -> str:
    """One line for a validation error: where, and what was expected. The value itself is not repeated."""
    fault = error.errors(include_url=False, include_input=False)[0]
    return f"{_place(error)}: {fault['msg']}"


def _place(error: ValidationError) -> str:
    """Where the first fault is, as a dotted path."""
    fault = error.errors(include_url=False, include_input=False)[0]
    return ".".join(str(part) for part in fault["loc"]) or "record"
