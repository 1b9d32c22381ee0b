"""What a worker finds when it takes a run over: another's late words, forged ones, and code that it doesn't have."""

from __future__ import annotations

import copy
import pickle
import threading
from collections.abc import Iterable
from typing import Any

import pytest
from pydantic import BaseModel

from forktrail_behaviors import ids
from forktrail_behaviors.behavior import Behavior, behavior
from forktrail_behaviors.context import Context
from forktrail_behaviors.given import Node, Row
from forktrail_behaviors.pack import Pack
from forktrail_behaviors.replay import replay
from forktrail_behaviors.testing import Kit
from forktrail_behaviors.testing.kit import ADMIN, OPERATOR, RUN
from forktrail_behaviors.testing.memory_log import Killed
from forktrail_behaviors.tools import tool
from forktrail_behaviors.worker import Worker
from forktrail_schemas.errors import InvalidInput
from forktrail_schemas.events import (
    BehaviorFailed,
    BehaviorStarted,
    ExecutionCancelled,
    GoalSet,
    KeyRegistered,
    ObjectCreated,
    RunClosed,
    ToolResponded,
    WorkerClaimed,
)
from forktrail_schemas.events.base import Event
from forktrail_schemas.signatures import SigningKey
from forktrail_schemas.wire import build

WORKER_KEY = SigningKey.from_private_bytes(bytes([7]) * 32)
OTHER_EXECUTION = "01900000-0000-8000-8000-00000000eeee"


class Item(BaseModel):
    """What is told."""

    n: int = 0


class Out(BaseModel):
    """What a behavior makes of it."""

    text: str


@behavior(on=ObjectCreated, where={"object_type": "Item"}, emits=["Out"])
def on_item(ctx: Context, event: ObjectCreated) -> None:
    ctx.create("Out", text=f"item {event.object_id}")


@behavior(when="MATCH (i:Item) WHERE i.n = 1", emits=["Out"])
def on_pattern(ctx: Context, i: Node) -> None:
    ctx.create("Out", text=f"match {i.id}")


def kit_of(*behaviors: Behavior, **more: Any) -> Kit:
    return Kit(Pack("test", [Item, Out], behaviors=behaviors, **more))


def item(kit: Kit, number: int = 1, event_id: str | None = None) -> ObjectCreated:
    """An item, under an event id of its own."""
    head = kit.head(RUN, "service", "crm")
    meta = head if event_id is None else {**head, "event_id": event_id}
    fields = {"object_type": "Item", "object_id": f"item-{number:08}", "data": '{"n":1}'}
    event = build(ObjectCreated, {"meta": meta, **fields})
    kit.log.write(event)
    return event


def outs(kit: Kit) -> list[Any]:
    return sorted(row["text"] for row in kit.objects("Out"))


def replayed_clean(kit: Kit, pack: Pack | None = None) -> bool:
    reactor = kit.under(pack or kit.pack).reactor()
    try:
        found = replay(RUN, kit.log, reactor, kit.log.end())
        return (found.divergences, found.unwritten) == ([], 0)
    finally:
        reactor.close()


def with_worker_key(kit: Kit) -> Kit:
    """The run with a worker's key, so that workers must sign, and a log that signs as theirs do."""
    told = {"key_id": WORKER_KEY.key_id, "public_key": WORKER_KEY.public_key, "holder": "worker"}
    kit.tell(KeyRegistered, "ada", "human", ADMIN, **told, holder_kind="service", roles=["worker"])

    def signed(events: Iterable[Event]) -> int:
        for event in events:
            kit.log.write(event, WORKER_KEY)
        return len(kit.log.records)

    kit.log.append = signed  # type: ignore[method-assign]  # as a worker's log does
    kit.run()
    return kit


def standing(kit: Kit) -> Worker:
    """A worker that has claimed the run and read all of it; it is driven by hand from there."""
    worker, _ = kit._worker(kit.reactor())
    steps = worker.steps(threading.Event())
    while not worker.epoch:
        next(steps)
    kit.steps = steps  # type: ignore[attr-defined]  # kept, or the worker would be closed
    return worker


