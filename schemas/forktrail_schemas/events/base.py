"""The base of every generated event class."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from operator import attrgetter
from typing import ClassVar

from forktrail_schemas.events.shared import Meta
from forktrail_schemas.record import Record

EXECUTION_ID = "meta.execution.id"


class Event(Record):
    """An immutable fact in the past tense.

    Attributes:
        TYPE: full Avro name, also the CloudEvents type.
        ROLE: role whose key must sign it; None where anyone may say it, attributed as claimed.
        SUBJECT: dotted path of the field that is its subject, the Kafka key.
    """

    ROLE: ClassVar[str | None] = None
    SUBJECT: ClassVar[str] = ""

    meta: Meta

    @property
    def subject_id(self) -> str:
        """What it is about: the Kafka key and `ce_subject`; empty for what lacks the execution that it is about."""
        if self.SUBJECT == EXECUTION_ID and self.meta.execution is None:
            return ""
        return str(_at(self.SUBJECT)(self))


@cache
def _at(path: str) -> Callable[[object], object]:
    return attrgetter(path)
