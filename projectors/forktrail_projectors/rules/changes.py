"""Changes of declared objects and relations, whoever asks for them: an event, an accepted patch, a merged frame."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from forktrail_projectors.graph.declared_tables import implied_relation
from forktrail_projectors.rules.context import Context, Refused, number
from forktrail_projectors.state import EdgeKey, End, NodeKey, Row, Value
from forktrail_schemas.errors import InvalidInput
from forktrail_schemas.events.base import Event
from forktrail_schemas.events.log import ChangeKind
from forktrail_schemas.json_text import Json, read_json
from forktrail_schemas.object_types import DataType, ObjectType, RelationType

_ENDS: tuple[End, End] = ("source", "target")


@dataclass(frozen=True)
class Change:
    """One change of the graph.

    Attributes:
        key: of the object that is created, patched or retired; of the relation that begins or ends.
        data: JSON text; "" where the change has none.
    """

    op: ChangeKind
    key: NodeKey | EdgeKey
    data: str = ""
    expected_version: int | None = None


def stage(ctx: Context[Event], change: Change) -> None:
    """Stage a change; refuses one that can't be made."""
    key = change.key
    if isinstance(key, EdgeKey):
        if change.op == "relate":
            create_relation(ctx, key, change.data)
        else:
            retire_relation(ctx, key)
    elif change.op == "create":
        create_object(ctx, key, change.data)
    elif change.op == "patch":
        patch_object(ctx, key, change.data, change.expected_version)
    else:
        retire_object(ctx, key)


def create_object(ctx: Context[Event], key: NodeKey, data: str) -> None:
    """Stage an object, and the relations to what it refers to."""
    declared = object_type_named(ctx, key.table)
    values = checked(declared, data, whole=True)
    if ctx.node(*key) is not None:
        raise Refused("object_exists", str(key.id))
    found = targets(ctx, declared, values)
    make_object(ctx, key, values)
    for name, target in found.items():
        ctx.relate(implied_relation(name), key, target)


def make_object(ctx: Context[Event], key: NodeKey, values: Mapping[str, Value]) -> None:
    """Stage an object by itself, without what it refers to."""
    ctx.create(key.table, str(key.id), **values, version=1, retired=False)


def refer(ctx: Context[Event], key: NodeKey, values: Mapping[str, Value]) -> None:
    """Stage the relations of a new object to what it refers to."""
    for name, target in targets(ctx, object_type_named(ctx, key.table), values).items():
        ctx.relate(implied_relation(name), key, target)


def patch_object(ctx: Context[Event], key: NodeKey, data: str, expected_version: int | None) -> None:
    """Stage the change of what the data names of an object; a reference takes its relation along."""
    values = checked(object_type_named(ctx, key.table), data, whole=False)
    row = living(ctx, key)
    if expected_version not in (None, row["version"]):
        raise Refused("version_conflict", f"the version is {row['version']}")
    change_object(ctx, key, row, values)


def change_object(ctx: Context[Event], key: NodeKey, row: Row, values: Mapping[str, Value]) -> None:
    """Stage new values of an object that is in use."""
    declared = object_type_named(ctx, key.table)
    found = targets(ctx, declared, values)
    for name in declared.references.keys() & values.keys():
        _move(ctx, key, name, row[name], found.get(name), declared)
    ctx.update(key.table, str(key.id), **values, version=number(row, "version") + 1)


def retire_object(ctx: Context[Event], key: NodeKey) -> None:
    """Stage the end of an object's use. Its row stays, for lineage; its relations end."""
    object_type_named(ctx, key.table)
    row = living(ctx, key)
    for table in ctx.overlay.tables.edges.values():
        if not table.removable:
            continue
        for place, end in enumerate(_ENDS):
            if any(pair[place] == key.table for pair in table.pairs):
                for other in ctx.neighbours(table.name, end, key):
                    ctx.unrelate(table.name, *((key, other) if end == "source" else (other, key)))
    # Those that this event would begin don't.
    ctx.new_edges = [edge for edge in ctx.new_edges if key not in edge[1:3]]
    ctx.update(key.table, str(key.id), retired=True, version=number(row, "version") + 1)


def create_relation(ctx: Context[Event], key: EdgeKey, data: str) -> None:
    """Stage a relation between two objects."""
    values = checked(relation_type_of(ctx, key), data, whole=True)
    living(ctx, key.source)
    living(ctx, key.target)
    if ctx.edge(*key) is not None:
        raise Refused("relation_exists", told(key))
    ctx.relate(*key, **values)


def retire_relation(ctx: Context[Event], key: EdgeKey) -> None:
    """Stage the end of a relation."""
    relation_type_of(ctx, key)
    if ctx.edge(*key) is None:
        raise Refused("unknown_relation", told(key))
    ctx.unrelate(*key)


def told(key: EdgeKey) -> str:
    """A relation in words."""
    return f"{key.table} from {key.source.id} to {key.target.id}"


def object_type_named(ctx: Context[Event], name: str) -> ObjectType:
    """A declared object type."""
    declared = ctx.overlay.tables.objects.get(name)
    if declared is None:
        raise Refused("unknown_type", name)
    return declared


def relation_type_of(ctx: Context[Event], key: EdgeKey) -> RelationType:
    """The declared type of a relation, which joins such ends."""
    tables = ctx.overlay.tables
    if key.table in tables.implied:
        raise Refused("relation_implied", key.table, takes_id=False)
    declared = tables.relations.get(key.table)
    if declared is None:
        raise Refused("unknown_type", key.table)
    if key.source.table not in declared.sources or key.target.table not in declared.targets:
        raise Refused("wrong_ends", f"{key.source.table} to {key.target.table}", takes_id=False)
    return declared


def checked(declared: DataType, data: str, *, whole: bool) -> dict[str, Value]:
    """The columns of an event's data."""
    try:
        value: Json = read_json(data)
        if not isinstance(value, dict):
            raise Refused("bad_data", "it is no JSON object", takes_id=False)
        return dict(declared.check(value, whole=whole))
    except InvalidInput as error:
        raise Refused("bad_data", error.message, takes_id=False) from None


def living(ctx: Context[Event], key: NodeKey) -> Row:
    """The row of an object that is in use, or that this event makes."""
    if key in ctx.new_nodes:
        return ctx.new_nodes[key]
    row = ctx.existing(key.table, key.id, "unknown_object")
    if row["retired"]:
        raise Refused("object_retired", str(key.id))
    return row


def targets(ctx: Context[Event], declared: ObjectType, values: Mapping[str, Value]) -> dict[str, NodeKey]:
    """What the references among some values lead to, by their names."""
    found: dict[str, NodeKey] = {}
    for name, table in declared.references.items():
        id = values.get(name)
        if isinstance(id, str):
            found[name] = NodeKey(table, id)
            living(ctx, found[name])
    return found


def _move(
    ctx: Context[Event], key: NodeKey, name: str, before: Value, target: NodeKey | None, declared: ObjectType
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
