"""Frames: sub-contexts whose changes nobody outside sees until they are merged, each property by the rule of its type.

A change in a frame is checked as it comes and held in a row of its own, one for each object or relation. The merge
makes what is held of all of them at once: in one event, in a fixed order. What a merge rule makes of two frames doesn't
depend on which is merged first; a property without one is set where nobody else has changed it meanwhile.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import cast

from forktrail_projectors.graph.schema import PATCH_ENDS
from forktrail_projectors.rules.changes import (
    Change,
    change_object,
    checked,
    create_relation,
    make_object,
    object_type_named,
    refer,
    relation_type_of,
    retire_object,
    retire_relation,
    told,
)
from forktrail_projectors.rules.context import Context, Refused, text
from forktrail_projectors.rules.patches import change_of, key_of
from forktrail_projectors.state import EdgeKey, NodeKey, Row, Value
from forktrail_schemas.events import FrameClosed, FrameOpened
from forktrail_schemas.events.base import Event
from forktrail_schemas.ids import derived_id
from forktrail_schemas.json_text import INTEGER_MAX, read_json
from forktrail_schemas.object_types import ObjectType

OPEN, MERGED, DROPPED = "open", "merged", "dropped"
# References are looked up in what was made before; relations join what is there; what is retired ends them.
_ORDER = ("create", "patch", "unrelate", "relate", "replace", "retire")
# What a frame holds beside kinds of change: a relation that it ended and began anew with other data; and what it made
# and took back, which then never was.
REPLACE, NOTHING = "replace", "nothing"
_GONE = ("retire", NOTHING)


def frame_opened(ctx: Context[FrameOpened]) -> None:
    """Opens a frame."""
    event = ctx.event
    execution = event.meta.execution
    ctx.create(
        "Frame",
        derived_id("frame", event.meta.event_id),
        title=event.title,
        status=OPEN,
        execution=execution.id if execution else None,
    )


def frame_closed(ctx: Context[FrameClosed]) -> None:
    """Merges a frame's changes into the graph, all or none, or drops them."""
    event = ctx.event
    _open_frame(ctx, event.frame_id)
    merge = event.outcome == "merge"
    if merge:
        held = [row for key in _held(ctx, event.frame_id) if (row := ctx.node(*key)) is not None]
        retired = {key_of(row) for row in held if row["op"] in _GONE}
        held = [row for row in held if row["op"] != NOTHING]
        held.sort(key=lambda row: (_ORDER.index(text(row, "op")), text(row, "id")))
        made = [row for row in held if _is_new(ctx, row)]
        # They may refer to each other, in any order.
        for do in (_make, _refer):
            for row in made:
                do(ctx, row)
        for row in held:
            if row not in made:
                _merge(ctx, row, retired)
    ctx.update("Frame", event.frame_id, status=MERGED if merge else DROPPED, reason=event.reason)


def _is_new(ctx: Context[Event], row: Row) -> bool:
    """Whether what a frame holds is an object that isn't there."""
    return row["op"] == "create" and ctx.node(*_object(row)) is None


def _make(ctx: Context[Event], row: Row) -> None:
    make_object(ctx, _object(row), _values(ctx, row))


def _refer(ctx: Context[Event], row: Row) -> None:
    refer(ctx, _object(row), _values(ctx, row))


def _object(row: Row) -> NodeKey:
    return NodeKey(text(row, "type_name"), text(row, "object_id"))


def _values(ctx: Context[Event], row: Row) -> dict[str, Value]:
    return checked(object_type_named(ctx, text(row, "type_name")), text(row, "data"), whole=True)


def hold(ctx: Context[Event], frame: str, change: Change) -> None:
    """Hold a change until its frame is merged; refuses one that couldn't be made now, in the frame's eyes."""
    _open_frame(ctx, frame)
    held = ctx.node("FrameChange", _held_id(frame, change.key))
    if isinstance(change.key, EdgeKey):
        _hold_relation(ctx, frame, change, change.key, held)
    else:
        _hold_object(ctx, frame, change, change.key, held)


