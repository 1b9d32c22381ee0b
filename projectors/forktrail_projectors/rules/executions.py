"""Rules of behaviors and their executions: who may work on a run, what fires, and what may still be said of it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from forktrail_projectors.rules.context import WORKER, Context, Refused, number, text
from forktrail_projectors.rules.log import WORKER_ROLE
from forktrail_projectors.state import Key, NodeKey, Row, Value
from forktrail_schemas.events import (
    ApprovalRequested,
    BehaviorCompleted,
    BehaviorFailed,
    BehaviorRegistered,
    BehaviorStarted,
    ExecutionCancelled,
    FrameClosed,
    FrameOpened,
    ModelRequested,
    PatchProposed,
    TimerSet,
    ToolRequested,
    WorkerClaimed,
)
from forktrail_schemas.events.base import Event
from forktrail_schemas.events.shared import Execution

RUNNING, COMPLETED, FAILED, CANCELLED = "running", "completed", "failed", "cancelled"
BEHAVIOR = "behavior"

Request = ModelRequested | ToolRequested | TimerSet | ApprovalRequested
# Events that only an execution writes, and under the claim that holds.
_OF_AN_EXECUTION = (BehaviorStarted, BehaviorCompleted, BehaviorFailed, *Request.__args__)

# What executions write, and others with a worker's key too.
_OF_ANYONE_AT_WORK = (PatchProposed, FrameOpened, FrameClosed)


def behavior_registered(ctx: Context[BehaviorRegistered]) -> None:
    """Has a behavior react to what comes after this, in the place of its earlier version."""
    event = ctx.event
    version = version_id(event.name, event.version)
    if ctx.node("BehaviorVersion", version) is not None:
        raise Refused("behavior_exists", f"{event.name} {event.version}")
    said: dict[str, Value] = {
        "version": event.version,
        "code_sha256": event.code_sha256,
        "registered_offset": ctx.offset,
    }
    more: dict[str, Value] = {"subscriptions": event.subscriptions, "emits": event.emits}
    current = ctx.node("Behavior", event.name)
    if current is None:
        ctx.create("Behavior", event.name, **said, **more)
    else:
        ctx.update("Behavior", event.name, **said, **more)
        ctx.update("BehaviorVersion", version_id(event.name, text(current, "version")), superseded_offset=ctx.offset)
    ctx.create("BehaviorVersion", version, behavior=event.name, **said)


def worker_claimed(ctx: Context[WorkerClaimed]) -> None:
    """Gives the run to a worker; one that claimed it before has lost it."""
    event, last = ctx.event, _held(ctx)
    if event.epoch != last + 1:
        raise Refused("epoch_conflict", f"the last claim is {last}")
    if ctx.node(*WORKER) is None:
        ctx.create("Worker", "worker", worker=event.worker, epoch=event.epoch, keys=0)
    else:
        ctx.update("Worker", "worker", worker=event.worker, epoch=event.epoch)


def check_work(ctx: Context[Event]) -> None:
    """Refuse what a worker that lost the run writes, and what doesn't fit the execution that it names.

    Until a worker has claimed the run there are no executions, and an event may name one as it likes.
    """
    event = ctx.event
    execution = event.meta.execution
    if isinstance(event, _OF_AN_EXECUTION):
        if execution is None:
            raise Refused("execution_missing", takes_id=False)
        _check_epoch(ctx, event.epoch)
    elif execution is None:
        return
    elif event.ROLE == WORKER_ROLE and not isinstance(event, _OF_ANYONE_AT_WORK):
        raise Refused("execution_mismatch", "only what an execution writes may name it", takes_id=False)
    elif _held(ctx) == 0:
        return
    actor = event.meta.actor
    if (actor.kind, actor.id) != (BEHAVIOR, execution.behavior):
        raise Refused("execution_mismatch", f"the actor is not {BEHAVIOR} {execution.behavior}", takes_id=False)
    if not isinstance(event, BehaviorStarted):
        _check_running(ctx, execution)


def _check_epoch(ctx: Context[Event], epoch: int) -> None:
    """Refuse what isn't said under the claim that holds. Its id stays free, for the worker that holds the run now."""
    held = _held(ctx)
    if held == 0:
        raise Refused("no_worker", takes_id=False)
    if epoch != held:
        raise Refused("old_epoch", f"{epoch}; the run is held under {held}", takes_id=False)


