"""Rules of what executions ask for: requests, their budgets, and their answers, of which the first valid one stands."""

from __future__ import annotations

import hashlib

from forktrail_projectors.rules.context import Context, Refused, number, text
from forktrail_projectors.rules.executions import check_not_ended, execution_of
from forktrail_projectors.rules.log import MODEL_CALLS, TOOL_CALLS
from forktrail_projectors.state import NodeKey, Row, Value
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
from forktrail_schemas.ids import derived_id

MODEL, TOOL, TIMER, APPROVAL = "model", "tool", "timer", "approval"
PENDING, UNKNOWN, ANSWERED = "pending", "unknown", "answered"
OK = "ok"
# Answered from the graph itself: it costs nothing.
GRAPH_QUERY = "graph.query"


def model_requested(ctx: Context[ModelRequested]) -> None:
    """Asks a model."""
    _check_request(ctx.event)
    _spend(ctx, MODEL_CALLS)
    _ask(ctx, MODEL, name=ctx.event.name, request=ctx.event.request, request_sha256=ctx.event.request_sha256)


def tool_requested(ctx: Context[ToolRequested]) -> None:
    """Calls a tool."""
    _check_request(ctx.event)
    if ctx.event.name != GRAPH_QUERY:
        _spend(ctx, TOOL_CALLS)
    _ask(ctx, TOOL, name=ctx.event.name, request=ctx.event.request, request_sha256=ctx.event.request_sha256)


def timer_set(ctx: Context[TimerSet]) -> None:
    """Waits for a time."""
    _ask(ctx, TIMER, due_at=ctx.event.due_at)


def approval_requested(ctx: Context[ApprovalRequested]) -> None:
    """Asks a person: the title is the call's name, the details are its request."""
    _ask(ctx, APPROVAL, name=ctx.event.title, request=ctx.event.details)


def model_responded(ctx: Context[ModelResponded]) -> None:
    """A model's answer."""
    event = ctx.event
    _answer(ctx, MODEL, **_told(event), input_tokens=event.input_tokens, output_tokens=event.output_tokens)


def tool_responded(ctx: Context[ToolResponded]) -> None:
    """A tool's answer."""
    _answer(ctx, TOOL, **_told(ctx.event))


def timer_fired(ctx: Context[TimerFired]) -> None:
    """The time that was waited for has come, by the clock of whoever says so."""
    event = ctx.event
    due = number(_pending(ctx, event.call_id, TIMER), "due_at")
    if event.meta.occurred_at < due:
        raise Refused("not_due", f"{due - event.meta.occurred_at} microseconds early")
    _answer(ctx, TIMER, outcome=OK)


def request_decided(ctx: Context[ApprovalDecided]) -> None:
    """A person's yes or no to an execution's request; the first valid one stands."""
    event = ctx.event
    call = _call(ctx, event.subject.id, APPROVAL)
    if call["status"] != PENDING:
        raise Refused("already_decided", f"{call['outcome']} by {call['decided_by']}")
    _check_waiting(ctx, call)
    person = event.meta.actor.id
    approval = ctx.create(
        "Approval",
        derived_id("approval", event.meta.event_id),
        decision=event.decision,
        approver=person,
        reason=event.reason,
    )
    ctx.relate("DECIDES", approval, NodeKey("Call", event.subject.id))
    ctx.update("Call", event.subject.id, status=ANSWERED, outcome=event.decision, decided_by=person)


def effect_resolved(ctx: Context[EffectResolved]) -> None:
    """A person says what became of a call that may or may not have been carried out."""
    event = ctx.event
    call = ctx.existing("Call", event.call_id, "unknown_request")
    if call["status"] != UNKNOWN:
        raise Refused("not_unknown", text(call, "status"))
    ctx.update(
        "Call",
        event.call_id,
        status=ANSWERED,
        outcome=event.outcome,
        answer=event.answer,
        error=event.reason if event.outcome != OK else None,
        decided_by=event.meta.actor.id,
    )


def _check_request(event: ModelRequested | ToolRequested) -> None:
    digest = hashlib.sha256(event.request.encode()).hexdigest()
    if digest != event.request_sha256:
        raise Refused("request_mismatch", digest, takes_id=False)


def _spend(ctx: Context[Event], name: str) -> None:
    """Count a call; refuse one past its budget. Who opened a run before there was this budget has no row of it."""
    row = ctx.node("Budget", name)
    used = 1 if row is None else number(row, "used") + 1
    limit = None if row is None else row["limit"]
    if isinstance(limit, int) and used > limit:
        raise Refused("budget_exhausted", f"{name}: {used} of {limit}")
    if row is None:
        ctx.create("Budget", name, limit=None, used=used)
    else:
        ctx.update("Budget", name, used=used)


def _ask(ctx: Context[Event], kind: str, **values: Value) -> None:
    """Stage a call of the execution that asks."""
    execution = execution_of(ctx.event)
    call = ctx.create(
        "Call",
        derived_id("call", ctx.event.meta.event_id),
        execution=execution.id,
        path=execution.path,
        kind=kind,
        status=PENDING,
        **values,
    )
    ctx.relate("ASKED", NodeKey("Execution", execution.id), call)


def _call(ctx: Context[Event], call_id: str, kind: str) -> Row:
    row = ctx.existing("Call", call_id, "unknown_request")
    if row["kind"] != kind:
        raise Refused("unknown_request", f"{call_id} asks for a {row['kind']}")
    return row


def _pending(ctx: Context[Event], call_id: str, kind: str) -> Row:
    """A call that waits for its answer."""
    row = _call(ctx, call_id, kind)
    if row["status"] != PENDING:
        raise Refused("already_answered", text(row, "status"))
    _check_waiting(ctx, row)
    return row


def _check_waiting(ctx: Context[Event], call: Row) -> None:
    check_not_ended(ctx.existing("Execution", text(call, "execution"), "unknown_execution"))


def _answer(ctx: Context[ModelResponded | ToolResponded | TimerFired], kind: str, **values: Value) -> None:
    _pending(ctx, ctx.event.call_id, kind)
    status = UNKNOWN if values["outcome"] == UNKNOWN else ANSWERED
    ctx.update("Call", ctx.event.call_id, status=status, **values)


def _told(event: ModelResponded | ToolResponded) -> dict[str, Value]:
    return {
        "outcome": event.outcome,
        "answer": event.answer,
        "blob": event.blob.sha256 if event.blob else None,
        "error": event.error or None,
        "cost_micros": event.cost_micros,
    }