def _open_frame(ctx: Context[Event], frame: str) -> None:
    row = ctx.existing("Frame", frame, "unknown_frame")
    if row["status"] != OPEN:
        raise Refused("frame_ended", f"{frame} is {row['status']}")


def _held(ctx: Context[Event], frame: str) -> tuple[NodeKey, ...]:
    return ctx.neighbours("HOLDS", "source", NodeKey("Frame", frame))


def _hold_object(ctx: Context[Event], frame: str, change: Change, key: NodeKey, held: Row | None) -> None:
    declared = object_type_named(ctx, key.table)
    there = ctx.node(*key)
    if change.op == "create":
        if held is not None or there is not None:
            raise Refused("object_exists", str(key.id))
        _check_targets(ctx, frame, declared, checked(declared, change.data, whole=True))
        _put(ctx, frame, change, held, data=change.data, base="{}")
        return
    _check_seen(ctx, frame, key)
    made_here = held is not None and held["op"] == "create"
    if change.op == "retire":
        _put(ctx, frame, change, held, op=NOTHING if made_here else "retire", data=None, base="{}")
        return
    values = checked(declared, change.data, whole=False)
    if there is not None and change.expected_version not in (None, there["version"]):
        raise Refused("version_conflict", f"the version is {there['version']}")
    _check_targets(ctx, frame, declared, values)
    earlier = json.loads(str(held["data"])) if held is not None else {}
    base = json.loads(str(held["base"])) if held is not None else {}
    if there is not None and not made_here:
        base |= {name: there[name] for name in values if name not in base}
    data = _dumped(earlier | _read(change.data))
    _put(ctx, frame, change, held, op="create" if made_here else "patch", data=data, base=_dumped(_plain(base)))


def _hold_relation(ctx: Context[Event], frame: str, change: Change, key: EdgeKey, held: Row | None) -> None:
    declared = relation_type_of(ctx, key)
    row = ctx.edge(*key)
    there = row is not None if held is None else held["op"] in ("relate", REPLACE)
    if change.op == "unrelate":
        if not there:
            raise Refused("unknown_relation", told(key))
        base = _dumped(_plain({name: row[name] for name in declared.columns})) if row is not None else "{}"
        made_here = held is not None and held["op"] == "relate"
        told_base = {"base": base} if held is None else {}
        _put(ctx, frame, change, held, op=NOTHING if made_here else "unrelate", data=None, **told_base)
        return
    checked(declared, change.data, whole=True)
    _check_seen(ctx, frame, key.source)
    _check_seen(ctx, frame, key.target)
    if there:
        raise Refused("relation_exists", told(key))
    again = held is not None and held["op"] == "unrelate"
    told_base = {"base": "{}"} if held is None else {}
    _put(ctx, frame, change, held, op=REPLACE if again else "relate", data=change.data, **told_base)


def _check_targets(ctx: Context[Event], frame: str, declared: ObjectType, values: Mapping[str, Value]) -> None:
    for name, table in declared.references.items():
        if isinstance(id := values.get(name), str):
            _check_seen(ctx, frame, NodeKey(table, id))


def _check_seen(ctx: Context[Event], frame: str, key: NodeKey) -> None:
    """Refuse what is about an object that isn't in use, in the frame's eyes."""
    held = ctx.node("FrameChange", _held_id(frame, key))
    row = ctx.node(*key)
    if row is None and held is None:
        raise Refused("unknown_object", str(key.id))
    if (held is not None and held["op"] in _GONE) or (row is not None and row["retired"]):
        raise Refused("object_retired", str(key.id))


def _put(ctx: Context[Event], frame: str, change: Change, held: Row | None, **values: Value) -> None:
    """Stage what a frame holds of an object or relation; `op` is the kind of change, unless it is among the values."""
    key = change.key
    id = _held_id(frame, key)
    if held is not None:
        ctx.update("FrameChange", id, **{"op": change.op, **values})
        return
    named: dict[str, Value] = {"type_name": key.table}
    if isinstance(key, EdgeKey):
        ends = (key.source.table, str(key.source.id), key.target.table, str(key.target.id))
        named |= dict(zip(PATCH_ENDS, ends, strict=True))
    else:
        named |= {"object_id": str(key.id)}
    made = ctx.create("FrameChange", id, **{"frame": frame, "op": change.op, **named, **values})
    ctx.relate("HOLDS", NodeKey("Frame", frame), made)


