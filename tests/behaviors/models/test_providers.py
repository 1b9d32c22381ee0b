"""Real providers' protocols, spoken with a stand-in: what arrives, what comes of it, and that no key is told."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, Field

from forktrail_behaviors.behavior import behavior
from forktrail_behaviors.commands import EffectFailed
from forktrail_behaviors.context import Context
from forktrail_behaviors.models.anthropic import AnthropicMessages
from forktrail_behaviors.models.anthropic_schema import supported
from forktrail_behaviors.models.config import load_models
from forktrail_behaviors.models.openai import OpenAiChat
from forktrail_behaviors.models.prices import Prices, Usage, cost_micros
from forktrail_behaviors.models.provider import HttpModel, Speaking
from forktrail_behaviors.models.secret import Secret
from forktrail_behaviors.models.sending import Clock, Limits, Sender
from forktrail_behaviors.pack import Pack
from forktrail_behaviors.testing import Kit
from forktrail_behaviors.tools import tool
from forktrail_schemas.errors import InvalidInput, NotFound
from forktrail_schemas.events import GoalSet, ModelRequested, ModelResponded, ToolRequested
from support import model_server as server
from support.model_server import KEY, Answer, StandIn, stand_in

PRICES = Prices(Decimal("0.5"), Decimal(2), Decimal("0.1"))
NOW = datetime(2026, 12, 1, tzinfo=UTC)
PROTOCOLS: dict[str, Callable[[], Speaking]] = {"openai": OpenAiChat, "anthropic": AnthropicMessages}


class Note(BaseModel):
    """What a behavior came to."""

    text: str


class Verdict(BaseModel):
    """What a model is asked for."""

    good: bool


@tool(side_effects="read")
def look_up(word: str) -> str:
    """Look up a word."""
    return f"{word}!"


@behavior(on=GoalSet, emits=["Note"])
async def judge(ctx: Context, event: GoalSet) -> None:
    told = [{"role": "system", "content": "be brief"}, {"role": "user", "content": "good?"}]
    try:
        verdict = await ctx.model("model", messages=told, schema=Verdict, tools=["look_up"], repairs=1, temperature=0)
    except EffectFailed as error:
        ctx.create("Note", text=error.message)
    else:
        ctx.create("Note", text=f"good: {verdict.good}")


@dataclass
class Waits:
    """A clock on which waiting takes no time; half of every random wait."""

    slept: list[float] = field(default_factory=list)

    def clock(self) -> Clock:
        """It as a Clock."""
        return Clock(sleep=self.slept.append, now=lambda: NOW, part=lambda: 0.5)


def model_of(protocol: str, told: StandIn, waits: Waits, **limits: Any) -> HttpModel:
    speaking = PROTOCOLS[protocol]()
    bounds = Limits(**{"timeout_seconds": 0.5, "attempts": 3, **limits})
    sender = Sender(told.address + speaking.path, speaking.headers(KEY), bounds, waits.clock())
    return HttpModel("model", "small", speaking, sender, Secret(KEY), PRICES)


def run(protocol: str, told: StandIn, waits: Waits | None = None, **limits: Any) -> Kit:
    """What a behavior makes of the stand-in's answers; no key is in anything that it leaves."""
    model = model_of(protocol, told, waits or Waits(), **limits)
    kit = Kit(Pack("test", [Note], behaviors=[judge], tools=[look_up], models=[model]))
    kit.tell(GoalSet, text="why")
    kit.run()
    for record in kit.log.records:
        assert KEY.encode() not in (record.value or b"")
        assert all(KEY.encode() not in (value or b"") for _, value in record.headers)
    assert not any(KEY.encode() in value or b"authorization" in value.lower() for value in kit.blobs.values())
    assert KEY not in repr(model)
    return kit


def notes(kit: Kit) -> list[Any]:
    return [row["text"] for row in kit.objects("Note")]


def good(protocol: str, told: str = '{"good": true}') -> dict[str, Any]:
    return server.chat(told) if protocol == "openai" else server.messages(server.text(told))


both = pytest.mark.parametrize("protocol", PROTOCOLS)


# What is sent, and what a right answer comes to.


