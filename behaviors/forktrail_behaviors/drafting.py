"""Drafts of changes as a behavior makes them: checked against the pack's types before anything is written.

The same draft goes on the log as it is, in a frame, or as a proposal.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

from forktrail_behaviors.commands import Draft
from forktrail_behaviors.given import Object
from forktrail_behaviors.reads import canonical
from forktrail_behaviors.types import Types
from forktrail_schemas.errors import InvalidInput
from forktrail_schemas.events import ObjectCreated, ObjectPatched, ObjectRetired, RelationCreated, RelationRetired
from forktrail_schemas.events.base import Event
from forktrail_schemas.values import LINE_LENGTH_MAX
from forktrail_schemas.wire import build


def creation(types: Types, path: str, made: Object, data: Mapping[str, Any]) -> Draft:
    """An object is made."""
    text = _data(types, made.type, data)
    return checked(ObjectCreated, path, {"object_type": made.type, "object_id": made.id, "data": text})


def patch(types: Types, path: str, target: Object, data: Mapping[str, Any], expected_version: int | None) -> Draft:
    """Some of an object's data is changed."""
    fields = {
        "object_type": target.type,
        "object_id": target.id,
        "data": _data(types, target.type, data, whole=False),
        "expected_version": expected_version,
    }
    return checked(ObjectPatched, path, fields)


def retirement(path: str, target: Object, reason: str) -> Draft:
    """An object goes out of use."""
    return checked(ObjectRetired, path, {"object_type": target.type, "object_id": target.id, "reason": reason})


def relation(types: Types, path: str, name: str, source: Object, target: Object, data: Mapping[str, Any]) -> Draft:
    """Two objects are joined."""
    text = canonical(types.checked_relation(name, source.type, target.type, plain(data))).decode()
    return checked(RelationCreated, path, _ends(name, source, target) | {"data": text})


def parting(path: str, name: str, source: Object, target: Object, reason: str) -> Draft:
    """A relation ends."""
    return checked(RelationRetired, path, _ends(name, source, target) | {"reason": reason})


def checked(event: type[Event], path: str, fields: Mapping[str, object]) -> Draft:
    """A draft whose fields fit its event: what doesn't fails the behavior, and not whoever writes the event."""
    if len(path) > LINE_LENGTH_MAX:
        raise InvalidInput("gathers are nested too deep here", hint="gather more branches side by side instead")
    told = {"epoch": 1} if "epoch" in event.model_fields else {}
    build(event, {"meta": _ANY_META, **told, **fields})
    return Draft(event, path, fields)


def plain(value: Any) -> Any:
    """A value as JSON: objects by their ids, models by their fields.

    Raises:
        InvalidInput: it can't be.
    """
    if isinstance(value, Object):
        return value.id
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    if isinstance(value, Mapping):
        return {str(name): plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if value is None or isinstance(value, str | bool | int | float):
        return value
    raise InvalidInput(f"a {type(value).__name__} is no JSON value", hint="give text, numbers, lists or mappings")


_ANY_META = {
    "event_id": "00000000-0000-8000-8000-000000000000",
    "run": "run",
    "occurred_at": 0,
    "actor": {"kind": "behavior", "id": "any"},
    "causes": [],
    "goal": None,
}


def _data(types: Types, object_type: str, data: Mapping[str, Any], *, whole: bool = True) -> str:
    return canonical(types.checked_object(object_type, plain(data), whole=whole)).decode()


def _ends(name: str, source: Object, target: Object) -> dict[str, object]:
    return {
        "relation_type": name,
        "source_type": source.type,
        "source_id": source.id,
        "target_type": target.type,
        "target_id": target.id,
    }
