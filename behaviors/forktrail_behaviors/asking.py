"""Asks a model on a behavior's behalf: until its answer is of the shape asked for, and through the tools that it calls.

Each turn is a request of its own on the log, and so is each call of a tool. What goes wrong in the model's hands (an
answer of another shape, a tool that there isn't) is told to it, so often and no more.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from pydantic import BaseModel, ValidationError

from forktrail_behaviors.commands import Answer, EffectFailed, settled
from forktrail_behaviors.drafting import plain
from forktrail_behaviors.given import frozen
from forktrail_behaviors.model_schema import json_schema_of
from forktrail_behaviors.reads import canonical
from forktrail_behaviors.types import Types
from forktrail_schemas.errors import InvalidInput
from forktrail_schemas.json_text import Json

REPAIRS, TURNS_MAX = 2, 6
CONFIDENCE = "confidence"
_AGAIN = "That is no valid answer: {fault}. Answer again, with JSON of the schema and nothing else."

Message = dict[str, Json]


class Caller(Protocol):
    """What a behavior's execution can ask for."""

    async def ask_model(self, name: str, request: Mapping[str, Json]) -> Answer:
        """One turn of a model."""
        ...

    async def tool(self, name: str, /, **arguments: Any) -> Json:
        """One call of a tool."""
        ...


@dataclass(frozen=True)
class Question:
    """What a model is asked.

    Attributes:
        schema: of the answer; None for any JSON.
        tools: that it may call.
        turns_max: so often it is asked in all, while it calls tools.
        repairs: so often it is asked again, after an answer of another shape.
        abstain_below: an answer less confident than this counts as none.
    """

    model: str
    messages: tuple[Message, ...]
    schema: type[BaseModel] | None
    tools: tuple[str, ...]
    turns_max: int
    repairs: int
    abstain_below: float | None
    options: Mapping[str, Json]

    def request(self, types: Types, messages: Iterable[Message]) -> dict[str, Json]:
        """The request of one turn; it holds no event id, so that a fork finds its parent's answer."""
        request: dict[str, Json] = {
            "model": self.model,
            "messages": list(messages),
            "schema": json_schema_of(self.schema) if self.schema is not None else None,
            "options": dict(self.options),
        }
        if self.tools:
            request["tools"] = [_declared(types, name) for name in self.tools]
        if self.abstain_below is not None:
            request["abstain_below"] = self.abstain_below
        return request


def question(
    model: str,
    messages: Iterable[Mapping[str, Any]],
    schema: type[BaseModel] | None,
    *,
    tools: Iterable[str],
    turns_max: int,
    repairs: int,
    abstain_below: float | None,
    options: Mapping[str, Any],
) -> Question:
    """A question, checked.

    Raises:
        InvalidInput: something in it is no JSON, or it can't be answered so.
    """
    if abstain_below is not None and (schema is None or CONFIDENCE not in schema.model_fields):
        raise InvalidInput(f"abstain_below needs a schema with a field {CONFIDENCE!r}")
    if turns_max < 1 or repairs < 0:
        raise InvalidInput("a model is asked at least once, and repairs aren't fewer than none")
    told = tuple(plain(message) for message in messages)
    return Question(model, told, schema, tuple(tools), turns_max, repairs, abstain_below, plain(options))


async def ask(asked: Question, types: Types, caller: Caller, transcript: list[Message] | None = None) -> object:
    """Ask a model; returns its answer, an instance of the schema where there is one.

    Args:
        transcript: takes every message that led to the answer, the given ones first.

    Raises:
        RequestRefused: the rules refused a turn, or a tool's call.
        Abstained: it can't tell.
        EffectFailed: it failed, calls tools without end, or its answer isn't of the schema.
    """
    messages: list[Message] = [] if transcript is None else transcript
    messages += asked.messages
    turns = repairs = 0
    while True:
        turns += 1
        answer = settled(await caller.ask_model(asked.model, asked.request(types, messages)))
        value = json.loads(answer.value)
        calls = _tool_calls(value) if asked.tools else []
        if calls:
            if turns == asked.turns_max:
                raise EffectFailed(f"{asked.model} still calls tools after {turns} turns")
            turn: Message = {"role": "assistant", "content": value.get("text") or "", "tool_calls": calls}
            messages.append(turn | ({"kept": value["kept"]} if value.get("kept") else {}))
            for call in calls:
                content = await _called(call, asked, caller)
                messages.append({"role": "tool", "tool_call_id": call["id"], "content": content})
            continue
        if asked.schema is None:
            return frozen(value)
        try:
            return asked.schema.model_validate_json(answer.value)
        except ValidationError as error:
            fault = _fault(error)
        if repairs == asked.repairs:
            raise EffectFailed(f"the answer is no {asked.schema.__name__}: {fault}")
        repairs += 1
        turns -= 1  # a repair is no turn
        said = value if isinstance(value, str) else canonical(value).decode()
        messages.append({"role": "assistant", "content": said})
        messages.append({"role": "user", "content": _AGAIN.format(fault=fault)})


async def _called(call: Mapping[str, Any], asked: Question, caller: Caller) -> str:
    """What a tool that the model calls has to say; what is wrong with the call is said to the model."""
    name = str(call.get("name"))
    if name not in asked.tools:
        return f"error: there is no tool {name!r}; there are: {', '.join(asked.tools)}"
    arguments = call.get("arguments")
    if not isinstance(arguments, dict):
        return "error: the arguments are no JSON object"
    try:
        answer = await caller.tool(name, **arguments)
    except (EffectFailed, InvalidInput) as error:
        return f"error: {error.message}"
    return answer if isinstance(answer, str) else canonical(plain(answer)).decode()


def _tool_calls(value: Json) -> list[dict[str, Json]]:
    """The calls that an answer makes; [] where it is a plain one."""
    calls = (
        value.get("tool_calls") if isinstance(value, dict) and value.keys() <= {"tool_calls", "text", "kept"} else None
    )
    if not isinstance(calls, list):
        return []
    told = [call if isinstance(call, dict) else {"name": None} for call in calls]
    # Providers tell calls apart by their ids; one without gets its place.
    return [{**call, "id": call.get("id") or f"t{place}"} for place, call in enumerate(told, 1)]


def _declared(types: Types, name: str) -> Json:
    tool = types.tool(name)
    return {"name": name, "description": tool.description, "parameters": tool.parameters}


def _fault(error: ValidationError) -> str:
    fault = error.errors(include_url=False, include_input=False)[0]
    where = ".".join(map(str, fault["loc"]))
    return f"{where}: {fault['msg']}" if where else fault["msg"]
