"""Rules of what executions ask for: requests, their budgets, and their answers, of which the first valid one stands."""

from __future__ import annotations

import hashlib

from forktrail_projectors.rules.context import Context, Refused, number, text
from forktrail_projectors.rules.executions import check_not_ended, execution_of
from forktrail_projectors.rules.log import COST, MODEL_CALLS, SECONDS, TOKENS, TOOL_CALLS
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
_MICROS = 1_000_000
_INT64_MAX = 2**63 - 1


def model_requested(ctx: Context[ModelRequested]) -> None:
    """Asks a model."""
    event = ctx.event
    told = event.request, event.blob.sha256 if event.blob else None
    _check_request(event.request_sha256, *told)
    _check_left(ctx, TOKENS, COST, SECONDS)
    _spend(ctx, MODEL_CALLS)
    _ask(ctx, MODEL, name=event.name, request=told[0], request_blob=told[1], request_sha256=event.request_sha256)


def tool_requested(ctx: Context[ToolRequested]) -> None:
    """Calls a tool."""
    _check_request(ctx.event.request_sha256, ctx.event.request)
    if ctx.event.name != GRAPH_QUERY:
        _check_left(ctx, COST, SECONDS)
        _spend(ctx, TOOL_CALLS)
    _ask(ctx, TOOL, name=ctx.event.name, request=ctx.event.request, request_sha256=ctx.event.request_sha256)


def timer_set(ctx: Context[TimerSet]) -> None:
    """Waits for a time."""
    _ask(ctx, TIMER, due_at=ctx.event.due_at)


def approval_requested(ctx: Context[ApprovalRequested]) -> None:
    """Asks a person: the title is the call's name, the details are its request."""
    _ask(ctx, APPROVAL, name=ctx.event.title, request=ctx.event.details)


def model_responded(ctx: Context[ModelResponded]) -> None:
    """A model's answer, with what it took."""
    event = ctx.event
    _answer(
        ctx,
        MODEL,
        **_told(event),
        input_tokens=event.input_tokens,
        output_tokens=event.output_tokens,
        provider=event.provider or None,
        model=event.model or None,
        finish_reason=event.finish_reason or None,
        attempts=event.attempts,
        sent=event.sent.sha256 if event.sent else None,
        received=event.received.sha256 if event.received else None,
    )
    _use(ctx, TOKENS, (event.input_tokens or 0) + (event.output_tokens or 0))
    _use_up(ctx, event)


def tool_responded(ctx: Context[ToolResponded]) -> None:
    """A tool's answer."""
    _answer(ctx, TOOL, **_told(ctx.event))
    _use_up(ctx, ctx.event)


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


def _check_request(sha256: str, text: str | None, blob: str | None = None) -> None:
    """Refuse a request whose digest is another, or of which it isn't plain where it stands."""
    digest = blob if text is None else hashlib.sha256(text.encode()).hexdigest()
    if digest != sha256 or (text is not None and blob is not None):
        raise Refused("request_mismatch", digest or "there is none", takes_id=False)


def _spend(ctx: Context[Event], name: str) -> None:
    """Count a call; refuse one past its budget. A budget has its row from the first call or limit on."""
    row = ctx.node("Budget", name)
    used = 1 if row is None else number(row, "used") + 1
    limit = None if row is None else row["limit"]
    if isinstance(limit, int) and used > limit:
        raise Refused("budget_exhausted", f"{name}: {used} of {limit}")
    _set_used(ctx, name, row, used=used)


def _check_left(ctx: Context[Event], *names: str) -> None:
    """Refuse a call where nothing is left of what calls turn out to have used once they are answered."""
    for name in names:
        row = ctx.node("Budget", name)
        limit = None if row is None else row["limit"]
        if row is not None and isinstance(limit, int) and number(row, "used") >= limit:
            raise Refused("budget_exhausted", f"{name}: {row['used']} of {limit}")


def _use_up(ctx: Context[Event], event: ModelResponded | ToolResponded) -> None:
    """Count what a call cost and how long it took."""
    _use(ctx, COST, event.cost_micros or 0)
    if event.duration_micros:
        row = ctx.node("Budget", SECONDS)
        micros = event.duration_micros + (0 if row is None else _micros_used(row))
        _set_used(ctx, SECONDS, row, used=micros // _MICROS, remainder=micros % _MICROS)


def _micros_used(row: Row) -> int:
    remainder = row["remainder"]
    return number(row, "used") * _MICROS + (remainder if isinstance(remainder, int) else 0)


def _use(ctx: Context[Event], name: str, amount: int) -> None:
    if amount:
        row = ctx.node("Budget", name)
        _set_used(ctx, name, row, used=amount if row is None else number(row, "used") + amount)


def _set_used(ctx: Context[Event], name: str, row: Row | None, **used: int) -> None:
    # What answers claim to have used may be any number; a column holds no larger one.
    used = {column: min(value, _INT64_MAX) for column, value in used.items()}
    if row is None:
        ctx.create("Budget", name, **used)
    else:
        ctx.update("Budget", name, **used)


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
        "duration_micros": event.duration_micros,
    }
