"""An event that a tale means to write."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from forktrail_schemas.events.base import Event
from support.people import Person

T = TypeVar("T")


@dataclass(frozen=True)
class Draft:
    """An event to be written.

    Attributes:
        signer: who signs it, in their own name; None where nobody does.
        actor: name and kind of whom it is written for, where that isn't the signer.
        execution: what `meta.execution` says.
        frame: what `meta.frame` says.
    """

    cls: type[Event]
    signer: Person | None
    fields: dict[str, Any]
    actor: tuple[str, str] | None = None
    execution: dict[str, Any] | None = None
    frame: str | None = None


def pick(options: Sequence[T], number: int) -> T | None:
    """One of the options, by a number of any size; None where there are none."""
    return options[number % len(options)] if options else None