def _held(ctx: Context[Event]) -> int:
    """The number of the last claim; 0 before any."""
    row = ctx.node(*WORKER)
    return 0 if row is None else number(row, "epoch")


def _check_running(ctx: Context[Event], execution: Execution) -> None:
    row = ctx.node("Execution", execution.id)
    if row is None:
        # Its start may have been refused as a lost worker's, and come again.
        raise Refused("unknown_execution", execution.id, takes_id=False)
    said = (execution.behavior, execution.version, execution.handler, tuple(execution.match))
    if said != (row["behavior"], row["version"], row["handler"], row["match"]):
        raise Refused("execution_mismatch", execution.id, takes_id=False)
    check_not_ended(row)


def check_not_ended(execution: Row) -> None:
    """Refuse what is about an execution that has ended."""
    if execution["status"] != RUNNING:
        raise Refused("execution_ended", f"{execution['id']} is {execution['status']}")


def behavior_started(ctx: Context[BehaviorStarted]) -> None:
    """Fires a handler; for one match, once ever."""
    event, execution = ctx.event, execution_of(ctx.event)
    version = ctx.existing("BehaviorVersion", version_id(execution.behavior, execution.version), "unknown_behavior")
    trigger = _trigger(ctx, event.trigger)
    superseded = version["superseded_offset"]
    if number(version, "registered_offset") >= trigger or (isinstance(superseded, int) and superseded <= trigger):
        raise Refused("not_active", f"{execution.behavior} {execution.version} at offset {trigger}")
    if ctx.node("Execution", execution.id) is not None:
        raise Refused("execution_exists", execution.id)
    match = tuple(execution.match)
    if match:
        fired = ctx.node("Match", match_id(execution))
        if fired is not None:
            raise Refused("already_fired", text(fired, "execution"))
        ctx.create("Match", match_id(execution), execution=execution.id, offset=ctx.offset)
    made = ctx.create(
        "Execution",
        execution.id,
        behavior=execution.behavior,
        version=execution.version,
        handler=execution.handler,
        trigger=event.trigger,
        match=match,
        status=RUNNING,
    )
    ctx.relate("TRIGGERED", NodeKey("Event", trigger), made)


def _trigger(ctx: Context[BehaviorStarted], event_id: str) -> int:
    """The offset of a valid event that came before."""
    identity = ctx.existing("Identity", event_id, "unknown_trigger")
    offset = number(identity, "offset")
    if ctx.existing("Event", offset, "unknown_trigger")["verdict"] != "valid":
        raise Refused("unknown_trigger", event_id)
    return offset


def behavior_completed(ctx: Context[BehaviorCompleted]) -> None:
    """Ends an execution."""
    ctx.update("Execution", execution_of(ctx.event).id, status=COMPLETED)


def behavior_failed(ctx: Context[BehaviorFailed]) -> None:
    """Ends an execution in an error."""
    event = ctx.event
    ctx.update("Execution", execution_of(event).id, status=FAILED, error_type=event.error_type, message=event.message)


def execution_cancelled(ctx: Context[ExecutionCancelled]) -> None:
    """Ends an execution by a person's word; what it asked for is no longer answered."""
    event = ctx.event
    check_not_ended(ctx.existing("Execution", event.execution_id, "unknown_execution"))
    ctx.update("Execution", event.execution_id, status=CANCELLED, message=event.reason)


def execution_of(event: Event) -> Execution:
    """The execution of an event that only an execution writes."""
    assert event.meta.execution is not None, "check_work comes first"
    return event.meta.execution


def version_id(name: str, version: str) -> str:
    """The id of a behavior's version; the first @ ends the name."""
    return f"{name.replace('%', '%25').replace('@', '%40')}@{version}"


def match_id(execution: Execution) -> str:
    """The id of a match: who fires, and for what."""
    # No name holds a line break.
    told = "\n".join((execution.behavior, execution.handler, *execution.match))
    return hashlib.sha256(told.encode()).hexdigest()


def keys(event: Event) -> Iterable[Key]:
    """The keys that follow from the execution that an event names."""
    execution = event.meta.execution
    if execution is not None:
        yield NodeKey("Execution", execution.id)


def start_keys(event: BehaviorStarted) -> Iterable[Key]:
    """The keys that a start reads."""
    yield NodeKey("Identity", event.trigger)
    execution = event.meta.execution
    if execution is not None:
        yield NodeKey("BehaviorVersion", version_id(execution.behavior, execution.version))
        if execution.match:
            yield NodeKey("Match", match_id(execution))
