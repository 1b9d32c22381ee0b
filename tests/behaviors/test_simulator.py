"""The simulator tries a behavior hard, and tells one whose outcome depends on what it mustn't, with the seed."""

from __future__ import annotations

import pytest
from pydantic import BaseModel

from forktrail_behaviors.behavior import Behavior, behavior
from forktrail_behaviors.context import Context
from forktrail_behaviors.pack import Pack
from forktrail_behaviors.testing import Kit, Unsteady, simulate
from forktrail_behaviors.tools import tool
from forktrail_schemas.events import ObjectCreated, ToolRequested, ToolResponded
from support.worked_pack import worked_pack


class Item(BaseModel):
    """Anything."""

    text: str | None = None


@tool(side_effects="none")
def echo(word: str) -> str:
    """Say it again."""
    return word


def pack(*behaviors: Behavior) -> Pack:
    return Pack("test", [Item], behaviors=behaviors, tools=[echo])


def scenario(kit: Kit) -> None:
    kit.tell(ObjectCreated, object_type="Item", object_id="item-00000001", data="{}")
    kit.run()


ONE = {"object_id": "item-00000001"}


@behavior(on=ObjectCreated, where=ONE, emits=["Item"], repeats="one id")
async def steady(ctx: Context, event: ObjectCreated) -> None:
    """What it makes follows from the answers, whatever their order."""
    words = await ctx.gather(*(ctx.tool("echo", word=word) for word in ("one", "two", "three")))
    ctx.create("Item", text=" ".join(words))


@behavior(on=ObjectCreated, where=ONE, emits=["Item"], repeats="one id")
async def by_arrival(ctx: Context, event: ObjectCreated) -> None:
    """What it makes follows from which answer came first."""
    arrived: list[str] = []

    async def ask(word: str) -> None:
        arrived.append(await ctx.tool("echo", word=word))

    await ctx.gather(ask("one"), ask("two"), ask("three"))
    ctx.create("Item", text=" ".join(arrived))


@behavior(on=ToolResponded, emits=["Item"], repeats="what it makes asks no tool")
def on_each_answer(ctx: Context, event: ToolResponded) -> None:
    """Fires for answers: one fires it, however often it is delivered."""
    ctx.create("Item", text=event.answer)


def test_a_behavior_that_depends_on_its_answers_alone_passes_every_way() -> None:
    assert simulate(pack(steady), scenario, seeds=range(25)) == 100


def test_several_behaviors_that_react_to_each_other_pass_every_way() -> None:
    assert simulate(pack(steady, on_each_answer), scenario, seeds=range(10)) == 40


def test_one_that_depends_on_the_order_of_answers_is_told_with_its_seed() -> None:
    with pytest.raises(Unsteady, match="answers overtake each other") as told:
        simulate(pack(by_arrival), scenario, seeds=range(25))
    with pytest.raises(Unsteady, match=f"seed {told.value.seed}"):
        simulate(pack(by_arrival), scenario, seeds=[told.value.seed])


def test_the_worked_pack_passes_every_way() -> None:
    def told(kit: Kit) -> None:
        kit.tell(ObjectCreated, object_type="Company", object_id="company-00000001", data='{"name":"Acme"}')
        kit.run()
        for call in kit.calls_of("approval"):
            if call["status"] == "pending":
                kit.decide(str(call["id"]))
        kit.run()

    assert simulate(worked_pack(), told, seeds=range(3)) == 12


def test_a_call_in_flight_at_a_kill_is_made_at_most_once_more() -> None:
    kit = Kit(pack(steady))
    scenario(kit)
    assert len(kit.events(ToolRequested)) == 3
    assert list(kit.calls.values()) == [1, 1, 1]
