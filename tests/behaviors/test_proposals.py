"""Proposals and frames as behaviors make them, on the testing kit."""

from __future__ import annotations

from typing import Annotated, Any

import pytest
from pydantic import BaseModel

from forktrail_behaviors.behavior import Behavior, behavior
from forktrail_behaviors.commands import RequestRefused
from forktrail_behaviors.context import Context
from forktrail_behaviors.given import Node, Object
from forktrail_behaviors.pack import Pack
from forktrail_behaviors.replay import replay
from forktrail_behaviors.testing import Kit, simulate
from forktrail_behaviors.testing.kit import ADMIN, RUN
from forktrail_behaviors.types import Merged, Ref, object_type_of, relation_type_of
from forktrail_schemas.events import BehaviorStarted, FrameClosed, GoalSet, ObjectCreated, PatchProposed, PolicySet


class Memo(BaseModel):
    """What is to be decided on."""

    text: str
    about: Ref[Memo] | None = None


class Tally(BaseModel):
    """What frames change side by side."""

    most: Annotated[int, Merged("max")] = 0
    total: Annotated[int, Merged("sum")] = 0


class Done(BaseModel):
    """What a behavior has come to."""

    text: str


@behavior(on=GoalSet, emits=["Memo", "Done"])
async def write_memo(ctx: Context, event: GoalSet) -> None:
    outcome = await ctx.propose.create("Memo", text=event.text, reason="it was asked for")
    if outcome.approved:
        assert outcome.object is not None
        ctx.create("Done", text=f"{outcome.object.id} by {outcome.by}: {outcome.reason}")
    else:
        ctx.create("Done", text=f"no: {outcome.reason}")


def pack(*behaviors: Behavior) -> Pack:
    return Pack("test", [Memo, Tally, Done], [relation_type_of("CITES", [Memo], [Memo])], behaviors=behaviors)


def policy(kit: Kit, type_name: str, *changes: str) -> None:
    kit.tell(PolicySet, "ada", "human", ADMIN, type_name=type_name, changes=list(changes), reason="")


def replayed_clean(kit: Kit) -> bool:
    reactor = kit.reactor()
    try:
        return replay(RUN, kit.log, reactor, kit.log.end()).divergences == []
    finally:
        reactor.close()


def done(kit: Kit) -> list[Any]:
    return [row["text"] for row in kit.objects("Done")]


def test_what_no_policy_holds_is_made_at_once() -> None:
    kit = Kit(pack(write_memo))
    kit.tell(GoalSet, text="buy")
    kit.run()
    (memo,) = kit.objects("Memo")
    assert done(kit) == [f"{memo['id']} by : "]
    assert replayed_clean(kit)


@pytest.mark.parametrize("restarts", [0, 2])
@pytest.mark.parametrize("decision", ["accept", "reject"])
def test_a_behavior_waits_for_a_reviewer_across_restarts(decision: str, restarts: int) -> None:
    kit = Kit(pack(write_memo))
    policy(kit, "Memo", "create")
    kit.tell(GoalSet, text="buy")
    for _ in range(1 + restarts):
        kit.run()
        assert kit.objects("Memo") == []
    (waiting,) = kit.patches("proposed")
    kit.decide_patch(str(waiting["id"]), decision, "seen")
    assert len(kit.objects("Memo")) == (decision == "accept")
    kit.run()
    (told,) = done(kit)
    assert told.endswith("by rosa: seen") if decision == "accept" else told == "no: seen"
    assert replayed_clean(kit)


def test_a_decision_before_the_worker_ever_ran_is_read_from_the_log() -> None:
    kit = Kit(pack(write_memo))
    policy(kit, "Memo", "create")
    kit.tell(GoalSet, text="buy")
    kit.run()
    (waiting,) = kit.patches("proposed")
    kit.decide_patch(str(waiting["id"]), "accept", "seen")
    kit.position.next_offset = 0
    kit.run()
    assert len(done(kit)) == 1
    assert replayed_clean(kit)


def test_a_proposal_that_cannot_be_made_is_refused_to_its_behavior() -> None:
    @behavior(on=GoalSet, emits=["Memo", "Done"])
    async def patch_nothing(ctx: Context, event: GoalSet) -> None:
        try:
            await ctx.propose.patch(Object("Memo", "memo-00000000"), text="b")
        except RequestRefused as refused:
            ctx.create("Done", text=refused.code)

    kit = Kit(pack(patch_nothing))
    kit.tell(GoalSet, text="buy")
    kit.run()
    assert done(kit) == ["unknown_object"]
    assert replayed_clean(kit)