def test_a_chat_completion_is_asked_for_as_openai_says() -> None:
    with stand_in(server.status(200, good("openai"))) as told:
        kit = run("openai", told)
        (asked,) = told.asked
    assert asked.path == "/chat/completions"
    assert asked.headers["authorization"] == f"Bearer {KEY}"
    body = asked.body
    assert body["model"] == "small"
    assert body["messages"] == [{"role": "system", "content": "be brief"}, {"role": "user", "content": "good?"}]
    assert body["temperature"] == 0
    assert body["response_format"]["type"] == "json_schema"
    assert body["response_format"]["json_schema"]["schema"]["required"] == ["good"]
    assert [one["function"]["name"] for one in body["tools"]] == ["look_up"]
    assert notes(kit) == ["good: True"]


def test_a_message_is_asked_for_as_anthropic_says() -> None:
    with stand_in(server.status(200, good("anthropic"))) as told:
        kit = run("anthropic", told)
        (asked,) = told.asked
    assert asked.path == "/v1/messages"
    assert (asked.headers["x-api-key"], asked.headers["anthropic-version"]) == (KEY, "2023-06-01")
    body = asked.body
    assert body["system"] == "be brief"
    assert body["messages"] == [{"role": "user", "content": [{"type": "text", "text": "good?"}]}]
    assert body["max_tokens"] > 0
    assert body["output_config"]["format"]["type"] == "json_schema"
    assert [(one["name"], one["input_schema"]["required"]) for one in body["tools"]] == [("look_up", ["word"])]
    assert notes(kit) == ["good: True"]


@both
def test_what_it_took_and_the_bytes_are_kept(protocol: str) -> None:
    with stand_in(server.status(200, good(protocol))) as told:
        kit = run(protocol, told)
        sent = told.asked[0].body
    (responded,) = kit.events(ModelResponded)
    # 60 at 0.5, 40 cached at 0.1, 20 at 2: 74 millionths.
    assert (responded.input_tokens, responded.output_tokens, responded.cost_micros) == (100, 20, 74)
    assert (responded.provider, responded.model, responded.attempts) == (protocol, "small-2026", 1)
    assert responded.finish_reason == ("stop" if protocol == "openai" else "end_turn")
    assert responded.sent is not None
    assert responded.received is not None
    assert json.loads(kit.blobs.get(responded.sent.sha256)) == sent
    assert json.loads(kit.blobs.get(responded.received.sha256)) == good(protocol)


@both
def test_tools_are_called_in_the_protocols_way(protocol: str) -> None:
    if protocol == "openai":
        first = server.chat(calls=[("a1", "look_up", '{"word": "sky"}')], finish="tool_calls")
    else:
        use = {"type": "tool_use", "id": "a1", "name": "look_up", "input": {"word": "sky"}}
        first = server.messages(server.text("let me see"), use, stop="tool_use")
    with stand_in(server.status(200, first), server.status(200, good(protocol))) as told:
        kit = run(protocol, told)
        second = told.asked[1].body["messages"]
    assert notes(kit) == ["good: True"]
    assert len(kit.events(ToolRequested)) == 1
    if protocol == "openai":
        assert second[-2]["tool_calls"][0]["function"] == {"name": "look_up", "arguments": '{"word": "sky"}'}
        assert second[-1] == {"role": "tool", "tool_call_id": "a1", "content": "sky!"}
    else:
        assert second[-2]["content"][1] == {"type": "tool_use", "id": "a1", "name": "look_up", "input": {"word": "sky"}}
        assert second[-1] == {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "a1", "content": "sky!"}],
        }


def test_what_anthropics_model_thought_before_a_call_is_shown_to_it_again() -> None:
    thought = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
    use = {"type": "tool_use", "id": "a1", "name": "look_up", "input": {"word": "sky"}}
    first = server.messages(thought, use, stop="tool_use")
    with stand_in(server.status(200, first), server.status(200, good("anthropic"))) as told:
        kit = run("anthropic", told)
        assert told.asked[1].body["messages"][1]["content"] == [thought, use]
    assert notes(kit) == ["good: True"]


@both
def test_usage_that_cant_be_read_is_unknown_and_the_answer_counts(protocol: str) -> None:
    with stand_in(server.status(200, {**good(protocol), "usage": [1]})) as told:
        kit = run(protocol, told)
    (responded,) = kit.events(ModelResponded)
    assert (responded.input_tokens, responded.output_tokens, responded.cost_micros) == (None, None, None)
    assert notes(kit) == ["good: True"]


