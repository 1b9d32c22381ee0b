"""Rules of declared types: which objects and relations there are, in tables that the run's own log has made."""

from __future__ import annotations

import re
from collections.abc import Mapping

from forktrail_projectors.graph.declared_tables import Tables, implied_relation
from forktrail_projectors.rules.context import Context, Refused, number
from forktrail_projectors.state import End, NodeKey, Row, Value
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
from forktrail_schemas.json_text import Json, read_json
from forktrail_schemas.object_types import DataType, ObjectType, RelationType, object_type, relation_type

# Each pair of types that a relation joins is a table to the engine.
PAIRS_MAX = 64
_NAMES = {"object": re.compile(r"[A-Z][A-Za-z0-9]{0,62}"), "relation": re.compile(r"[A-Z][A-Z0-9_]{0,62}")}
_ENDS: tuple[End, End] = ("source", "target")


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
    }
    ctx.create("Type", event.name, **row)
    ctx.declared = tables.with_types([{"id": event.name, **row}])


def object_created(ctx: Context[ObjectCreated]) -> None:
    """Makes an object, and the relations to what it refers to."""
    event = ctx.event
    declared = _object_type(ctx, event.object_type)
    values = _checked(declared, event.data, whole=True)
    if ctx.node(event.object_type, event.object_id) is not None:
        raise Refused("object_exists", event.object_id)
    targets = _targets(ctx, declared, values)
    made = ctx.create(event.object_type, event.object_id, **values, version=1, retired=False)
    for name, target in targets.items():
        ctx.relate(implied_relation(name), made, target)


def object_patched(ctx: Context[ObjectPatched]) -> None:
    """Changes what the event names of an object's data; a reference takes its relation along."""
    event = ctx.event
    declared = _object_type(ctx, event.object_type)
    values = _checked(declared, event.data, whole=False)
    key = NodeKey(event.object_type, event.object_id)
    row = _living(ctx, key)
    version = number(row, "version")
    if event.expected_version not in (None, version):
        raise Refused("version_conflict", f"the version is {version}")
    targets = _targets(ctx, declared, values)
    for name in declared.references.keys() & values.keys():
        _move(ctx, key, name, row[name], targets.get(name), declared)
    ctx.update(event.object_type, event.object_id, **values, version=version + 1)


def object_retired(ctx: Context[ObjectRetired]) -> None:
    """Takes an object out of use. Its row stays, for lineage; its relations end."""
    event = ctx.event
    _object_type(ctx, event.object_type)
    key = NodeKey(event.object_type, event.object_id)
    row = _living(ctx, key)
    for table in ctx.overlay.tables.edges.values():
        if not table.removable:
            continue
        for place, end in enumerate(_ENDS):
            if any(pair[place] == key.table for pair in table.pairs):
                for other in ctx.neighbours(table.name, end, key):
                    ctx.unrelate(table.name, *((key, other) if end == "source" else (other, key)))
    ctx.update(event.object_type, event.object_id, retired=True, version=number(row, "version") + 1)


def relation_created(ctx: Context[RelationCreated]) -> None:
    """Joins two objects."""
    event = ctx.event
    declared, source, target = _relation(ctx)
    values = _checked(declared, event.data, whole=True)
    _living(ctx, source)
    _living(ctx, target)
    if ctx.edge(event.relation_type, source, target) is not None:
        raise Refused("relation_exists", f"{event.relation_type} from {source.id} to {target.id}")
    ctx.relate(event.relation_type, source, target, **values)


def relation_retired(ctx: Context[RelationRetired]) -> None:
    """Ends a relation."""
    event = ctx.event
    _, source, target = _relation(ctx)
    if ctx.edge(event.relation_type, source, target) is None:
        raise Refused("unknown_relation", f"{event.relation_type} from {source.id} to {target.id}")
    ctx.unrelate(event.relation_type, source, target)


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
        return object_type(event.name, event.json_schema, _references(event))
    if event.references:
        raise _bad_type("a relation type has no references")
    if any(len(set(ends)) < len(ends) for ends in (event.sources, event.targets)):
        raise _bad_type("an object type is named twice")
    if len(event.sources) * len(event.targets) > PAIRS_MAX:
        raise _bad_type(f"it joins more than {PAIRS_MAX} pairs of types")
    return relation_type(event.name, event.json_schema, event.sources, event.targets)


def _references(event: TypeDeclared) -> tuple[str, ...]:
    return tuple(f"{reference.property}={reference.object_type}" for reference in event.references)


def _check_references(declared: ObjectType, tables: Tables) -> None:
    """Refuse references whose relations would have the name of something else."""
    for name in declared.references:
        relation = implied_relation(name)
        if relation.lower() == declared.name.lower() or (relation not in tables.implied and tables.taken(relation)):
            raise Refused("type_exists", relation)


def _bad_type(why: str) -> Refused:
    return Refused("bad_type", why, takes_id=False)


def _object_type(ctx: Context[Event], name: str) -> ObjectType:
    declared = ctx.overlay.tables.objects.get(name)
    if declared is None:
        raise Refused("unknown_type", name)
    return declared


def _relation(ctx: Context[RelationCreated | RelationRetired]) -> tuple[RelationType, NodeKey, NodeKey]:
    """The type of the relation that an event names, and its ends."""
    event, tables = ctx.event, ctx.overlay.tables
    if event.relation_type in tables.implied:
        raise Refused("relation_implied", event.relation_type, takes_id=False)
    declared = tables.relations.get(event.relation_type)
    if declared is None:
        raise Refused("unknown_type", event.relation_type)
    if event.source_type not in declared.sources or event.target_type not in declared.targets:
        raise Refused("wrong_ends", f"{event.source_type} to {event.target_type}", takes_id=False)
    return declared, NodeKey(event.source_type, event.source_id), NodeKey(event.target_type, event.target_id)


def _checked(declared: DataType, data: str, *, whole: bool) -> dict[str, Value]:
    """The columns of an event's data."""
    try:
        value: Json = read_json(data)
        if not isinstance(value, dict):
            raise Refused("bad_data", "it is no JSON object", takes_id=False)
        return dict(declared.check(value, whole=whole))
    except InvalidInput as error:
        raise Refused("bad_data", error.message, takes_id=False) from None


def _living(ctx: Context[Event], key: NodeKey) -> Row:
    """The row of an object that isn't retired."""
    row = ctx.existing(key.table, key.id, "unknown_object")
    if row["retired"]:
        raise Refused("object_retired", str(key.id))
    return row


def _targets(ctx: Context[Event], declared: ObjectType, values: Mapping[str, Value]) -> dict[str, NodeKey]:
    """What the references among some values lead to, by their names."""
    found: dict[str, NodeKey] = {}
    for name, table in declared.references.items():
        id = values.get(name)
        if isinstance(id, str):
            found[name] = NodeKey(table, id)
            _living(ctx, found[name])
    return found


def _move(
    ctx: Context[ObjectPatched], key: NodeKey, name: str, before: Value, target: NodeKey | None, declared: ObjectType
) -> None:
    """Stage the change of a reference's relation. That to an object that has been retired has ended by itself."""
    relation = implied_relation(name)
    if isinstance(before, str):
        old = NodeKey(declared.references[name], before)
        if old == target:
            return
        if ctx.edge(relation, key, old) is not None:
            ctx.unrelate(relation, key, old)
    if target is not None:
        ctx.relate(relation, key, target)
