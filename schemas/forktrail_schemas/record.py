"""The base of every generated record class: strict, immutable, nothing extra."""

from __future__ import annotations

from typing import ClassVar

from pydantic import BaseModel, ConfigDict


class Record(BaseModel):
    """An Avro record as a value.

    Building one checks every field against its schema and raises pydantic's ValidationError, so a record that exists
    can be encoded, unless it is larger than `wire.VALUE_BYTES_MAX`.
    """

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")

    TYPE: ClassVar[str] = ""
    VERSION: ClassVar[int] = 1
    # Some events are named Test…, which pytest would collect.
    __test__: ClassVar[bool] = False