@both
def test_an_answer_of_another_shape_is_asked_for_again(protocol: str) -> None:
    ways = [server.status(200, good(protocol, one)) for one in ('{"bad": 1}', '```json\n{"good": false}\n```')]
    with stand_in(*ways) as told:
        kit = run(protocol, told)
    assert notes(kit) == ["good: False"]
    assert len(kit.events(ModelRequested)) == 2


# What goes wrong: each is an event with words, and the behavior goes on.

CHAT_FAULTS: dict[str, tuple[Any, str]] = {
    "a refusal": (server.chat(refusal="not that"), "openai: the model refuses: not that"),
    "cut off": (server.chat('{"good": tr', finish="length"), "openai: the answer was cut off"),
    "odd characters": (server.chat(refusal="n\0o"), "openai: the model refuses: n\N{REPLACEMENT CHARACTER}o"),
    "half a character": (server.chat("\ud800"), "openai: its answer is no JSON"),
    "filtered": (server.chat("", finish="content_filter"), "openai: the answer was withheld"),
    "no choices": ({"choices": []}, "openai: its answer is not of the protocol (IndexError"),
    "another shape": ([1, 2], "openai: its answer is not of the protocol (TypeError"),
    "nothing said": (server.chat(None), "openai: its answer is not of the protocol (ValueError: neither"),
}
MESSAGE_FAULTS: dict[str, tuple[Any, str]] = {
    "a refusal": (server.messages(stop="refusal"), "anthropic: the model refuses"),
    "cut off": (server.messages(server.text("{"), stop="max_tokens"), "anthropic: the answer was cut off"),
    "full": (
        server.messages(server.text("{"), stop="model_context_window_exceeded"),
        "anthropic: the answer was cut off: the model's context is full",
    ),
    "another shape": ({"content": 3}, "anthropic: its answer is not of the protocol (TypeError"),
    "nothing said": (server.messages(), "anthropic: its answer is not of the protocol (ValueError: neither"),
}
FAULTS = [
    *(("openai", *fault) for fault in CHAT_FAULTS.values()),
    *(("anthropic", *fault) for fault in MESSAGE_FAULTS.values()),
]


@pytest.mark.parametrize(
    ("protocol", "answer", "message"),
    FAULTS,
    ids=[*(f"openai {n}" for n in CHAT_FAULTS), *(f"anthropic {n}" for n in MESSAGE_FAULTS)],
)
def test_an_answer_that_is_none_is_told_as_what_it_is(protocol: str, answer: Any, message: str) -> None:
    with stand_in(server.status(200, answer)) as told:
        kit = run(protocol, told)
    (responded,) = kit.events(ModelResponded)
    assert (responded.outcome, responded.error[: len(message)]) == ("error", message)
    assert notes(kit) == [responded.error]


BAD: dict[str, tuple[Answer, str, int]] = {
    "time-out": (server.silence, "no whole answer within 0.5 s (sent 3 times)", 3),
    "cut connection": (server.cut, "the connection broke off (ReadError) (sent 3 times)", 3),
    "500s": (server.status(500), "status 500: went wrong (500) (sent 3 times)", 3),
    "429s": (server.status(429, retry_after="7"), "status 429: went wrong (429) (sent 3 times)", 3),
    "400": (server.status(400), "status 400: went wrong (400)", 1),
    "redirect": (server.status(307, location="http://127.0.0.1:1/"), "status 307: went wrong (307)", 1),
    "broken JSON": (server.raw(b'{"choices": ['), "its answer is no JSON", 1),
    "bad UTF-8": (server.raw(b'"\xff"'), "its answer is no JSON", 1),
    "compressed": (server.raw(b"\x1f\x8b", content_encoding="gzip"), "the answer is compressed (gzip), unasked", 1),
    "50 MB": (server.flood(50_000_000), "the answer has more than 1,000,000 bytes", 1),
}


@both
@pytest.mark.parametrize(("way", "message", "attempts"), BAD.values(), ids=BAD)
def test_a_provider_that_fails_leaves_a_clear_event(protocol: str, way: Answer, message: str, attempts: int) -> None:
    with stand_in(way) as told:
        kit = run(protocol, told, body_bytes_max=1_000_000)
        assert len(told.asked) == attempts
    (responded,) = kit.events(ModelResponded)
    assert (responded.outcome, responded.attempts) == ("error", attempts)
    assert responded.error == f"{protocol}: {message}"
    assert responded.received is not None
    assert responded.received.size <= 1_000_000
    assert notes(kit) == [responded.error]


