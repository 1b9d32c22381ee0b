"""Calls of tools in threads: their limits, and what becomes of one that takes too long, and of its process."""

from __future__ import annotations

import json
import queue
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, Field

from forktrail_behaviors.asked import Asked
from forktrail_behaviors.behavior import behavior
from forktrail_behaviors.context import Context
from forktrail_behaviors.daemon_pool import DaemonPool
from forktrail_behaviors.effects import EffectResult, Effects, Limits
from forktrail_behaviors.pack import Pack
from forktrail_behaviors.testing import Kit
from forktrail_behaviors.testing.kit import MemoryBlobs
from forktrail_behaviors.tools import FunctionTool, SideEffects, tool
from forktrail_schemas import events
from forktrail_schemas.errors import InvalidInput
from forktrail_schemas.json_text import Json
from support.story import Story
from support.work import of_execution, tool_request

WAIT_SECONDS = 20


class Calls:
    """Effects with one tool, and what they answer."""

    def __init__(self, called: FunctionTool, limits: Limits | None = None) -> None:
        self.answers: queue.Queue[EffectResult] = queue.Queue()
        self._story = Story()
        self._tool = called
        answered: Callable[[Asked, EffectResult], None] = lambda asked, result: self.answers.put(result)  # noqa: E731
        self.effects = Effects({}, {called.name: called}, MemoryBlobs(), answered, limits)

    def start(self, key: str | None = None, **arguments: Any) -> None:
        """Have it called."""
        request = json.dumps({"tool": self._tool.name, "arguments": arguments})
        fields = tool_request(name=self._tool.name, request=request, side_effects=self._tool.side_effects)
        event = of_execution(self._story, events.ToolRequested, **{**fields, "idempotency_key": key})
        self.effects.start(Asked("call-1", event, {}))

    def answer(self) -> EffectResult:
        """The next answer."""
        return self.answers.get(timeout=WAIT_SECONDS)


def hanging(side_effects: SideEffects) -> tuple[Calls, list[str | None], threading.Event]:
    """A tool that takes until it is told to end; the keys that it was called with."""
    end = threading.Event()
    keys: list[str | None] = []

    def hang(idempotency_key: str | None) -> Json:
        keys.append(idempotency_key)
        end.wait(WAIT_SECONDS)
        return "late"

    return Calls(FunctionTool("hang", side_effects, hang, timeout_seconds=0.05)), keys, end


def test_a_tool_that_reads_and_takes_too_long_has_failed() -> None:
    calls, keys, end = hanging("read")
    calls.start()
    result = calls.answer()
    assert (result.outcome, result.error) == ("error", "timed out after 0.05 s")
    end.set()
    calls.effects.close()
    assert keys == [None]
    assert calls.answers.empty()


@pytest.mark.parametrize(("key", "sent"), [(None, 1), ("once", 2)])
def test_what_a_late_write_did_is_unknown_and_it_is_sent_again_under_its_key_alone(key: str | None, sent: int) -> None:
    calls, keys, end = hanging("write")
    calls.start(key)
    result = calls.answer()
    assert (result.outcome, result.error) == ("unknown", "timed out after 0.05 s")
    assert keys == [key] * sent
    end.set()
    assert calls.answers.empty()


def test_a_tool_that_hangs_counts_against_the_limit_until_it_ends() -> None:
    end = threading.Event()
    called: list[int] = []

    def take(number: int) -> Json:
        called.append(number)
        if number == 0:
            end.wait(WAIT_SECONDS)
        return number

    calls = Calls(FunctionTool("take", "read", take, timeout_seconds=0.05), Limits(tools=1))
    calls.start(number=0)
    assert calls.answer().outcome == "error"
    calls.start(number=1)
    assert called == [0]
    end.set()
    # The first one's own answer comes too late; the second is called once there is room.
    assert calls.answer().answer == 1
    assert called == [0, 1]


def test_an_answer_that_is_too_large_has_failed() -> None:
    calls = Calls(FunctionTool("large", "read", lambda: "x" * 100, output_bytes_max=101))
    calls.start()
    result = calls.answer()
    assert (result.outcome, result.error) == ("error", "the answer has 102 bytes, 101 are allowed")


def test_how_long_a_call_took_is_told() -> None:
    calls = Calls(FunctionTool("quick", "read", lambda: 1))
    calls.start()
    duration = calls.answer().duration_micros
    assert duration is not None
    assert 0 <= duration < WAIT_SECONDS * 1_000_000


