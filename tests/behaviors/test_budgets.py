"""What budgets promise: counts hold exactly, whatever is killed; what calls use passes by those under way at most."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import pytest
from pydantic import BaseModel

from forktrail_behaviors.behavior import Behavior, behavior
from forktrail_behaviors.commands import RequestRefused
from forktrail_behaviors.context import Context
from forktrail_behaviors.effects import EffectResult
from forktrail_behaviors.pack import Pack
from forktrail_behaviors.replay import replay
from forktrail_behaviors.testing import FixtureModel, Kit
from forktrail_behaviors.testing.kit import ADMIN, RUN
from forktrail_behaviors.testing.memory_log import Killed
from forktrail_behaviors.tools import tool
from forktrail_schemas.errors import InvalidInput
from forktrail_schemas.events import (
    BudgetExhausted,
    BudgetSet,
    GoalSet,
    ModelRequested,
    ModelResponded,
    ObjectCreated,
    ToolRequested,
)


class Item(BaseModel):
    """Anything."""

    n: int = 0


def costly(request: Mapping[str, Any]) -> EffectResult:
    return EffectResult("ok", 1, input_tokens=30, output_tokens=10, cost_micros=7)


@tool(side_effects="read")
def look() -> int:
    return 1


def pack(*behaviors: Behavior) -> Pack:
    return Pack("test", [Item], behaviors=behaviors, tools=[look], models=[FixtureModel("model", costly)])


def limited(name: str, limit: int, *behaviors: Behavior) -> Kit:
    """A run of these behaviors with a budget."""
    kit = Kit(pack(*behaviors))
    kit.tell(BudgetSet, "ada", "human", ADMIN, name=name, limit=limit)
    return kit


def refused(kit: Kit) -> list[str]:
    return [verdict.detail for verdict in kit.void() if verdict.reason == "budget_exhausted"]


def replayed_clean(kit: Kit) -> bool:
    reactor = kit.reactor()
    try:
        return replay(RUN, kit.log, reactor, kit.log.end()).divergences == []
    finally:
        reactor.close()


@behavior(on=GoalSet)
async def ask_a_hundred_times(ctx: Context, event: GoalSet) -> None:
    for _ in range(100):
        try:
            await ctx.model("model", messages=[])
        except RequestRefused:
            return


@behavior(on=GoalSet)
async def look_a_hundred_times(ctx: Context, event: GoalSet) -> None:
    for _ in range(100):
        try:
            await ctx.tool("look")
        except RequestRefused:
            return


@behavior(on=GoalSet)
async def ask_eight_at_once(ctx: Context, event: GoalSet) -> None:
    while True:
        try:
            await ctx.gather(*(ctx.model("model", messages=[{"n": n}]) for n in range(8)))
        except RequestRefused:
            return


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("reacting", [ask_a_hundred_times, look_a_hundred_times])
def test_the_81st_call_is_void_also_across_kills(reacting: Behavior, seed: int) -> None:
    asks = reacting is ask_a_hundred_times
    name, requested = ("model-calls", ModelRequested) if asks else ("tool-calls", ToolRequested)
    kit = limited(name, 80, reacting)
    kit.tell(GoalSet, text="why")
    dice = random.Random(seed)
    for _ in range(5):
        kit.log.writes_left = dice.randrange(1, 60)
        try:
            kit.run()
        except Killed:
            continue
    kit.log.writes_left = None
    kit.run()
    assert len(kit.events(requested)) == 80
    assert refused(kit) == [f"{name}: 81 of 80"]
    assert [(event.name, event.limit, event.used) for event in kit.events(BudgetExhausted)] == [(name, 80, 80)]
    assert replayed_clean(kit)


@pytest.mark.parametrize(("name", "each", "limit"), [("tokens", 40, 100), ("cost-micros", 7, 100)])
def test_what_calls_use_passes_its_budget_by_the_calls_under_way_at_most(name: str, each: int, limit: int) -> None:
    kit = limited(name, limit, ask_eight_at_once)
    kit.tell(GoalSet, text="why")
    kit.run()
    calls = len(kit.events(ModelResponded))
    rounds = -(-limit // (8 * each))  # of eight at once, begun while something was left
    assert calls == 8 * rounds
    row = kit.folded()[0].node("Budget", name)
    assert row is not None
    assert row["used"] == calls * each
    assert limit <= calls * each < limit + 8 * each
    assert [(event.name, event.used) for event in kit.events(BudgetExhausted)] == [(name, calls * each)]
    assert replayed_clean(kit)


def test_a_raised_budget_lets_the_next_calls_through_and_is_said_to_be_used_up_again() -> None:
    kit = limited("model-calls", 2, ask_a_hundred_times)
    for limit in (2, 3, None):
        kit.tell(BudgetSet, "ada", "human", ADMIN, name="model-calls", limit=limit)
        kit.tell(GoalSet, text="why")
        kit.run()
    assert [event.limit for event in kit.events(BudgetExhausted)] == [2, 3]
    assert len(kit.events(ModelRequested)) == 3 + 100


@behavior(on=ObjectCreated, emits=["Item"], repeats="its budget ends it")
async def make_another(ctx: Context, event: ObjectCreated) -> None:
    ctx.create("Item")


def chain(name: str, limit: int) -> Kit:
    """A chain of objects that make objects, until a budget ends it."""
    kit = limited(name, limit, make_another)
    kit.tell(ObjectCreated, object_type="Item", object_id="item-00000001", data="{}")
    kit.run()
    return kit


def test_a_chain_of_causes_ends_at_its_budget() -> None:
    kit = chain("cause-depth", 9)
    before = len(kit.events(ObjectCreated))
    kit.run()
    assert len(kit.events(ObjectCreated)) == before
    row = kit.folded()[0].node("Budget", "cause-depth")
    assert row is not None
    assert row["used"] == 9
    assert {detail.split(":")[0] for detail in refused(kit)} == {"cause-depth"}
    assert replayed_clean(kit)


def test_a_log_ends_at_its_budget_and_a_worker_says_why_it_cannot_claim_it() -> None:
    kit = chain("events", 40)
    assert refused(kit)[0] == "events: 41 of 40"
    assert {verdict.kind for verdict in kit.folded()[1][40:]} == {"void"}
    assert replayed_clean(kit)
    with pytest.raises(InvalidInput, match=r"void: it would pass a budget: events: \d+ of 40 .*forktrail budget"):
        kit.run()
    kit.tell(BudgetSet, "ada", "human", ADMIN, name="events", limit=60)
    kit.run()
    assert len(kit.events(ObjectCreated)) > 10