def test_what_a_worker_said_after_it_lost_the_run_is_said_again_by_the_next() -> None:
    """A stands still; B claims and is killed before it writes; A says what it owed, void; C finds it missing."""
    kit = kit_of(on_item)
    first = standing(kit)
    item(kit)
    trigger = kit.log.records[-1]
    append = kit.log.append

    def dying(events: Iterable[Event]) -> int:
        written = list(events)
        if not any(isinstance(event, WorkerClaimed) for event in written):
            raise Killed
        return append(written)

    kit.log.append = dying  # type: ignore[method-assign]  # B's last breath
    with pytest.raises(Killed):
        kit.run()
    kit.log.append = append  # type: ignore[method-assign]
    first._take([trigger], None)  # type: ignore[arg-type]  # nothing is owed by a worker that has claimed
    assert {verdict.reason for verdict in kit.void()} == {"old_epoch", "unknown_execution"}
    kit.position.next_offset = 0
    kit.run()
    assert outs(kit) == ["item item-00000001"]
    assert replayed_clean(kit)


@pytest.mark.parametrize("forged", ["another's match", "the ids to come"])
def test_a_forged_start_keeps_no_behavior_from_firing(forged: str) -> None:
    kit = with_worker_key(kit_of(on_item, on_pattern))

    def forge(one: Behavior, match: tuple[str, ...], trigger: str, event_id: str) -> None:
        handler = one.handlers[0].name
        execution = {"id": OTHER_EXECUTION, "behavior": one.name, "version": one.version, "handler": handler}
        head = {**kit.head(RUN, "behavior", one.name), "event_id": event_id}
        meta = {**head, "execution": {**execution, "match": match, "path": "start"}}
        kit.log.write(build(BehaviorStarted, {"meta": meta, "epoch": 99, "trigger": trigger, "inputs": []}))

    trigger = "01900000-0000-7000-8000-00000000aaaa"
    match = ("item-00000001",)
    if forged == "another's match":
        forge(on_pattern, match, trigger, "01900000-0000-7000-8000-00000000bbbb")
        item(kit, event_id=trigger)
    else:
        item(kit, event_id=trigger)
        for one, bound in ((on_item, ()), (on_pattern, match)):
            start = ids.output_id(trigger, one.name, one.version, one.handlers[0].name, bound, "start")
            forge(one, bound, trigger, start)
    kit.run()
    assert outs(kit) == ["item item-00000001", "match item-00000001"]
    assert replayed_clean(kit)


def test_a_forged_answer_to_a_query_keeps_nobody_waiting() -> None:
    @behavior(on=GoalSet, emits=["Out"])
    async def count(ctx: Context, event: GoalSet) -> None:
        rows = await ctx.query("MATCH (i:Item) RETURN count(*) AS n")
        ctx.create("Out", text=str(rows[0].n))

    kit = with_worker_key(kit_of(count))
    kit.tell(GoalSet, text="why")
    kit.log.writes_left = 3  # the claim, the start and the request; killed before the answer
    with pytest.raises(Killed):
        kit.run()
    kit.log.writes_left = None
    (call,) = kit.calls_of("tool")
    fields = {"call_id": call["id"], "outcome": "ok", "answer": "[]", "error": "", "cost_micros": None}
    kit.log.write(build(ToolResponded, {"meta": kit.head(RUN, "service", "worker"), **fields}))
    kit.run()
    assert outs(kit) == ["0"]
    assert replayed_clean(kit)


def test_a_worker_stops_at_a_registration_whose_code_it_lacks_and_passes_nothing_by() -> None:
    @behavior(on=ObjectCreated, where={"object_type": "Item"}, emits=["Out"], version="2", name="on_item")
    def changed(ctx: Context, event: ObjectCreated) -> None:
        ctx.create("Out", text="by version 2")

    kit = kit_of(on_item)
    standing(kit)
    other = kit.under(Pack("test", [Item, Out], behaviors=[changed]))
    other.register()
    item(kit)
    with pytest.raises(InvalidInput, match="isn't loaded, or differs: on_item 2"):
        for _ in kit.steps:  # type: ignore[attr-defined]  # of the worker that stands there
            pass
    other.run()
    assert outs(kit) == ["by version 2"]
    assert replayed_clean(kit, other.pack)