@both
def test_a_provider_that_isnt_there_leaves_a_clear_event(protocol: str) -> None:
    kit = run(protocol, StandIn("http://127.0.0.1:1", []), attempts=2)
    assert notes(kit) == [f"{protocol}: there is no connection (sent 2 times)"]


@both
@pytest.mark.parametrize(
    ("retry_after", "waited"),
    [
        ("7", 7.0),
        (format_datetime(NOW + timedelta(seconds=9), usegmt=True), 9.0),
        (format_datetime(NOW - timedelta(seconds=9), usegmt=True), 0.0),
        ("99999999", 60.0),
        ("soon", 0.5),
    ],
)
def test_a_provider_that_is_busy_is_asked_again_when_it_says(protocol: str, retry_after: str, waited: float) -> None:
    waits = Waits()
    with stand_in(server.status(429, retry_after=retry_after), server.status(200, good(protocol))) as told:
        kit = run(protocol, told, waits)
    assert waits.slept == [waited]
    assert notes(kit) == ["good: True"]
    (responded,) = kit.events(ModelResponded)
    assert responded.attempts == 2


def test_waits_double_and_are_drawn_by_chance() -> None:
    waits = Waits()
    with stand_in(server.status(503)) as told:
        run("openai", told, waits, attempts=4)
    assert waits.slept == [0.5, 1.0, 2.0]  # half of 1, 2 and 4


@both
def test_a_tool_that_there_isnt_is_said_to_the_model_and_one_that_wasnt_offered_is_an_error(protocol: str) -> None:
    if protocol == "openai":
        first = server.chat(calls=[("a1", "guess", "{}")], finish="tool_calls")
    else:
        first = server.messages({"type": "tool_use", "id": "a1", "name": "guess", "input": {}}, stop="tool_use")
    with stand_in(server.status(200, first), server.status(200, good(protocol))) as told:
        kit = run(protocol, told)
        assert "there is no tool 'guess'" in json.dumps(told.asked[1].body)
        assert notes(kit) == ["good: True"]
        told.answers[:] = [server.status(200, first)]
        result = model_of(protocol, told, Waits()).answer({"messages": [], "schema": None, "options": {}})
    assert (result.outcome, result.error) == ("error", f"{protocol}: it calls a tool, and none was offered")


