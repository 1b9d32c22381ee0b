"""Patches: proposed changes. What no policy holds is done at once, where that is asked; else a reviewer decides."""

from __future__ import annotations

from collections.abc import Iterable

from forktrail_projectors.graph.schema import PATCH_ENDS
from forktrail_projectors.rules.changes import Change, stage
from forktrail_projectors.rules.context import Context, Refused, text
from forktrail_projectors.rules.evidence import check_person
from forktrail_projectors.rules.log import SAME_PERSON_MAY_REVIEW, setting
from forktrail_projectors.rules.policies import held_by_policy
from forktrail_projectors.state import EdgeKey, Key, NodeKey, Row
from forktrail_schemas.events import PatchDecided, PatchProposed
from forktrail_schemas.events.base import Event
from forktrail_schemas.events.log import ChangeKind
from forktrail_schemas.ids import derived_id

PROPOSED, APPLIED, REJECTED = "proposed", "applied", "rejected"
_OF_RELATIONS = ("relate", "unrelate")
_WITHOUT_DATA = ("retire", "unrelate")


def patch_proposed(ctx: Context[PatchProposed]) -> None:
    """Proposes a change that could be made now; makes it, where nobody has to decide on it."""
    event = ctx.event
    _check_shape(event)
    trial = ctx.trial()
    stage(trial, _proposed(event))
    at_once = event.decision == "where_governed" and held_by_policy(trial) is None
    if at_once:
        ctx.adopt(trial)
    execution, actor = event.meta.execution, event.meta.actor
    patch = ctx.create(
        "Patch",
        derived_id("patch", event.meta.event_id),
        op=event.op,
        type_name=event.type_name,
        object_id=event.object_id,
        **({column: getattr(event.ends, column) for column in PATCH_ENDS} if event.ends else {}),
        data=event.data,
        expected_version=event.expected_version,
        status=APPLIED if at_once else PROPOSED,
        why=event.reason,
        execution=execution.id if execution else None,
        path=execution.path if execution else None,
        proposer_kind=actor.kind,
        proposer=actor.id,
    )
    if execution is not None and ctx.node("Execution", execution.id) is not None:
        ctx.relate("PROPOSED", NodeKey("Execution", execution.id), patch)


def patch_decided(ctx: Context[PatchDecided]) -> None:
    """Makes a proposed change, or drops it. One that can't be made any more stays proposed."""
    event = ctx.event
    check_person(event)
    patch = ctx.existing("Patch", event.patch_id, "unknown_patch")
    if patch["status"] != PROPOSED:
        raise Refused("already_decided", f"{patch['status']} by {patch['decided_by'] or 'no policy'}")
    person = event.meta.actor.id
    own = (patch["proposer_kind"], patch["proposer"]) == (event.meta.actor.kind, person)
    if own and setting(ctx, SAME_PERSON_MAY_REVIEW) != "true":
        raise Refused("same_person", person)
    accepted = event.decision == "accept"
    if accepted:
        ctx.accepted = True
        stage(ctx, change_of(patch))
    status = APPLIED if accepted else REJECTED
    ctx.update("Patch", event.patch_id, status=status, decided_by=person, reason=event.reason)


def _check_shape(event: PatchProposed) -> None:
    """Refuse a proposal that lacks what its kind of change needs, or says more."""
    of_relation = event.op in _OF_RELATIONS
    fits = (event.ends is not None) == of_relation and (event.object_id is None) == of_relation
    if not fits or (event.data is None) != (event.op in _WITHOUT_DATA):
        raise Refused("bad_patch", f"{event.op} names {'ends' if of_relation else 'an object'}", takes_id=False)
    if event.meta.frame is not None:
        raise Refused("bad_patch", "nothing is proposed in a frame", takes_id=False)
    if event.expected_version is not None and event.op != "patch":
        raise Refused("bad_patch", f"{event.op} expects no version", takes_id=False)


def _proposed(event: PatchProposed) -> Change:
    """The change that an event proposes."""
    return Change(event.op, _key(event), event.data or "", event.expected_version)


def _key(event: PatchProposed) -> NodeKey | EdgeKey:
    if event.ends is None:
        return NodeKey(event.type_name, event.object_id or "")
    ends = event.ends
    source, target = NodeKey(ends.source_type, ends.source_id), NodeKey(ends.target_type, ends.target_id)
    return EdgeKey(event.type_name, source, target)


def change_of(row: Row) -> Change:
    """The change that the row of a patch, or of a frame's change, holds."""
    op: ChangeKind = text(row, "op")  # type: ignore[assignment]  # the schema of the event that made it
    version = row.get("expected_version")
    return Change(op, key_of(row), str(row["data"] or ""), version if isinstance(version, int) else None)


def key_of(row: Row) -> NodeKey | EdgeKey:
    """The object or relation that such a row is about."""
    if row["source_id"] is None:
        return NodeKey(text(row, "type_name"), text(row, "object_id"))
    ends = [text(row, column) for column in PATCH_ENDS]
    return EdgeKey(text(row, "type_name"), NodeKey(ends[0], ends[1]), NodeKey(ends[2], ends[3]))


def keys(event: Event) -> Iterable[Key]:
    """The keys that follow from a decision alone."""
    return [NodeKey("Patch", event.patch_id)] if isinstance(event, PatchDecided) else []
