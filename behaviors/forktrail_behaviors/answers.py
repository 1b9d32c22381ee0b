"""Reads answers from the log: which execution waits for an event, where, and what the event tells it."""

from __future__ import annotations

from forktrail_behaviors.commands import Answer
from forktrail_behaviors.inputs import Blobs
from forktrail_projectors.rules.context import text
from forktrail_projectors.state import RowSource
from forktrail_schemas.events import (
    ApprovalDecided,
    ApprovalRequested,
    EffectResolved,
    ModelRequested,
    ModelResponded,
    TimerFired,
    TimerSet,
    ToolRequested,
    ToolResponded,
)
from forktrail_schemas.events.base import Event

REQUESTS = (ModelRequested, ToolRequested, TimerSet, ApprovalRequested)
_UNSETTLED = "unknown"


def is_request(event: Event) -> bool:
    """Whether it asks for something that an execution waits for."""
    return isinstance(event, REQUESTS)


def answer_in(event: Event, graph: RowSource, blobs: Blobs) -> tuple[str, str, Answer] | None:
    """The execution and path that a valid event answers, and the answer; None where it answers nothing.

    Raises:
        Corruption: the answer's bytes are missing or altered.
    """
    if isinstance(event, ModelResponded | ToolResponded):
        if event.outcome == _UNSETTLED:
            return None
        value = blobs.get(event.blob.sha256).decode() if event.blob is not None else event.answer or ""
        return _at(event.call_id, graph, Answer(event.outcome, value, event.error))
    if isinstance(event, TimerFired):
        return _at(event.call_id, graph, Answer("ok"))
    if isinstance(event, EffectResolved):
        return _at(event.call_id, graph, Answer(event.outcome, event.answer or "", event.reason))
    if isinstance(event, ApprovalDecided) and event.subject.kind == "request":
        decision = Answer("ok", event.decision, person=event.meta.actor.id, reason=event.reason)
        return _at(event.subject.id, graph, decision)
    return None


def _at(call_id: str, graph: RowSource, answer: Answer) -> tuple[str, str, Answer]:
    call = graph.node("Call", call_id)
    assert call is not None, "a valid answer has its call"
    return text(call, "execution"), text(call, "path"), answer