@both
def test_a_provider_that_repeats_the_key_tells_it_nowhere(protocol: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with stand_in(server.echo_of_the_request) as told:
        model = model_of(protocol, told, Waits())
        result = model.answer({"messages": [{"role": "user", "content": KEY}], "schema": None, "options": {}})
    assert result.outcome == "error"
    assert "status 401" in result.error
    for place in (result.error, repr(result), str(result.sent), str(result.received), repr(model), caplog.text):
        assert KEY not in place
    assert b"[key removed]" in (result.received or b"")


ESCAPED = "".join(f"\\u{ord(character):04X}" for character in KEY)


@both
@pytest.mark.parametrize("status", [200, 401])
@pytest.mark.parametrize("written", [ESCAPED, ESCAPED.replace("\\", "\\\\"), KEY.replace("-", "\\u002d")])
def test_a_key_that_is_repeated_in_other_letters_is_told_nowhere(protocol: str, status: int, written: str) -> None:
    body = json.dumps(good(protocol, "SAID") if status == 200 else {"error": {"message": "SAID"}})
    told_body = body.replace("SAID", '{\\"good\\": \\"' + written + '\\"}' if status == 200 else written).encode()
    with stand_in(lambda handler, asked: handler.send(status, told_body)) as told:
        result = model_of(protocol, told, Waits()).answer({"messages": [], "schema": {}, "options": {}})
    for place in (result.error, json.dumps(result.answer), str(result.received), repr(result)):
        assert KEY not in place
    received = (result.received or b"").decode()
    assert ESCAPED not in received


def test_a_key_that_the_cap_cuts_through_is_told_nowhere() -> None:
    size = 1_000_000
    body = b" " * (size - len(KEY) + 3) + KEY.encode() + b" " * 100
    with stand_in(server.raw(body)) as told:
        kit = run("openai", told, body_bytes_max=size)
    assert not any(KEY[:8].encode() in value for value in kit.blobs.values())


def test_a_schema_is_asked_of_anthropic_as_it_takes_them() -> None:
    class Inner(BaseModel):
        score: float = Field(ge=0, le=1)

    class Outer(BaseModel):
        inner: list[Inner] = Field(max_length=3)
        note: str | None = Field(default=None, min_length=2, description="why")

    asked = supported(Outer.model_json_schema())
    inner = asked["$defs"]["Inner"]
    assert asked["additionalProperties"] is inner["additionalProperties"] is False
    assert inner["properties"]["score"]["description"] == "maximum: 1, minimum: 0"
    assert asked["properties"]["inner"]["description"] == "maxItems: 3"
    text = json.dumps(asked)
    assert not any(f'"{word}":' in text for word in ("minimum", "maximum", "maxItems", "minLength"))

    class Free(BaseModel):
        values: dict[str, int]

    with pytest.raises(InvalidInput, match="names aren't fixed"):
        supported(Free.model_json_schema())


@both
def test_options_that_the_runtime_sets_are_refused(protocol: str) -> None:
    with stand_in(server.status(200, good(protocol))) as told, pytest.raises(InvalidInput, match="'stream'"):
        model_of(protocol, told, Waits()).answer({"messages": [], "schema": None, "options": {"stream": True}})


# Prices and the file.


@pytest.mark.parametrize(
    ("usage", "prices", "cost"),
    [
        (Usage(1_000_000, 1_000_000), Prices(Decimal(3), Decimal(15)), 18_000_000),
        (Usage(1, 0), Prices(Decimal("0.1"), Decimal(0)), 1),  # rounded up
        (Usage(10, 10, 4), Prices(Decimal(1), Decimal(2), Decimal("0.5")), 28),
        (Usage(10, 10, 40), Prices(Decimal(1), Decimal(2), Decimal(0)), 20),  # never more cached than there is
        (Usage(None, 10), Prices(Decimal(1), Decimal(1)), None),
        (Usage(10, 10), None, None),
    ],
)
def test_a_calls_cost_follows_from_its_usage(usage: Usage, prices: Prices | None, cost: int | None) -> None:
    assert cost_micros(usage, prices) == cost


FILE = """
[models.analyst]
provider = "openai"
base_url = "{address}"
model = "small"
key_env = "STANDIN_KEY"
timeout_seconds = 5

[models.analyst.prices]
input = 0.5
output = 2
"""


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def test_a_file_names_models(tmp_path: Path) -> None:
    with stand_in(server.status(200, server.chat("hello"))) as told:
        path = write(tmp_path / "models.toml", FILE.format(address=told.address))
        (model,) = load_models(path, {"STANDIN_KEY": KEY})
        result = model.answer({"messages": [{"role": "user", "content": "hi"}], "schema": None, "options": {}})
        assert told.asked[0].headers["authorization"] == f"Bearer {KEY}"
    assert (model.name, result.answer, result.cost_micros) == ("analyst", "hello", 90)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("provider =", "provider"), r"no TOML: .*line 3"),
        (('"openai"', '"openal"'), r"models\.analyst\.provider: Input should be 'openai' or 'anthropic'"),
        (('model = "small"', ""), r"models\.analyst\.model: Field required"),
        (("timeout_seconds", "time_out"), r"models\.analyst\.time_out: Extra inputs"),
        (("timeout_seconds = 5", "timeout_seconds = 0"), "greater than 0"),
        (("input = 0.5", "input = -1"), r"prices\.input: Input should be greater than or equal to 0"),
        (("http://127.0.0.1:1", "http://example.com"), "the key would go over plain http"),
        (("http://127.0.0.1:1", "https://me:secret@example.com"), "holds more than an address"),
        (("http://127.0.0.1:1", "example.com"), "no http address"),
        (("STANDIN_KEY", "OTHER_KEY"), "OTHER_KEY isn't set"),
    ],
)
def test_a_file_that_is_wrong_is_refused_with_the_place(tmp_path: Path, change: tuple[str, str], message: str) -> None:
    path = write(tmp_path / "models.toml", FILE.format(address="http://127.0.0.1:1").replace(*change))
    with pytest.raises(InvalidInput, match=message) as caught:
        load_models(path, {"STANDIN_KEY": KEY})
    assert str(path) in caught.value.message
    assert "secret" not in str(caught.value)


def test_a_file_that_isnt_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match=r"models\.toml"):
        load_models(tmp_path / "models.toml", {})
