"""What a run must be told before a pack can react in it: its types, and its behaviors as they are now."""

from __future__ import annotations

import json
from typing import Protocol

from forktrail_behaviors.behavior import Behavior
from forktrail_behaviors.pack import Pack
from forktrail_behaviors.reads import canonical
from forktrail_projectors.state import NodeId, Row
from forktrail_schemas.errors import InvalidInput
from forktrail_schemas.events import BehaviorRegistered, TypeDeclared
from forktrail_schemas.events.base import Event

Fields = dict[str, object]


class Nodes(Protocol):
    """Rows of a run's graph by key."""

    def node(self, table: str, id: NodeId) -> Row | None:
        """The row of a node, or None where there is none."""
        ...


def to_declare(pack: Pack, graph: Nodes) -> list[tuple[type[Event], Fields]]:
    """The declarations and registrations that a run lacks, as event types and fields, in the order to write them.

    Raises:
        InvalidInput: a type of that name is declared otherwise, or a behavior's code changed under the same version.
    """
    types = [(TypeDeclared, fields) for fields in pack.declarations() if not _declared(fields, graph)]
    behaviors = [(BehaviorRegistered, registration(one)) for one in pack.reactions if not _registered(one, graph)]
    return [*types, *behaviors]


def registration(behavior: Behavior) -> Fields:
    """The fields of a behavior's BehaviorRegistered."""
    subscriptions = [
        {"handler": one.name, **one.subscription.describe(), "reads": dict(one.reads)} for one in behavior.handlers
    ]
    return {
        "name": behavior.name,
        "version": behavior.version,
        "code_sha256": behavior.code_sha256,
        "subscriptions": canonical(subscriptions).decode(),
        "emits": list(behavior.emits),
    }


def _declared(fields: Fields, graph: Nodes) -> bool:
    row = graph.node("Type", str(fields["name"]))
    if row is None:
        return False
    if not _same(row, fields):
        raise InvalidInput(
            f"the run has another type {fields['name']}",
            hint="give the pack's type another name, or open a new run",
            code="type_exists",
        )
    return True


def _same(row: Row, fields: Fields) -> bool:
    """Whether a declaration says what the run was told."""
    references = fields.get("references", ())
    assert isinstance(references, list | tuple)
    named = tuple(f"{one['property']}={one['object_type']}" for one in references)
    told = (row["kind"], row["references"], row["sources"], row["targets"])
    meant = (fields["kind"], named, _names(fields["sources"]), _names(fields["targets"]))
    return told == meant and json.loads(str(row["schema"])) == json.loads(str(fields["json_schema"]))


def _names(listed: object) -> tuple[object, ...]:
    assert isinstance(listed, list | tuple)
    return tuple(listed)


def _registered(behavior: Behavior, graph: Nodes) -> bool:
    row = graph.node("Behavior", behavior.name)
    if row is None or row["version"] != behavior.version:
        return False
    if row["code_sha256"] != behavior.code_sha256:
        raise InvalidInput(
            f"the code of {behavior.name} changed, and its version is still {behavior.version}",
            hint="give it another version, or leave the version out",
            code="version_unchanged",
        )
    return True
