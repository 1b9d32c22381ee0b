"""Rules of declared types: which objects and relations there are, in tables that the run's own log has made."""

from __future__ import annotations

import re

from forktrail_projectors.graph.declared_tables import Tables, implied_relation
from forktrail_projectors.rules.changes import Change, stage
from forktrail_projectors.rules.context import Context, Refused
from forktrail_projectors.rules.frames import hold
from forktrail_projectors.state import EdgeKey, NodeKey, Value
from forktrail_schemas.errors import InvalidInput
from forktrail_schemas.events import (
    ObjectCreated,
    ObjectPatched,
    ObjectRetired,
    RelationCreated,
    RelationRetired,
    TypeDeclared,
)
from forktrail_schemas.events.base import Event
from forktrail_schemas.object_types import ObjectType, RelationType, object_type, relation_type

# Each pair of types that a relation joins is a table to the engine.
PAIRS_MAX = 64
_NAMES = {"object": re.compile(r"[A-Z][A-Za-z0-9]{0,62}"), "relation": re.compile(r"[A-Z][A-Z0-9_]{0,62}")}


def type_declared(ctx: Context[TypeDeclared]) -> None:
    """Makes a type, and with it the table of its objects or relations."""
    event, tables = ctx.event, ctx.overlay.tables
    declared = _declared(event)
    if tables.taken(event.name):
        raise Refused("type_exists", event.name)
    if isinstance(declared, ObjectType):
        _check_references(declared, tables)
        named = [target for target in declared.references.values() if target != event.name]
    else:
        named = [*declared.sources, *declared.targets]
    unknown = next((name for name in named if name not in tables.objects), None)
    if unknown is not None:
        raise Refused("unknown_type", unknown)
    row: dict[str, Value] = {
        "kind": event.kind,
        "schema": event.json_schema,
        "references": _references(event),
        "sources": event.sources,
        "targets": event.targets,
        "personal": event.personal,
        "merge": _merge(event),
    }
    ctx.create("Type", event.name, **row)
    ctx.declared = tables.with_types([{"id": event.name, **row}])


def object_created(ctx: Context[ObjectCreated]) -> None:
    """Makes an object, and the relations to what it refers to."""
    event = ctx.event
    _do(ctx, Change("create", NodeKey(event.object_type, event.object_id), event.data))


def object_patched(ctx: Context[ObjectPatched]) -> None:
    """Changes what the event names of an object's data; a reference takes its relation along."""
    event = ctx.event
    key = NodeKey(event.object_type, event.object_id)
    _do(ctx, Change("patch", key, event.data, expected_version=event.expected_version))


def object_retired(ctx: Context[ObjectRetired]) -> None:
    """Takes an object out of use. Its row stays, for lineage; its relations end."""
    _do(ctx, Change("retire", NodeKey(ctx.event.object_type, ctx.event.object_id)))


def relation_created(ctx: Context[RelationCreated]) -> None:
    """Joins two objects."""
    event = ctx.event
    _do(ctx, Change("relate", EdgeKey(event.relation_type, *_ends(event)), event.data))


def relation_retired(ctx: Context[RelationRetired]) -> None:
    """Ends a relation."""
    _do(ctx, Change("unrelate", EdgeKey(ctx.event.relation_type, *_ends(ctx.event))))


def _do(ctx: Context[Event], change: Change) -> None:
    """Stage a change; in a frame, as what its merge will do."""
    frame = ctx.event.meta.frame
    if frame is None:
        stage(ctx, change)
    else:
        hold(ctx, frame, change)


def _ends(event: RelationCreated | RelationRetired) -> tuple[NodeKey, NodeKey]:
    return NodeKey(event.source_type, event.source_id), NodeKey(event.target_type, event.target_id)


def _declared(event: TypeDeclared) -> ObjectType | RelationType:
    """The type that an event declares; refuses what is none."""
    if not _NAMES[event.kind].fullmatch(event.name):
        raise _bad_type(f"{event.name} is no name of an {event.kind} type")
    try:
        declared = _compiled(event)
    except InvalidInput as error:
        raise _bad_type(error.message) from None
    stranger = next((name for name in event.personal if name not in declared.columns), None)
    if stranger is not None:
        raise _bad_type(f"{stranger} is personal and isn't among the properties")
    return declared


def _compiled(event: TypeDeclared) -> ObjectType | RelationType:
    if event.kind == "object":
        if event.sources or event.targets:
            raise _bad_type("an object type joins nothing")
        if len({reference.property for reference in event.references}) < len(event.references):
            raise _bad_type("a property is named by two references")
        if len({merge.property for merge in event.merge}) < len(event.merge):
            raise _bad_type("a property is merged in two ways")
        return object_type(event.name, event.json_schema, _references(event), _merge(event))
    if event.references or event.merge:
        raise _bad_type("a relation type has no references, and nothing of it is merged")
    if any(len(set(ends)) < len(ends) for ends in (event.sources, event.targets)):
        raise _bad_type("an object type is named twice")
    if len(event.sources) * len(event.targets) > PAIRS_MAX:
        raise _bad_type(f"it joins more than {PAIRS_MAX} pairs of types")
    return relation_type(event.name, event.json_schema, event.sources, event.targets)


def _references(event: TypeDeclared) -> tuple[str, ...]:
    return tuple(f"{reference.property}={reference.object_type}" for reference in event.references)


def _merge(event: TypeDeclared) -> tuple[str, ...]:
    return tuple(f"{merge.property}={merge.by}" for merge in event.merge)


def _check_references(declared: ObjectType, tables: Tables) -> None:
    """Refuse references whose relations would have the name of something else."""
    for name in declared.references:
        relation = implied_relation(name)
        if relation.lower() == declared.name.lower() or (relation not in tables.implied and tables.taken(relation)):
            raise Refused("type_exists", relation)


def _bad_type(why: str) -> Refused:
    return Refused("bad_type", why, takes_id=False)
