"""A model behind HTTP: what the two protocols share."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from forktrail_behaviors.effects import ERROR_LENGTH_MAX, EffectResult
from forktrail_behaviors.models.prices import Prices, Usage, cost_micros
from forktrail_behaviors.models.secret import Secret
from forktrail_behaviors.models.sending import Sender
from forktrail_schemas.errors import InvalidInput
from forktrail_schemas.json_text import Json, read_json

SAID_LENGTH_MAX = 300
_OK = 200


@dataclass(frozen=True)
class Reply:
    """What a provider's answer says, whatever its protocol.

    Attributes:
        answer: the JSON value that the model gave; None where there is none.
        fault: why there is none, in words; "" where there is one.
    """

    answer: Json = None
    fault: str = ""
    finish_reason: str = ""
    model: str = ""
    usage: Usage = field(default_factory=Usage)


class Speaking(Protocol):
    """How a provider is spoken to."""

    name: str
    path: str

    def headers(self, key: str) -> Mapping[str, str]:
        """The headers that carry the key; "" is none."""
        ...

    def body(self, model: str, request: Mapping[str, Any]) -> dict[str, Json]:
        """The request's body.

        Raises:
            InvalidInput: an option that the runtime sets itself.
        """
        ...

    def reply(self, answer: Json, request: Mapping[str, Any]) -> Reply:
        """What an answer of status 200 says.

        Raises:
            KeyError, TypeError, ValueError, IndexError: it isn't of the protocol.
        """
        ...


@dataclass(frozen=True)
class HttpModel:
    """Implements `Model` by a provider behind HTTP.

    Attributes:
        name: that behaviors ask it under.
        model: what its provider calls it.
    """

    name: str
    model: str
    protocol: Speaking = field(repr=False)
    sender: Sender = field(repr=False)
    secret: Secret = field(repr=False)
    prices: Prices | None = None

    def answer(self, request: Mapping[str, Any]) -> EffectResult:
        """Ask the provider."""
        began = time.monotonic_ns()
        # Two prompts that are the same give the same bytes.
        body = json.dumps(self.protocol.body(self.model, request), sort_keys=True, ensure_ascii=False).encode()
        sent = self.sender.send(body)
        received = self.secret.removed_from(sent.body, cut=bool(sent.fault))
        reply = self._without_key(self._read(sent.status, received, sent.fault, request))
        told = f"{self.protocol.name}: {reply.fault}"
        if sent.attempts > 1:
            told += f" (sent {sent.attempts} times)"
        return EffectResult(
            "error" if reply.fault else "ok",
            None if reply.fault else reply.answer,
            error=told[:ERROR_LENGTH_MAX] if reply.fault else "",
            input_tokens=reply.usage.input,
            output_tokens=reply.usage.output,
            cost_micros=cost_micros(reply.usage, self.prices),
            duration_micros=(time.monotonic_ns() - began) // 1_000,
            provider=self.protocol.name,
            model=line(reply.model or self.model),
            finish_reason=line(reply.finish_reason),
            attempts=sent.attempts,
            sent=self.secret.removed_from(body),
            received=received,
        )

    def _without_key(self, reply: Reply) -> Reply:
        """The reply; what it repeats of the key may have been escaped twice."""
        return replace(
            reply,
            answer=self.secret.removed_from_value(reply.answer),
            fault=self.secret.removed_from_text(reply.fault),
            finish_reason=self.secret.removed_from_text(reply.finish_reason),
            model=self.secret.removed_from_text(reply.model),
        )

    def _read(self, status: int | None, received: bytes, fault: str, request: Mapping[str, Any]) -> Reply:
        if fault:
            return Reply(fault=fault)
        if status != _OK:
            return Reply(fault=f"status {status}{said(received)}")
        try:
            answer = read_json(received.decode())
        except (UnicodeDecodeError, InvalidInput):
            return Reply(fault="its answer is no JSON")
        try:
            return self.protocol.reply(answer, request)
        except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
            return Reply(fault=f"its answer is not of the protocol ({type(error).__name__}: {line(str(error))[:80]})")


def content_of(text: str, request: Mapping[str, Any]) -> Json:
    """The JSON value that a model's text is: what it says, where a schema was asked for and it keeps to JSON."""
    if request.get("schema") is None:
        return text
    try:
        return read_json(_without_fence(text))
    except InvalidInput:
        return text  # which no schema takes; the behavior asks again


def answered(
    text: str, calls: list[Json], request: Mapping[str, Any], reply: Reply, kept: list[Json] | None = None
) -> Reply:
    """The reply that a model's text and its calls of tools make.

    Args:
        kept: what the provider wants to see again, as it is, in the turn after a call.
    """
    if calls and not request.get("tools"):
        return Reply(None, "it calls a tool, and none was offered", reply.finish_reason, reply.model, reply.usage)
    answer: Json = {"tool_calls": calls, "text": text} if calls else content_of(text, request)
    if calls and kept:
        answer["kept"] = kept
    return Reply(answer, "", reply.finish_reason, reply.model, reply.usage)


def usage_in(answer: Mapping[str, Any], name: str = "usage") -> Mapping[str, Any]:
    """What an answer says of its usage; {} where that is nothing that could be read."""
    usage = answer.get(name)
    return usage if isinstance(usage, dict) else {}


def count(usage: Mapping[str, Any], name: str) -> int | None:
    """A count that a provider tells, where it is one."""
    value = usage.get(name)
    return value if type(value) is int and value >= 0 else None


def said(body: bytes) -> str:
    """What an error's body says, in one short line; "" where that is nothing."""
    text = body[:20_000].decode(errors="replace")
    try:
        told: Any = read_json(text)
    except InvalidInput:
        told = None
    if isinstance(told, list) and told:
        told = told[0]
    if isinstance(told, dict):
        error = told.get("error", told)
        found = error.get("message", error) if isinstance(error, dict) else error
        text = found if isinstance(found, str) else json.dumps(found)
    text = line(" ".join(text.split()))
    return f": {text[:SAID_LENGTH_MAX]}" if text else ""


def line(text: str) -> str:
    """A text as one line of at most 256 characters, without control characters."""
    return "".join(character if character.isprintable() else " " for character in text)[:256]


def _without_fence(text: str) -> str:
    """The text within a Markdown fence, where the whole is one."""
    stripped = text.strip()
    if stripped.startswith("```") and stripped.endswith("```") and "\n" in stripped:
        return stripped.split("\n", 1)[1].rsplit("```", 1)[0]
    return stripped