@behavior(on=GoalSet, emits=["Memo", "CITES", PatchProposed, ObjectCreated])
async def go_round(ctx: Context, event: GoalSet) -> None:
    """Tries every way to make, or to touch, what a policy holds."""
    free = ctx.create("Memo", text="a plain creation")
    ctx.patch(Object("Memo", "memo-00000001"), text="a plain patch")
    ctx.retire(Object("Memo", "memo-00000001"))
    ctx.relate("CITES", Object("Memo", "memo-00000001"), Object("Memo", "memo-00000002"))
    ctx.emit(ObjectCreated, object_type="Memo", object_id="memo-00000009", data='{"text":"emitted"}')
    frame = ctx.frame("round the back")
    frame.create("Memo", text="in a frame")
    frame.patch(Object("Memo", "memo-00000001"), text="patched in a frame")
    frame.merge()
    ctx.create("Memo", text="about another", about=free)


def test_no_call_of_a_behavior_goes_round_a_policy() -> None:
    kit = Kit(pack(go_round))
    for number in (1, 2):
        kit.tell(ObjectCreated, object_type="Memo", object_id=f"memo-{number:08}", data='{"text":"there"}')
    policy(kit, "Memo", "create", "patch", "retire", "relate", "unrelate")
    kit.tell(GoalSet, text="buy")
    kit.tell(ObjectCreated, object_type="Memo", object_id="memo-00000003", data='{"text":"a raw producer"}')
    kit.run()
    assert [(row["id"], row["text"], row["version"]) for row in kit.objects("Memo")] == [
        ("memo-00000001", "there", 1),
        ("memo-00000002", "there", 1),
    ]
    reasons = [verdict.reason for verdict in kit.void()]
    # Creation, patch, retirement, relation, emission, merge and the producer; the last refers to what isn't there.
    assert sorted(reasons) == [*["approval_required"] * 7, "unknown_object"]
    assert not [key for key, _ in kit.folded()[0].rows() if key.table == "CITES"]
    assert replayed_clean(kit)


# Frames.


@behavior(on=GoalSet, emits=["Tally"])
async def tally(ctx: Context, event: GoalSet) -> None:
    one, other = ctx.frame("one"), ctx.frame("other")
    made = Object("Tally", "tally-00000001")
    one.patch(made, most=3, total=5)
    await ctx.sleep(1)
    other.patch(made, most=2, total=7)
    for frame in (one, other) if event.text == "forth" else (other, one):
        frame.merge()


def test_two_frames_of_a_behavior_come_together_in_either_order() -> None:
    for text in ("forth", "backs"):
        kit = Kit(pack(tally))
        kit.tell(ObjectCreated, object_type="Tally", object_id="tally-00000001", data='{"most":1,"total":1}')
        kit.tell(GoalSet, text=text)
        kit.run()
        (row,) = kit.objects("Tally")
        assert (row["most"], row["total"]) == (3, 11)
        assert len(kit.events(FrameClosed)) == 2
        assert replayed_clean(kit)


def test_a_change_in_a_frame_fires_nothing_and_its_merge_fires_patterns() -> None:
    @behavior(on=GoalSet, emits=["Memo"])
    async def frame_it(ctx: Context, event: GoalSet) -> None:
        frame = ctx.frame("later")
        frame.create("Memo", text="a")
        await ctx.sleep(1)
        frame.merge()

    @behavior(on=ObjectCreated)
    async def on_creation(ctx: Context, event: ObjectCreated) -> None:
        """Never fires here."""

    @behavior(when="MATCH (m:Memo)")
    async def on_memo(ctx: Context, m: Node) -> None:
        """Fires once the memo is there."""

    kit = Kit(pack(frame_it, on_creation, on_memo))
    kit.tell(GoalSet, text="buy")
    kit.run()
    started = kit.events(BehaviorStarted)
    (closed,) = kit.events(FrameClosed)
    fired = [(event.meta.execution.behavior, event.trigger) for event in started if event.meta.execution]
    assert ("on_memo", closed.meta.event_id) in fired
    assert not [name for name, _ in fired if name == "on_creation"]
    assert replayed_clean(kit)


def test_merge_rules_are_declared_from_the_model() -> None:
    assert object_type_of(Tally)["merge"] == [{"property": "most", "by": "max"}, {"property": "total", "by": "sum"}]


def test_neither_proposals_nor_frames_depend_on_kills_copies_or_order() -> None:
    def told(kit: Kit) -> None:
        policy(kit, "Memo", "create")
        kit.tell(ObjectCreated, object_type="Tally", object_id="tally-00000001", data="{}")
        for text in ("forth", "backs"):
            kit.tell(GoalSet, text=text)
        kit.run()
        for waiting in kit.patches("proposed"):
            kit.decide_patch(str(waiting["id"]), "accept", "seen")
        kit.run()

    assert simulate(pack(write_memo, tally), told, seeds=range(10)) == 40