def test_a_hanging_tool_does_not_keep_the_process() -> None:
    code = (
        "import time\n"
        "from forktrail_behaviors.daemon_pool import DaemonPool\n"
        "pool = DaemonPool(2, 'x')\n"
        "pool.submit(lambda: time.sleep(600))\n"
        "pool.close()\n"
    )
    said = subprocess.run([sys.executable, "-c", code], timeout=WAIT_SECONDS, check=False)
    assert said.returncode == 0


def test_a_pool_does_all_it_is_given_by_at_most_so_many_at_once() -> None:
    pool, done = DaemonPool(3, "x"), queue.Queue[int]()
    now, most = 0, 0
    counting = threading.Lock()

    def work(number: int) -> None:
        nonlocal now, most
        with counting:
            now += 1
            most = max(most, now)
        done.put(number)
        with counting:
            now -= 1

    for number in range(200):
        pool.submit(lambda number=number: work(number))  # type: ignore[misc]  # mypy can't infer it
    assert sorted(done.get(timeout=WAIT_SECONDS) for _ in range(200)) == list(range(200))
    assert most <= 3
    pool.close()
    pool.submit(lambda: done.put(-1))
    assert done.empty()


@tool(side_effects="none")
def say_what_no_event_holds() -> Json:
    """Fail with words that Avro refuses."""
    raise InvalidInput("a\0b \ud800")


@behavior(on=events.GoalSet)
async def hear_it(ctx: Context, event: events.GoalSet) -> None:
    await ctx.tool("say_what_no_event_holds")


def test_words_that_no_event_holds_dont_stop_the_worker() -> None:
    kit = Kit(Pack("test", behaviors=[hear_it], tools=[say_what_no_event_holds]))
    kit.tell(events.GoalSet, text="why")
    kit.run()
    (responded,) = kit.events(events.ToolResponded)
    assert responded.error == "a\N{REPLACEMENT CHARACTER}b ?"


# Declared arguments.


class Place(BaseModel):
    """Where."""

    street: str
    number: int


@tool(side_effects="write")
def send(to: Place, copies: Annotated[int, Field(ge=1)] = 1, *, idempotency_key: str | None = None) -> Json:
    """Send it there.

    Twice if need be.
    """
    return [to.street, copies, idempotency_key]


def test_arguments_are_declared_by_annotations() -> None:
    assert send.description == "Send it there."
    schema = send.parameters
    assert isinstance(schema, dict)
    assert set(schema["properties"]) == {"to", "copies"}
    assert schema["required"] == ["to"]
    assert schema["properties"]["copies"]["minimum"] == 1
    given = {"to": {"street": "Elm", "number": 1}}
    assert send.call(given, "k") == ["Elm", 1, "k"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "send: to: Field required"),
        ({"to": {"street": "Elm"}}, r"send: to\.number: Field required"),
        ({"to": {"street": "Elm", "number": "1"}}, r"send: to\.number: Input should be a valid integer"),
        ({"to": {"street": "Elm", "number": 1}, "copies": 0}, "send: copies: .*greater than or equal to 1"),
        ({"to": {"street": "Elm", "number": 1}, "cc": 1}, "send: cc: Extra inputs"),
        ({"to": {"street": "Elm", "number": 1}, "idempotency_key": "k"}, "send: idempotency_key: Extra inputs"),
    ],
)
def test_arguments_that_aren_t_as_declared_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        send.check(arguments)


def test_arguments_may_have_any_name() -> None:
    @tool()
    def odd(schema: str, copy: int = 1, model_config: str = "", self: str = "me") -> Json:
        return [schema, copy, model_config, self]

    assert list(odd.parameters["properties"]) == ["schema", "copy", "model_config", "self"]
    assert odd.call({"schema": "a", "self": "you"}, None) == ["a", 1, "", "you"]
    with pytest.raises(InvalidInput, match=r"odd: schema: Field required .*it takes: schema, copy, model_config, self"):
        odd.check({})


def test_a_function_whose_arguments_cant_be_declared_is_refused() -> None:
    def takes_anything(*words: str) -> Json:
        return list(words)

    def takes_nobody_knows(word: Unheard) -> Json:  # type: ignore[name-defined]  # noqa: F821  # that's the point
        return word

    def takes_a_lock(lock: threading.Thread) -> Json:
        return None

    async def waits() -> Json:
        return None

    def gives() -> Json:
        yield 1

    for function, message in (
        (waits, "must be a plain function"),
        (gives, "must be a plain function"),
        (takes_anything, "takes its arguments by name"),
        (takes_nobody_knows, "can't be read"),
        (takes_a_lock, "can't be declared"),
    ):
        with pytest.raises(InvalidInput, match=message):
            tool()(function)
    with pytest.raises(InvalidInput, match="more than 0"):
        tool(timeout_seconds=0)(send.function)