def test_what_a_cancelled_execution_asked_for_is_asked_no_more() -> None:
    called: list[int] = []

    @tool(side_effects="read")
    def paid() -> str:
        called.append(1)
        return "x"

    @behavior(on=ObjectCreated, where={"object_type": "Item"}, emits=["Out"])
    async def pay_and_sleep(ctx: Context, event: ObjectCreated) -> None:
        await ctx.gather(ctx.tool("paid"), ctx.sleep(1e9))

    kit = kit_of(pay_and_sleep, tools=[paid])
    item(kit)
    kit.log.writes_left = 4  # the claim, the start and both requests; killed over the answer
    with pytest.raises(Killed):
        kit.run()
    kit.log.writes_left = None
    before = len(called)
    (started,) = kit.events(BehaviorStarted)
    assert started.meta.execution is not None
    execution = started.meta.execution.id
    kit.tell(ExecutionCancelled, "olga", "human", OPERATOR, execution_id=execution, reason="no")
    for _ in range(3):
        kit.run()
    assert len(called) == before
    assert kit.clock.now_micros < 1_700_000_100_000_000  # nor was the sleep waited for
    assert replayed_clean(kit)


def test_a_query_whose_answer_lies_in_the_blob_store_replays() -> None:
    @behavior(on=GoalSet, emits=["Out"])
    async def read_all(ctx: Context, event: GoalSet) -> None:
        rows = await ctx.query("MATCH (o:Out) RETURN o.text AS text")
        ctx.create("Out", text=str(len(rows[0].text)))

    kit = kit_of(read_all)
    data = '{"text":"' + "a" * 60_000 + '"}'
    for number in (1, 2):
        kit.tell(ObjectCreated, object_type="Out", object_id=f"out-{number:08}", data=data)
    kit.tell(GoalSet, text="why")
    kit.run()
    (responded,) = kit.events(ToolResponded)
    assert responded.blob is not None
    assert replayed_clean(kit)


def test_a_behavior_cant_write_what_needs_a_persons_signature() -> None:
    @behavior(on=GoalSet, emits=[RunClosed])
    async def close(ctx: Context, event: GoalSet) -> None:
        ctx.emit(RunClosed, reason="done")

    kit = kit_of(close)
    kit.tell(GoalSet, text="why")
    kit.run()
    (failed,) = kit.events(BehaviorFailed)
    assert "can't write RunClosed: it is for the role admin" in failed.message
    assert kit.void() == []
    assert replayed_clean(kit)


def test_a_worker_that_lost_the_run_leaves_no_position_past_what_it_said_in_vain() -> None:
    kit = kit_of(on_item)
    first = standing(kit)
    item(kit)
    trigger = kit.log.records[-1]
    kit.log.write(build(WorkerClaimed, {"meta": kit.head(RUN, "service", "other"), "worker": "other", "epoch": 2}))
    first._take([trigger], None)  # type: ignore[arg-type]
    kit.steps.close()  # type: ignore[attr-defined]  # it is told to stop before it reads the other's claim
    assert kit.position.next_offset <= trigger.offset
    kit.run()
    assert outs(kit) == ["item item-00000001"]


# What behaviors and tools may raise, or answer, without harm to their worker.


class Unreadable(Exception):
    def __str__(self) -> str:
        raise ValueError("no words")


