"""The base of every generated record class: strict, immutable, nothing extra."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict


class Record(BaseModel):
    """An Avro record as a value.

    Every way of making one checks every field against its schema and raises pydantic's ValidationError, so a record
    that exists can be encoded, unless it is larger than `wire.VALUE_BYTES_MAX`.
    """

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")

    TYPE: ClassVar[str] = ""
    VERSION: ClassVar[int] = 1
    # Some events are named Test…, which pytest would collect.
    __test__: ClassVar[bool] = False

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """A copy with other values; pydantic's own doesn't check them. `deep` makes no difference: nothing changes."""
        return self.model_validate({**self.__dict__, **(update or {})})

    def copy(self, *, update: Mapping[str, Any] | None = None) -> Self:  # type: ignore[override]
        """As `model_copy`; pydantic's own is the one of its first version, and checks nothing."""
        return self.model_copy(update=update)

    @classmethod
    def model_construct(cls, _fields_set: set[str] | None = None, **values: Any) -> Self:
        """As building one; pydantic's own checks nothing."""
        return cls.model_validate(values)
