"""What a run with behaviors promises, case by case, on the testing kit."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from pydantic import BaseModel

from forktrail_behaviors.behavior import Behavior, behavior
from forktrail_behaviors.clerk import Clerk
from forktrail_behaviors.commands import RequestRefused
from forktrail_behaviors.context import Context
from forktrail_behaviors.given import Node, Object
from forktrail_behaviors.pack import Pack
from forktrail_behaviors.replay import Replayed, replay
from forktrail_behaviors.testing import FixtureModel, Kit
from forktrail_behaviors.testing.inline_desk import InlineDesk
from forktrail_behaviors.testing.kit import ADMIN, OPERATOR, RUN
from forktrail_behaviors.testing.memory_log import Killed
from forktrail_behaviors.tools import FunctionTool, tool
from forktrail_behaviors.types import Ref, RelationDeclaration, relation_type_of
from forktrail_behaviors.worker import Superseded, Worker
from forktrail_schemas.errors import InvalidInput
from forktrail_schemas.events import (
    BehaviorFailed,
    BehaviorStarted,
    BudgetSet,
    EffectResolved,
    ExecutionCancelled,
    ModelRequested,
    ObjectCreated,
    ObjectPatched,
    RelationCreated,
    RelationRetired,
    TimerFired,
    ToolResponded,
)


class Item(BaseModel):
    """Anything."""

    n: int = 0
    text: str | None = None
    parent: Ref[Item] | None = None


def pack(*behaviors: Behavior, tools: tuple[FunctionTool, ...] = (), model: Callable[..., Any] | None = None) -> Pack:
    relations: list[RelationDeclaration] = [relation_type_of("LINKS", [Item], [Item])]
    models = [FixtureModel("model", model)] if model else []
    return Pack("test", [Item], relations, behaviors=behaviors, tools=tools, models=models)


def item(kit: Kit, number: int, data: str = "{}") -> str:
    id = f"item-{number:08x}"
    kit.tell(ObjectCreated, object_type="Item", object_id=id, data=data)
    return id


def link(kit: Kit, source: str, target: str) -> None:
    ends = {"source_type": "Item", "source_id": source, "target_type": "Item", "target_id": target}
    kit.tell(RelationCreated, relation_type="LINKS", data="{}", **ends)


def unlink(kit: Kit, source: str, target: str) -> None:
    ends = {"source_type": "Item", "source_id": source, "target_type": "Item", "target_id": target}
    kit.tell(RelationRetired, relation_type="LINKS", reason="", **ends)


def patch(kit: Kit, id: str, data: str) -> None:
    kit.tell(ObjectPatched, object_type="Item", object_id=id, data=data, expected_version=None)


def matches(kit: Kit) -> list[tuple[str, ...]]:
    return [tuple(event.meta.execution.match) for event in kit.events(BehaviorStarted) if event.meta.execution]


def strictly(kit: Kit, with_pack: Pack | None = None) -> Replayed:
    reactor = kit.under(with_pack or kit.pack).reactor()
    try:
        return replay(RUN, kit.log, reactor, kit.log.end())
    finally:
        reactor.close()


# Matches.


@behavior(when="MATCH (a:Item)-[:LINKS]->(b:Item) WHERE a.n > 0")
def linked(ctx: Context, a: Node, b: Node) -> None:
    """Fires on a link from what counts."""


@behavior(when="MATCH (a:Item) WHERE a.n > 0 AND NOT EXISTS { MATCH (b:Item)-[:LINKS]->(a) }")
def alone(ctx: Context, a: Node) -> None:
    """Fires on what counts and has no link to it."""


def test_a_match_fires_once_though_later_events_touch_its_nodes() -> None:
    kit = Kit(pack(linked))
    one, two = item(kit, 1, '{"n":1}'), item(kit, 2)
    link(kit, one, two)
    for number in range(10):
        patch(kit, one if number % 2 else two, f'{{"n":{number + 1}}}')
    kit.run()
    assert matches(kit) == [(one, two)]
    patch(kit, one, '{"n":99}')
    kit.run()  # as another process
    assert matches(kit) == [(one, two)]
    assert strictly(kit).divergences == []


def test_a_match_that_ends_and_holds_again_has_fired() -> None:
    kit = Kit(pack(linked))
    one, two = item(kit, 1, '{"n":1}'), item(kit, 2)
    link(kit, one, two)
    unlink(kit, one, two)
    link(kit, one, two)
    kit.run()
    assert matches(kit) == [(one, two)]


def test_a_match_born_of_a_retired_relation_fires() -> None:
    kit = Kit(pack(alone))
    one, two = item(kit, 1), item(kit, 2)
    link(kit, two, one)
    patch(kit, one, '{"n":1}')
    kit.run()
    assert matches(kit) == []
    unlink(kit, two, one)
    kit.run()
    assert matches(kit) == [(one,)]
    assert strictly(kit).divergences == []


def test_nodes_are_given_as_of_the_trigger_however_late_they_are_looked_at() -> None:
    @behavior(when="MATCH (a:Item) WHERE a.n > 0", emits=["Item"], repeats="what it makes has n = 0")
    async def keep(ctx: Context, a: Node) -> None:
        await ctx.approval("go on?")
        ctx.create("Item", text=f"n was {a.n}")

    kit = Kit(pack(keep))
    one = item(kit, 1, '{"n":1}')
    patch(kit, one, '{"n":2}')
    kit.run()
    patch(kit, one, '{"n":3}')
    kit.decide(str(kit.calls_of("approval")[0]["id"]))
    kit.run()
    assert [row["text"] for row in kit.objects("Item") if row["text"]] == ["n was 1"]


# Requests and answers.


def test_three_identical_requests_are_answered_and_replayed_each_for_itself() -> None:
    answers = iter((1, 2, 3))

    @behavior(on=ObjectCreated, where={"object_id": "item-00000001"}, emits=["Item"], repeats="only one has this id")
    async def thrice(ctx: Context, event: ObjectCreated) -> None:
        said = [await ctx.model("model", messages=[{"role": "user", "content": "n?"}]) for _ in range(3)]
        ctx.create("Item", text=str(said))

    kit = Kit(pack(thrice, model=lambda request: next(answers)))
    item(kit, 1)
    kit.run()
    assert [row["text"] for row in kit.objects("Item") if row["text"]] == ["[1, 2, 3]"]
    requests = kit.events(ModelRequested)
    assert len({event.request_sha256 for event in requests}) == 1
    assert len({event.meta.event_id for event in requests}) == 3
    assert strictly(kit).divergences == []


def test_a_request_past_its_budget_resumes_the_behavior_with_a_refusal() -> None:
    @behavior(on=ObjectCreated, where={"object_id": "item-00000001"}, emits=["Item"], repeats="only one has this id")
    async def spend(ctx: Context, event: ObjectCreated) -> None:
        await ctx.model("model", messages=[])
        try:
            await ctx.model("model", messages=[])
        except RequestRefused as refused:
            ctx.create("Item", text=refused.code)
            await ctx.model("model", messages=[])

    kit = Kit(pack(spend, model=lambda request: 1))
    kit.tell(BudgetSet, "ada", "human", ADMIN, name="model-calls", limit=1)
    item(kit, 1)
    kit.run()
    assert [row["text"] for row in kit.objects("Item") if row["text"]] == ["budget_exhausted"]
    (failed,) = kit.events(BehaviorFailed)
    assert failed.error_type == "RequestRefused"
    assert sum(kit.calls.values()) == 1
    assert strictly(kit).divergences == []


def test_an_approval_decided_before_it_was_asked_for_is_void() -> None:
    kit = Kit(pack())
    kit.decide("call-00000000000000000000")
    assert [(verdict.kind, verdict.reason) for verdict in kit.void()] == [("void", "unknown_request")]


@pytest.mark.parametrize("restarts", [0, 3])
def test_an_approval_gives_the_same_at_once_and_days_and_restarts_later(restarts: int) -> None:
    @behavior(on=ObjectCreated, where={"object_id": "item-00000001"}, emits=["Item"], repeats="only one has this id")
    async def asks(ctx: Context, event: ObjectCreated) -> None:
        decision = await ctx.approval("may I?")
        ctx.create("Item", text=f"{decision.approved} {decision.by} {decision.reason}")

    kit = Kit(pack(asks))
    item(kit, 1)
    kit.run()
    for _ in range(restarts):
        kit.position.next_offset = 0
        kit.clock.now_micros += 86_400_000_000
        kit.run()
    (call,) = kit.calls_of("approval")
    kit.decide(str(call["id"]), "deny", "not today")
    kit.decide(str(call["id"]), "approve")
    kit.run()
    assert [row["text"] for row in kit.objects("Item") if row["text"]] == ["False olga not today"]
    assert [verdict.reason for verdict in kit.void()] == ["already_decided"]
    assert strictly(kit).divergences == []


def test_a_timer_that_came_due_while_nothing_ran_fires_once_at_start() -> None:
    @behavior(on=ObjectCreated, where={"object_id": "item-00000001"}, emits=["Item"], repeats="only one has this id")
    async def waits(ctx: Context, event: ObjectCreated) -> None:
        await ctx.sleep(3_600)
        ctx.create("Item", text="awake")

    kit = Kit(pack(waits))
    item(kit, 1)
    kit.log.writes_left = 3  # the claim, the start and the timer
    with pytest.raises(Killed):
        kit.run()
    kit.log.writes_left = None
    assert kit.events(TimerFired) == []
    kit.clock.now_micros += 7_200_000_000
    kit.run()
    assert len(kit.events(TimerFired)) == 1
    assert [row["text"] for row in kit.objects("Item") if row["text"]] == ["awake"]
    kit.run()
    assert len(kit.events(TimerFired)) == 1


# Ends from outside.


def test_a_cancelled_execution_takes_no_answer_and_emits_nothing() -> None:
    @behavior(on=ObjectCreated, where={"object_id": "item-00000001"}, emits=["Item"], repeats="only one has this id")
    async def asks(ctx: Context, event: ObjectCreated) -> None:
        await ctx.approval("may I?")
        ctx.create("Item", text="went on")

    kit = Kit(pack(asks))
    item(kit, 1)
    kit.run()
    (started,) = kit.events(BehaviorStarted)
    assert started.meta.execution is not None
    kit.tell(ExecutionCancelled, "olga", "human", OPERATOR, execution_id=started.meta.execution.id, reason="enough")
    kit.decide(str(kit.calls_of("approval")[0]["id"]))
    kit.run()
    assert [verdict.reason for verdict in kit.void()] == ["execution_ended"]
    assert [row["text"] for row in kit.objects("Item") if row["text"]] == []
    assert strictly(kit).divergences == []


def test_a_write_in_flight_at_a_kill_is_not_sent_again_and_a_person_settles_it() -> None:
    sent: list[str] = []

    @tool(side_effects="write")
    def pay(to: str) -> str:
        sent.append(to)
        raise Killed

    @behavior(on=ObjectCreated, where={"object_id": "item-00000001"}, emits=["Item"], repeats="only one has this id")
    async def pays(ctx: Context, event: ObjectCreated) -> None:
        receipt = await ctx.tool("pay", to="acme")
        ctx.create("Item", text=f"paid: {receipt}")

    kit = Kit(pack(pays, tools=(pay,)))
    item(kit, 1)
    with pytest.raises(Killed):
        kit.run()
    kit.run()
    assert sent == ["acme"]
    (call,) = kit.calls_of("tool")
    assert call["status"] == "unknown"
    assert [event.outcome for event in kit.events(ToolResponded)] == ["unknown"]
    kit.tell(
        EffectResolved,
        "olga",
        "human",
        OPERATOR,
        call_id=str(call["id"]),
        outcome="ok",
        answer='"receipt 7"',
        reason="the bank says so",
    )
    kit.run()
    assert [row["text"] for row in kit.objects("Item") if row["text"]] == ["paid: receipt 7"]
    assert sent == ["acme"]
    assert strictly(kit).divergences == []


def test_a_write_with_a_key_is_sent_again_under_the_same_key() -> None:
    sent: list[str] = []

    @tool(side_effects="write")
    def pay(to: str, idempotency_key: str) -> str:
        sent.append(idempotency_key)
        if len(sent) == 1:
            raise Killed
        return "receipt"

    @behavior(on=ObjectCreated, where={"object_id": "item-00000001"})
    async def pays(ctx: Context, event: ObjectCreated) -> None:
        await ctx.tool("pay", to="acme", idempotency_key=ctx.new_id("payment"))

    kit = Kit(pack(pays, tools=(pay,)))
    item(kit, 1)
    with pytest.raises(Killed):
        kit.run()
    kit.run()
    assert len(sent) == 2
    assert sent[0] == sent[1]


# Registrations.


def test_a_pack_added_in_the_midst_of_a_run_reacts_from_there_on() -> None:
    @behavior(on=ObjectCreated, where={"object_type": "Item"})
    def see(ctx: Context, event: ObjectCreated) -> None:
        """Fires on every item."""

    kit = Kit(pack())
    for number in range(500 - kit.log.end()):
        item(kit, number)
    other = kit.under(pack(see))
    assert other.log.end() == 500
    other.register()
    later = [item(other, 1_000 + number) for number in range(3)]
    other.run()
    triggers = [event.trigger for event in other.events(BehaviorStarted)]
    assert triggers == [event.meta.event_id for event in other.events(ObjectCreated) if event.object_id in later]
    assert strictly(other).divergences == []


def test_a_behavior_whose_code_changed_is_named_and_not_taken_for_a_divergence() -> None:
    def once(text: str, version: str | None = None) -> Behavior:
        @behavior(
            on=ObjectCreated,
            where={"object_id": "item-00000001"},
            emits=["Item"],
            repeats="only one has this id",
            version=version,
        )
        def write(ctx: Context, event: ObjectCreated) -> None:
            ctx.create("Item", text=text)

        return write

    kit = Kit(pack(once("one")))
    item(kit, 1)
    kit.run()
    changed = once("two")
    object.__setattr__(changed, "code_sha256", "0" * 64)
    object.__setattr__(changed, "version", "0" * 12)
    replayed = strictly(kit, pack(changed))
    assert replayed.divergences == []
    assert [(registered.name, count) for registered, count in replayed.changed.items()] == [("write", 3)]
    assert replayed.events == 0


def test_a_worker_without_the_code_of_a_registered_behavior_does_not_start() -> None:
    kit = Kit(pack(linked))
    with pytest.raises(InvalidInput, match="linked"):
        kit.under(pack()).run()


# Two workers.


class _Shift:
    """A worker that is stepped batch by batch, beside another."""

    def __init__(self, kit: Kit, name: str) -> None:
        self.reactor = kit.reactor()
        clerk = Clerk(RUN, name, kit.blobs, kit.head)
        self.desk = InlineDesk(clerk, kit.log, kit.pack, kit.clock, kit.calls)
        self.worker = Worker(clerk, kit.log, self.reactor, self.desk, kit.position)
        self._steps = self.worker.steps(threading.Event())

    def step(self) -> None:
        next(self._steps)


def test_of_two_workers_the_older_stops_and_no_answer_counts_twice() -> None:
    @behavior(on=ObjectCreated, where={"object_id": "item-00000001"}, emits=["Item"], repeats="only one has this id")
    async def thrice(ctx: Context, event: ObjectCreated) -> None:
        said = [await ctx.model("model", messages=[]) for _ in range(3)]
        ctx.create("Item", text=str(said))

    def answer(request: Mapping[str, Any]) -> object:
        return 7

    calm = Kit(pack(thrice, model=answer))
    item(calm, 1)
    calm.run()

    kit = Kit(pack(thrice, model=answer))
    item(kit, 1)
    older, newer = _Shift(kit, "older"), _Shift(kit, "newer")
    for _ in range(4):
        older.step()
    stopped = False
    for _ in range(40):
        newer.step()
        if not stopped:
            try:
                older.step()
            except Superseded:
                stopped = True
    assert stopped
    for _ in range(20):
        newer.step()
    answered = [event.call_id for event in kit.events(ToolResponded)]
    assert len(answered) == len(set(answered))
    assert {verdict.reason for verdict in kit.void()} <= {"old_epoch", "already_answered"}
    assert kit.content_digest() == calm.content_digest()
    assert strictly(kit).divergences == []


def test_emissions_may_name_each_other() -> None:
    @behavior(on=ObjectCreated, where={"object_id": "item-00000001"}, emits=["Item", "LINKS"], repeats="one id")
    def family(ctx: Context, event: ObjectCreated) -> None:
        parent = ctx.create("Item", text="parent", parent=Object("Item", event.object_id))
        child = ctx.create("Item", text="child", parent=parent)
        ctx.relate("LINKS", parent, child)

    kit = Kit(pack(family))
    item(kit, 1)
    kit.run()
    assert kit.void() == []
    assert [row["text"] for row in kit.objects("Item") if row["text"]] == ["parent", "child"]