def raising(error: BaseException) -> Behavior:
    @behavior(on=GoalSet)
    async def fail(ctx: Context, event: GoalSet) -> None:
        await ctx.sleep(1)
        raise error

    return fail


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (SystemExit(3), "the behavior raised SystemExit"),
        (GeneratorExit(), "the behavior raised GeneratorExit"),
        (Unreadable(), "its message can't be read: ValueError"),
        (ValueError("half a \ud800 character"), "half a ? character"),
    ],
)
def test_whatever_a_behavior_raises_its_execution_fails_and_the_worker_goes_on(
    error: BaseException, message: str
) -> None:
    kit = kit_of(raising(error), on_item)
    kit.tell(GoalSet, text="why")
    item(kit)
    kit.run()
    (failed,) = kit.events(BehaviorFailed)
    assert message in failed.message
    assert outs(kit) == ["item item-00000001"]
    assert replayed_clean(kit)


def test_a_behavior_that_awaits_on_its_way_out_is_ended_all_the_same() -> None:
    @behavior(on=GoalSet)
    async def cling(ctx: Context, event: GoalSet) -> None:
        try:
            await ctx.approval("may I?")
        finally:
            await ctx.sleep(1)

    kit = kit_of(cling, on_item)
    kit.tell(GoalSet, text="why")
    kit.run()
    (started,) = kit.events(BehaviorStarted)
    assert started.meta.execution is not None
    kit.tell(ExecutionCancelled, "olga", "human", OPERATOR, execution_id=started.meta.execution.id, reason="no")
    item(kit)
    kit.run()
    assert outs(kit) == ["item item-00000001"]


@pytest.mark.parametrize("depth", [20, 200])
def test_gathers_nested_too_deep_fail_their_execution_alone(depth: int) -> None:
    async def nest(ctx: Context, left: int) -> None:
        if left:
            await ctx.gather(nest(ctx, left - 1))
        else:
            await ctx.sleep(1)

    @behavior(on=GoalSet, emits=["Out"])
    async def dive(ctx: Context, event: GoalSet) -> None:
        await nest(ctx, depth)
        ctx.create("Out", text="up again")

    kit = kit_of(dive)
    kit.tell(GoalSet, text="why")
    kit.run()
    assert outs(kit) == (["up again"] if depth == 20 else [])
    assert ["nested too deep" in event.message for event in kit.events(BehaviorFailed)] == [True] * (depth == 200)


@tool(side_effects="read")
def dig() -> Any:
    """Answer with more lists in lists than an event may hold."""
    found: list[Any] = []
    for _ in range(50):
        found = [found]
    return found


@tool(side_effects="read")
def leave() -> Any:
    """End the process."""
    raise SystemExit(3)


@pytest.mark.parametrize(("name", "told"), [("dig", "the answer can't be kept"), ("leave", "SystemExit")])
def test_a_tool_whose_answer_no_event_holds_or_that_leaves_has_failed(name: str, told: str) -> None:
    @behavior(on=GoalSet)
    async def call(ctx: Context, event: GoalSet) -> None:
        await ctx.tool(name)

    kit = kit_of(call, tools=[dig, leave])
    kit.tell(GoalSet, text="why")
    kit.run()
    (responded,) = kit.events(ToolResponded)
    assert (responded.outcome, told in responded.error) == ("error", True)
    assert replayed_clean(kit)


def test_a_key_for_a_tool_that_takes_none_is_refused() -> None:
    @behavior(on=GoalSet)
    async def call(ctx: Context, event: GoalSet) -> None:
        await ctx.tool("dig", idempotency_key="k")

    kit = kit_of(call, tools=[dig])
    kit.tell(GoalSet, text="why")
    kit.run()
    (failed,) = kit.events(BehaviorFailed)
    assert "dig takes no idempotency key" in failed.message


def test_a_generator_is_no_handler() -> None:
    async def give(ctx: Context, event: GoalSet) -> Any:
        yield 1

    making: Any = behavior(on=GoalSet)
    with pytest.raises(InvalidInput, match="is a generator"):
        making(give)


def test_rows_are_copied_like_anything_else() -> None:
    node = copy.deepcopy(Node("Item", {"id": "item-1"}))
    assert (node.type, node.id) == ("Item", "item-1")
    row = Row({"a": 1})
    assert copy.deepcopy(row).a == copy.copy(row).a == pickle.loads(pickle.dumps(row)).a == 1
