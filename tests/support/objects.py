"""Types, objects and relations for stories: companies, claims about them, and documents that support claims."""

from __future__ import annotations

import json
from typing import Any

from forktrail_projectors.record import LogRecord, Verdict
from forktrail_schemas import events
from forktrail_schemas.events.base import Event
from support.refused_log import by_admin
from support.story import Story

Properties = dict[str, dict[str, Any]]

TEXT, NUMBER = {"type": "string"}, {"type": "number"}
NO_OBJECT = "claim-ffffffffffffffffffff"


def schema_text(properties: Properties, *required: str, **more: Any) -> str:
    """The JSON Schema of an object with these properties."""
    return json.dumps({"type": "object", "properties": properties, "required": list(required), **more})


# What each type's TypeDeclared says; a claim may follow another one.
COMPANY: dict[str, Any] = {
    "name": "Company",
    "kind": "object",
    "json_schema": schema_text({"name": TEXT, "founded": {"type": "integer"}}, "name"),
}
CLAIM: dict[str, Any] = {
    "name": "Claim",
    "kind": "object",
    "json_schema": schema_text({"text": TEXT, "weight": NUMBER, "about": TEXT, "follows": TEXT}, "text"),
    "references": [
        {"property": "about", "object_type": "Company"},
        {"property": "follows", "object_type": "Claim"},
    ],
    "personal": ["text"],
}
SUPPORTS: dict[str, Any] = {
    "name": "SUPPORTS",
    "kind": "relation",
    "json_schema": schema_text({"weight": NUMBER}),
    "sources": ["Company", "Claim"],
    "targets": ["Claim"],
}


def declaration(story: Story, fields: dict[str, Any], **changes: Any) -> LogRecord:
    """A TypeDeclared signed by the admin."""
    return by_admin(story, events.TypeDeclared, **(fields | changes))


def open_with_types(story: Story) -> None:
    """An open run with all three types."""
    story.open()
    for fields in (COMPANY, CLAIM, SUPPORTS):
        assert story.append(declaration(story, fields)).valid


def id_of(object_type: str, number: int) -> str:
    """The id of an object, by a number from 0 to 15."""
    return f"{object_type.lower()}-{number:x}" + "0" * 19


def creation(object_type: str, number: int, /, **data: Any) -> dict[str, Any]:
    """The fields of an ObjectCreated."""
    return {"object_type": object_type, "object_id": id_of(object_type, number), "data": json.dumps(data)}


def patch(object_type: str, number: int, /, expected_version: int | None = None, **data: Any) -> dict[str, Any]:
    """The fields of an ObjectPatched."""
    return {**creation(object_type, number, **data), "expected_version": expected_version}


def retirement(object_type: str, number: int) -> dict[str, Any]:
    """The fields of an ObjectRetired."""
    return {"object_type": object_type, "object_id": id_of(object_type, number), "reason": ""}


def ends(source: tuple[str, int], target: tuple[str, int], relation: str = "SUPPORTS") -> dict[str, Any]:
    """The fields that RelationCreated and RelationRetired share."""
    return {
        "relation_type": relation,
        "source_type": source[0],
        "source_id": id_of(*source),
        "target_type": target[0],
        "target_id": id_of(*target),
    }


def said(story: Story, cls: type[Event], fields: dict[str, Any]) -> LogRecord:
    """An unsigned record."""
    return story.record(story.event(cls, "scanner-7", "service", **fields))


def tell(story: Story, cls: type[Event], fields: dict[str, Any]) -> Verdict:
    """Write it, and fold it."""
    return story.append(said(story, cls, fields))


def tell_all(story: Story) -> None:
    """The types, a company 0 and claims 0 and 1 about it, the second of which supports the first."""
    open_with_types(story)
    told = [
        tell(story, events.ObjectCreated, creation("Company", 0, name="Acme")),
        tell(story, events.ObjectCreated, creation("Claim", 0, text="it grows", about=id_of("Company", 0))),
        tell(story, events.ObjectCreated, creation("Claim", 1, text="it hires", about=id_of("Company", 0))),
        tell(story, events.RelationCreated, {**ends(("Claim", 1), ("Claim", 0)), "data": '{"weight":0.5}'}),
    ]
    assert all(verdict.valid for verdict in told), told
