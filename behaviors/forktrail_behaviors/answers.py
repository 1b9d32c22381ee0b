"""Reads answers from the log: which execution waits for an event, where, and what the event tells it."""

from __future__ import annotations

from forktrail_behaviors.commands import Answer
from forktrail_behaviors.inputs import Blobs
from forktrail_projectors.rules.context import text
from forktrail_projectors.rules.patches import APPLIED, PROPOSED
from forktrail_projectors.state import RowSource
from forktrail_schemas.events import (
    ApprovalDecided,
    ApprovalRequested,
    EffectResolved,
    ModelRequested,
    ModelResponded,
    PatchDecided,
    PatchProposed,
    TimerFired,
    TimerSet,
    ToolRequested,
    ToolResponded,
)
from forktrail_schemas.events.base import Event
from forktrail_schemas.ids import derived_id

REQUESTS = (ModelRequested, ToolRequested, TimerSet, ApprovalRequested)
_UNSETTLED = "unknown"


def is_request(event: Event) -> bool:
    """Whether it asks for something that an effect, a clock or a person answers: a call."""
    return isinstance(event, REQUESTS)


def is_waited_for(event: Event) -> bool:
    """Whether the execution that made it may wait for what becomes of it: a call, or a proposal."""
    return isinstance(event, (*REQUESTS, PatchProposed))


def answer_in(event: Event, graph: RowSource, blobs: Blobs) -> tuple[str, str, Answer] | None:
    """The execution and path that a valid event answers, and the answer; None where it answers nothing.

    Raises:
        Corruption: the answer's bytes are missing or altered.
    """
    if isinstance(event, ModelResponded | ToolResponded):
        if event.outcome == _UNSETTLED:
            return None
        return _at(event.call_id, graph, Answer(event.outcome, answer_text(event, blobs) or "", event.error))
    if isinstance(event, TimerFired):
        return _at(event.call_id, graph, Answer("ok"))
    if isinstance(event, EffectResolved):
        return _at(event.call_id, graph, Answer(event.outcome, event.answer or "", event.reason))
    if isinstance(event, PatchProposed):
        return _on_patch(derived_id("patch", event.meta.event_id), graph)
    if isinstance(event, PatchDecided):
        return _on_patch(event.patch_id, graph)
    if isinstance(event, ApprovalDecided) and event.subject.kind == "request":
        decision = Answer("ok", event.decision, person=event.meta.actor.id, reason=event.reason)
        return _at(event.subject.id, graph, decision)
    return None


def answer_text(event: ModelResponded | ToolResponded, blobs: Blobs) -> str | None:
    """The JSON text of an answer, wherever it lies; None where there is none.

    Raises:
        Corruption: its bytes are missing or altered.
    """
    return event.answer if event.blob is None else blobs.get(event.blob.sha256).decode()


def _on_patch(patch_id: str, graph: RowSource) -> tuple[str, str, Answer] | None:
    """What became of a proposal; None while it waits, or where no execution made it."""
    row = graph.node("Patch", patch_id)
    assert row is not None, "a valid proposal has its row"
    if row["status"] == PROPOSED or row["execution"] is None:
        return None
    decision = "accept" if row["status"] == APPLIED else "reject"
    answer = Answer("ok", decision, person=str(row["decided_by"] or ""), reason=str(row["reason"] or ""))
    return text(row, "execution"), text(row, "path"), answer


def _at(call_id: str, graph: RowSource, answer: Answer) -> tuple[str, str, Answer]:
    call = graph.node("Call", call_id)
    assert call is not None, "a valid answer has its call"
    return text(call, "execution"), text(call, "path"), answer
