"""A worker and its behavior for stories: what executions write, and the answers to what they ask for."""

from __future__ import annotations

import hashlib
from typing import Any

from forktrail_projectors.record import LogRecord, Verdict
from forktrail_schemas import events
from forktrail_schemas.events.base import Event
from forktrail_schemas.ids import derived_id
from forktrail_schemas.signatures import SigningKey
from forktrail_schemas.wire import build
from support.refused_log import by_admin
from support.story import HOLDERS, OPERATOR, Story

WORKER_KEY = SigningKey.from_private_bytes(bytes([7]) * 32)
WORKER = "worker-1"
BEHAVIOR, VERSION, HANDLER = "ask", "1", "on_goal"
NO_CALL = "call-ffffffffffffffffffff"
REQUEST = '{"question":"why"}'
REQUEST_SHA256 = hashlib.sha256(REQUEST.encode()).hexdigest()
DUE_AT = 1_800_000_000_000_000


def execution(number: int = 1, **changes: Any) -> dict[str, Any]:
    """An execution as `meta` names it, but for the path."""
    id = f"00000000-0000-5000-8000-{number:012}"
    return {"id": id, "behavior": BEHAVIOR, "version": VERSION, "handler": HANDLER, "match": [], **changes}


def of_execution(
    story: Story, cls: type[Event], run: dict[str, Any] | None = None, /, *, path: str = "1", **fields: Any
) -> Event:
    """An event that an execution (`execution()`, unless another is given) writes."""
    named = run or execution()
    return naming(story.event(cls, named["behavior"], "behavior", **fields), {**named, "path": path})


def naming(event: Event, run: dict[str, Any] | None = None) -> Event:
    """The event with `meta.execution` set: to `execution()`, unless another is given."""
    meta = {**event.meta.model_dump(), "execution": run or {**execution(), "path": "1"}}
    return event.model_copy(update={"meta": build(type(event.meta), meta)})


def written(
    story: Story, cls: type[Event], run: dict[str, Any] | None = None, /, *, path: str = "1", **fields: Any
) -> LogRecord:
    """The unsigned record of it."""
    return story.record(of_execution(story, cls, run, path=path, **fields))


def by_worker(story: Story, cls: type[Event], **fields: Any) -> LogRecord:
    """An unsigned record in the worker's own name."""
    return story.record(story.event(cls, WORKER, "service", **fields))


def by_operator(story: Story, cls: type[Event], **fields: Any) -> LogRecord:
    """A record signed by the operator."""
    return story.record(story.event(cls, HOLDERS[OPERATOR.key_id], **fields), OPERATOR)


def registration(story: Story, **changes: Any) -> LogRecord:
    """A BehaviorRegistered signed by the admin."""
    fields = {"name": BEHAVIOR, "version": VERSION, "code_sha256": "c" * 64, "subscriptions": "[]", "emits": ["Claim"]}
    return by_admin(story, events.BehaviorRegistered, **(fields | changes))


def claim(story: Story, epoch: int = 1, worker: str = WORKER) -> Verdict:
    """WorkerClaimed."""
    return story.append(by_worker(story, events.WorkerClaimed, worker=worker, epoch=epoch))


def trigger(story: Story) -> str:
    """A goal; returns its event id."""
    event = story.event(events.GoalSet, text="why")
    assert story.tell(event).valid
    return event.meta.event_id


def start(story: Story, trigger_id: str, run: dict[str, Any] | None = None, **changes: Any) -> LogRecord:
    """A BehaviorStarted."""
    fields = {"epoch": 1, "trigger": trigger_id, "inputs": []}
    return written(story, events.BehaviorStarted, run, path="start", **(fields | changes))


def open_with_worker(story: Story) -> str:
    """An open run with a behavior and a worker; returns the event id of a goal that may trigger it."""
    story.open()
    assert story.append(registration(story)).valid
    assert claim(story).valid
    return trigger(story)


def running(story: Story) -> None:
    """The same, with `execution()` under way."""
    assert story.append(start(story, open_with_worker(story))).valid


def model_request(**changes: Any) -> dict[str, Any]:
    """The fields of a ModelRequested."""
    return {"epoch": 1, "name": "small", "request": REQUEST, "request_sha256": REQUEST_SHA256, **changes}


def tool_request(**changes: Any) -> dict[str, Any]:
    """The fields of a ToolRequested."""
    return {**model_request(name="look"), "side_effects": "write", "idempotency_key": None, **changes}


REQUESTS: dict[type[Event], dict[str, Any]] = {
    events.ModelRequested: model_request(),
    events.ToolRequested: tool_request(),
    events.TimerSet: {"epoch": 1, "due_at": DUE_AT},
    events.ApprovalRequested: {"epoch": 1, "title": "Send it?", "details": "to all"},
}


def ask(story: Story, cls: type[Event], **changes: Any) -> str:
    """A valid request of `execution()`; returns the id of its call."""
    event = of_execution(story, cls, **(REQUESTS[cls] | changes))
    assert story.tell(event).valid
    return derived_id("call", event.meta.event_id)


def answer(call_id: str, **changes: Any) -> dict[str, Any]:
    """The fields of a ToolResponded, and of a ModelResponded."""
    return {"call_id": call_id, "outcome": "ok", "answer": "[1]", "error": "", "cost_micros": 20, **changes}


def decision(call_id: str, **changes: Any) -> dict[str, Any]:
    """The fields of an ApprovalDecided."""
    return {"subject": {"kind": "request", "id": call_id}, "decision": "approve", "reason": "fine", **changes}
