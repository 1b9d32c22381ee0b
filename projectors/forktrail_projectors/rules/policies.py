"""Policies: which changes of a type nobody makes without a reviewer's yes.

What a rule has staged is looked at once, in the one place that every event passes. So no other call, of whatever kind,
makes a change that this one may not.
"""

from __future__ import annotations

from collections.abc import Iterator

from forktrail_projectors.graph.declared_tables import BUILT_IN
from forktrail_projectors.rules.context import Context, Refused
from forktrail_projectors.state import Value
from forktrail_schemas.events import PolicySet
from forktrail_schemas.events.base import Event
from forktrail_schemas.events.log import ChangeKind


def policy_set(ctx: Context[PolicySet]) -> None:
    """Sets which changes of a type a reviewer has to accept, in the place of what held before."""
    event = ctx.event
    if BUILT_IN.taken(event.type_name):
        raise Refused("type_reserved", event.type_name, takes_id=False)
    said: dict[str, Value] = {"changes": tuple(sorted(set(event.changes))), "reason": event.reason}
    if ctx.node("Policy", event.type_name) is None:
        ctx.create("Policy", event.type_name, **said)
    else:
        ctx.update("Policy", event.type_name, **said)


def check_policies(ctx: Context[Event]) -> None:
    """Refuse what a policy holds, unless a reviewer has accepted it."""
    if not ctx.accepted and ctx.overlay.tables.objects:
        held = held_by_policy(ctx)
        if held is not None:
            raise Refused("approval_required", held)


def held_by_policy(ctx: Context[Event]) -> str | None:
    """The first staged change that a policy holds, in words."""
    for change, type_name in _staged(ctx):
        policy = ctx.node("Policy", type_name)
        changes = None if policy is None else policy["changes"]
        if isinstance(changes, tuple) and change in changes:
            return f"{change} of {type_name}"
    return None


def _staged(ctx: Context[Event]) -> Iterator[tuple[ChangeKind, str]]:
    """What is staged of declared types. A relation is a change of its own type and of the objects at both its ends."""
    tables = ctx.overlay.tables
    for key in ctx.new_nodes:
        if key.table in tables.objects:
            yield "create", key.table
    for key, values in ctx.changed_nodes.items():
        if key.table in tables.objects:
            yield "retire" if values.get("retired") else "patch", key.table
    for table, source, target, _ in ctx.new_edges:
        if tables.edges[table].removable:
            yield from (("relate", name) for name in (table, source.table, target.table))
    for table, source, target in ctx.old_edges:
        yield from (("unrelate", name) for name in (table, source.table, target.table))
