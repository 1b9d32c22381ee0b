"""What a handler reacts to: events of a type, relations of a type, or a pattern that comes to hold."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from forktrail_behaviors.pattern.syntax import Pattern
from forktrail_projectors.state import NodeKey
from forktrail_schemas.errors import InvalidInput
from forktrail_schemas.events.base import Event

Scalar = str | int | float | bool | None


@dataclass(frozen=True)
class OnEvent:
    """Each valid event of a type whose fields have the values of `where`.

    Attributes:
        where: by dotted path; a path into a field of JSON goes on inside it, as in `data.stage`.
    """

    event: type[Event]
    where: Mapping[str, Scalar]

    def takes(self, event: Event) -> bool:
        """Whether it is such an event."""
        return type(event) is self.event and all(_at(event, path) == value for path, value in self.where.items())

    def describe(self) -> dict[str, object]:
        """As JSON, for BehaviorRegistered."""
        return {"event": self.event.TYPE, "where": dict(self.where)}


@dataclass(frozen=True)
class OnRelation:
    """Each relation of a type that an event makes, by RelationCreated or by a reference."""

    relation: str

    def describe(self) -> dict[str, object]:
        """As JSON, for BehaviorRegistered."""
        return {"relation": self.relation}


@dataclass(frozen=True)
class OnPattern:
    """Each match of a pattern, once, when it first comes to hold by what an event changed."""

    pattern: Pattern
    text: str

    def describe(self) -> dict[str, object]:
        """As JSON, for BehaviorRegistered."""
        return {"when": " ".join(self.text.split())}


Subscription = OnEvent | OnRelation | OnPattern


@dataclass(frozen=True)
class Match:
    """What fired: bound nodes by the names that a handler takes them under.

    Attributes:
        ids: bound ids in pattern order, which identify it; empty but for a pattern.
        nodes: every node that a handler may take.
    """

    ids: tuple[str, ...] = ()
    nodes: tuple[tuple[str, NodeKey], ...] = ()


def check_where(event: type[Event], where: Mapping[str, Scalar]) -> None:
    """Refuse a filter on a field that the event doesn't have.

    Raises:
        InvalidInput: naming the field.
    """
    for path in where:
        first = path.partition(".")[0]
        if first not in event.model_fields:
            fields = ", ".join(name for name in event.model_fields if name != "meta")
            raise InvalidInput(f"{event.__name__} has no field {first!r} to filter on", hint=f"it has {fields}")


def _at(event: Event, path: str) -> object:
    """The value at a dotted path; None where there is none."""
    value: object = event
    for name in path.split("."):
        if isinstance(value, str):
            value = _json(value)
        value = value.get(name) if isinstance(value, dict) else getattr(value, name, None)
    return value


def _json(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return None
