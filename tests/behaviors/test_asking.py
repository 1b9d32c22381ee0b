"""How a behavior asks a model: repairs, tools, abstaining, and what is too large for an event."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from pydantic import BaseModel

from forktrail_behaviors.behavior import Behavior, behavior
from forktrail_behaviors.commands import Abstained, EffectFailed
from forktrail_behaviors.context import Context
from forktrail_behaviors.effects import EffectResult
from forktrail_behaviors.pack import Pack
from forktrail_behaviors.replay import replay
from forktrail_behaviors.testing import FixtureModel, Kit, tool_calls
from forktrail_behaviors.testing.kit import RUN
from forktrail_behaviors.tools import tool
from forktrail_schemas.errors import InvalidInput
from forktrail_schemas.events import BehaviorFailed, GoalSet, ModelRequested, ModelResponded, ToolRequested

Answers = Callable[[Mapping[str, Any]], Any]


class Note(BaseModel):
    """What a behavior came to."""

    text: str


class Verdict(BaseModel):
    """What a model is asked for."""

    good: bool
    confidence: float = 1.0


@tool(side_effects="read")
def look_up(word: str, limit: int = 3) -> list[str]:
    """Look up a word.

    Not for the model.
    """
    if word == "broken":
        raise RuntimeError("at http://user:secret@host")
    return [f"{word} {n}" for n in range(limit)]


def kit_of(reacting: Behavior, answers: Answers) -> tuple[Kit, FixtureModel]:
    model = FixtureModel("model", answers)
    return Kit(Pack("test", [Note], behaviors=[reacting], tools=[look_up], models=[model])), model


def run(reacting: Behavior, answers: Answers) -> tuple[Kit, FixtureModel]:
    kit, model = kit_of(reacting, answers)
    kit.tell(GoalSet, text="why")
    kit.run()
    reactor = kit.reactor()
    try:
        assert replay(RUN, kit.log, reactor, kit.log.end()).divergences == []
    finally:
        reactor.close()
    return kit, model


def notes(kit: Kit) -> list[Any]:
    return [row["text"] for row in kit.objects("Note")]


@behavior(on=GoalSet, emits=["Note"])
async def judge(ctx: Context, event: GoalSet) -> None:
    try:
        verdict = await ctx.model("model", messages=[{"role": "user", "content": "good?"}], schema=Verdict)
    except EffectFailed as error:
        ctx.create("Note", text=error.message)
    else:
        ctx.create("Note", text=str(verdict.good))


def in_turn(*answers: Any) -> Answers:
    left = list(answers)
    return lambda request: left.pop(0)


def test_an_answer_of_another_shape_is_asked_for_again_with_what_is_wrong() -> None:
    kit, model = run(judge, in_turn("perhaps", {"good": "maybe"}, {"good": True}))
    assert notes(kit) == ["True"]
    assert [len(request["messages"]) for request in model.asked] == [1, 3, 5]
    said = [message["content"] for message in model.asked[2]["messages"]]
    assert said[1] == "perhaps"
    assert said[3] == '{"good":"maybe"}'
    assert "good: Input should be a valid boolean" in said[4]
    assert len(kit.events(ModelRequested)) == 3


def test_repairs_end() -> None:
    kit, model = run(judge, lambda request: {"bad": 1})
    assert notes(kit) == ["the answer is no Verdict: good: Field required"]
    assert len(model.asked) == 3


@behavior(on=GoalSet, emits=["Note"])
async def search(ctx: Context, event: GoalSet) -> None:
    messages = [{"role": "user", "content": "find"}]
    try:
        verdict = await ctx.model("model", messages=messages, schema=Verdict, tools=["look_up"], turns_max=3)
    except EffectFailed as error:
        ctx.create("Note", text=error.message)
    else:
        ctx.create("Note", text=str(verdict.good))


def test_a_model_calls_tools_until_it_answers() -> None:
    calls = tool_calls(("look_up", {"word": "sky"}), ("look_up", {"word": "sea", "limit": 1}), text="let me see")
    kit, model = run(search, in_turn(calls, {"good": True}))
    assert notes(kit) == ["True"]
    assert len(kit.events(ToolRequested)) == 2
    offered = model.asked[0]["tools"]
    assert [(one["name"], one["description"]) for one in offered] == [("look_up", "Look up a word.")]
    assert set(offered[0]["parameters"]["properties"]) == {"word", "limit"}
    assert offered[0]["parameters"]["required"] == ["word"]
    _, called, first, second = model.asked[1]["messages"]
    assert called["content"] == "let me see"
    assert (first["tool_call_id"], json.loads(first["content"])) == ("t1", ["sky 0", "sky 1", "sky 2"])
    assert (second["tool_call_id"], json.loads(second["content"])) == ("t2", ["sea 0"])


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (("guess", {}), "error: there is no tool 'guess'; there are: look_up"),
        (("look_up", {}), "error: look_up: word: Field required"),
        (("look_up", {"word": 3}), "error: look_up: word: Input should be a valid string"),
        (("look_up", {"word": "sky", "depth": 2}), "error: look_up: depth: Extra inputs are not permitted"),
        (("look_up", {"word": "broken"}), "error: RuntimeError"),
    ],
)
def test_what_is_wrong_with_a_models_call_is_said_to_the_model(call: tuple[str, dict[str, Any]], told: str) -> None:
    kit, model = run(search, in_turn(tool_calls(call), {"good": False}))
    assert model.asked[1]["messages"][-1]["content"] == told
    assert notes(kit) == ["False"]


def test_a_model_that_calls_tools_without_end_is_stopped() -> None:
    kit, model = run(search, lambda request: tool_calls(("look_up", {"word": "sky"})))
    assert notes(kit) == ["model still calls tools after 3 turns"]
    assert len(model.asked) == 3


@behavior(on=GoalSet, emits=["Note"])
async def judge_if_sure(ctx: Context, event: GoalSet) -> None:
    try:
        verdict = await ctx.model("model", messages=[], schema=Verdict, abstain_below=0.6)
    except Abstained as error:
        ctx.create("Note", text=error.message)
    else:
        ctx.create("Note", text=str(verdict.good))


@pytest.mark.parametrize(("confidence", "told"), [(0.59, "confidence 0.59 is below 0.6"), (0.6, "True"), (1, "True")])
def test_an_unsure_answer_abstains_on_the_log(confidence: float, told: str) -> None:
    kit, _ = run(judge_if_sure, lambda request: {"good": True, "confidence": confidence})
    assert notes(kit) == [told]
    (responded,) = kit.events(ModelResponded)
    assert responded.outcome == ("ok" if told == "True" else "abstained")


def test_abstaining_needs_a_field_to_go_by() -> None:
    @behavior(on=GoalSet)
    async def unsure(ctx: Context, event: GoalSet) -> None:
        await ctx.model("model", messages=[], schema=Note, abstain_below=0.5)

    kit, _ = run(unsure, lambda request: {"text": "a"})
    (failed,) = kit.events(BehaviorFailed)
    assert "needs a schema with a field 'confidence'" in failed.message


def test_a_request_that_is_too_large_for_an_event_lies_in_the_blob_store() -> None:
    @behavior(on=GoalSet, emits=["Note"])
    async def read_all(ctx: Context, event: GoalSet) -> None:
        answer = await ctx.model("model", messages=[{"role": "user", "content": "x" * 100_000}])
        ctx.create("Note", text=str(answer))

    kit, model = run(read_all, lambda request: len(request["messages"][0]["content"]))
    assert notes(kit) == ["100000"]
    (requested,) = kit.events(ModelRequested)
    assert requested.request is None
    assert requested.blob is not None
    assert requested.blob.sha256 == requested.request_sha256
    assert json.loads(kit.blobs.get(requested.request_sha256)) == model.asked[0]


def test_what_a_provider_was_asked_and_said_is_kept_beside_the_answer() -> None:
    def answered(request: Mapping[str, Any]) -> EffectResult:
        told: dict[str, Any] = {"provider": "anthropic", "model": "small-1", "finish_reason": "end_turn", "attempts": 2}
        return EffectResult("ok", {"good": True}, sent=b"asked", received=b"said", **told)

    kit, _ = run(judge, answered)
    (responded,) = kit.events(ModelResponded)
    assert (responded.provider, responded.model, responded.attempts) == ("anthropic", "small-1", 2)
    assert responded.sent is not None
    assert responded.received is not None
    assert [kit.blobs.get(one.sha256) for one in (responded.sent, responded.received)] == [b"asked", b"said"]
    (call,) = kit.calls_of("model")
    assert (call["finish_reason"], call["received"]) == ("end_turn", responded.received.sha256)


def test_arguments_are_checked_before_anything_is_written() -> None:
    @behavior(on=GoalSet, emits=["Note"])
    async def misuse(ctx: Context, event: GoalSet) -> None:
        try:
            await ctx.tool("look_up", wrod="sky")
        except InvalidInput as error:
            ctx.create("Note", text=error.message)

    kit, _ = run(misuse, in_turn())
    assert notes(kit) == ["look_up: word: Field required"]
    assert kit.events(ToolRequested) == []