def _merge(ctx: Context[Event], row: Row, retired: set[NodeKey | EdgeKey]) -> None:
    """Stage what a frame holds of one object or relation, as far as it isn't so already."""
    change = change_of(row)
    key = change.key
    if isinstance(key, EdgeKey):
        _merge_relation(ctx, row, change, key, retired)
        return
    there = ctx.node(*key)
    if there is None:
        return  # it was made and retired within the frame
    if there["retired"]:
        if change.op != "retire":
            raise Refused("object_retired", str(key.id))
        return
    if change.op == "retire":
        retire_object(ctx, key)
        return
    declared = object_type_named(ctx, key.table)
    values = checked(declared, change.data, whole=False)
    base = json.loads(text(row, "base"))
    change_object(ctx, key, there, {name: _merged(declared, key, name, there, values, base) for name in values})


def _merge_relation(
    ctx: Context[Event], row: Row, change: Change, key: EdgeKey, retired: set[NodeKey | EdgeKey]
) -> None:
    there = ctx.edge(*key)
    if change.op == "unrelate":
        if there is not None:
            retire_relation(ctx, key)
        return
    if key.source in retired or key.target in retired:
        return
    if there is None:
        create_relation(ctx, key, change.data)
        return
    values = checked(relation_type_of(ctx, key), change.data, whole=True)
    if all(there[name] == value for name, value in values.items()):
        return
    base = json.loads(text(row, "base"))
    if row["op"] != REPLACE or any(there[name] != _column(base.get(name)) for name in values):
        raise Refused("merge_conflict", told(key))
    ctx.unrelate(*key)
    ctx.relate(*key, **values)


def _merged(
    declared: ObjectType, key: NodeKey, name: str, there: Row, values: Mapping[str, Value], base: Mapping[str, Value]
) -> Value:
    """A property's value after the merge."""
    now, new = there[name], values[name]
    before = _column(base.get(name))
    rule = declared.merge.get(name)
    if rule is None:
        if now not in (before, new):
            raise Refused("merge_conflict", f"{key.table} {key.id}.{name}")
        return new
    if rule == "sum":
        total = _number(now) + _number(new) - _number(before)
        if abs(total) > INTEGER_MAX:
            raise Refused("merge_conflict", f"{key.table} {key.id}.{name}: the sum is {total}")
        return total
    return _of_two(rule, now, new)


def _of_two(rule: str, now: Value, new: Value) -> Value:
    """What a rule that needs no base makes of two values; one that isn't there doesn't count."""
    if now is None or new is None:
        return new if now is None else now
    if rule == "union":
        return tuple(sorted({*cast("tuple[str, ...]", now), *cast("tuple[str, ...]", new)}))
    if rule in ("any", "all"):
        return bool(now or new) if rule == "any" else bool(now and new)
    return max(now, new) if rule == "max" else min(now, new)


def _number(value: Value) -> int:
    return value if isinstance(value, int) else 0


def _column(value: object) -> Value:
    """A column's value as `base` holds it in JSON."""
    return tuple(value) if isinstance(value, list) else cast("Value", value)


def _plain(base: Mapping[str, object]) -> dict[str, object]:
    return {name: list(value) if isinstance(value, tuple) else value for name, value in base.items()}


def _dumped(value: Mapping[str, object]) -> str:
    """A mapping as JSON that reads back as it was: a float stays one, however large, which RFC 8785 doesn't promise."""
    return json.dumps(value, sort_keys=True, allow_nan=False)


def _read(data: str) -> dict[str, object]:
    return cast("dict[str, object]", read_json(data))


def _held_id(frame: str, key: NodeKey | EdgeKey) -> str:
    """The id of what a frame holds of an object or relation."""
    parts = (frame, *key) if isinstance(key, NodeKey) else (frame, key.table, *key.source, *key.target)
    # No name holds a line break.
    return hashlib.sha256("\n".join(map(str, parts)).encode()).hexdigest()
