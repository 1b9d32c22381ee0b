"""Anthropic's Messages.

https://platform.claude.com/docs/en/api/messages
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from forktrail_behaviors.models.anthropic_schema import supported
from forktrail_behaviors.models.openai import check_options
from forktrail_behaviors.models.prices import Usage
from forktrail_behaviors.models.provider import Reply, answered, count, usage_in
from forktrail_schemas.json_text import Json

VERSION = "2023-06-01"
MAX_TOKENS = 4_096
_OURS = frozenset({"model", "messages", "system", "tools", "output_config", "stream"})


class AnthropicMessages:
    """How Anthropic is spoken to."""

    name = "anthropic"
    path = "/v1/messages"

    def headers(self, key: str) -> Mapping[str, str]:
        """The headers that carry the key."""
        return {"anthropic-version": VERSION} | ({"x-api-key": key} if key else {})

    def body(self, model: str, request: Mapping[str, Any]) -> dict[str, Json]:
        """The request's body; options are passed on as they are."""
        options = request.get("options") or {}
        check_options(options, _OURS)
        messages = request["messages"]
        system = "\n\n".join(str(one["content"]) for one in messages if one["role"] == "system")
        body: dict[str, Json] = {"max_tokens": MAX_TOKENS, **options, "model": model, "messages": _turns(messages)}
        if system:
            body["system"] = system
        if request.get("schema") is not None:
            body["output_config"] = {"format": {"type": "json_schema", "schema": supported(request["schema"])}}
        if request.get("tools"):
            body["tools"] = [
                {"name": tool["name"], "description": tool["description"], "input_schema": tool["parameters"]}
                for tool in request["tools"]
            ]
        return body

    def reply(self, answer: Json, request: Mapping[str, Any]) -> Reply:
        """What an answer says."""
        content, finish = answer["content"], str(answer.get("stop_reason") or "")
        seen = Reply(None, "", finish, str(answer.get("model") or ""), _usage(usage_in(answer)))
        fault = _FAULTS.get(finish, "")
        if fault:
            return Reply(None, fault, finish, seen.model, seen.usage)
        text = "".join(str(part["text"]) for part in content if part["type"] == "text")
        calls: list[Json] = [
            {"id": str(part["id"]), "name": str(part["name"]), "arguments": part["input"]}
            for part in content
            if part["type"] == "tool_use"
        ]
        if not text and not calls:
            raise ValueError("neither text nor tool use")
        # A model that thinks must be shown its thoughts again, signature and all, or the next turn is refused.
        thoughts = [part for part in content if part["type"] in ("thinking", "redacted_thinking")]
        return answered(text, calls, request, seen, thoughts)


_FAULTS = {
    "refusal": "the model refuses",
    "pause_turn": "the model paused in the midst of its turn, which isn't gone on with",
    "max_tokens": "the answer was cut off: the model reached its limit of tokens",
    "model_context_window_exceeded": "the answer was cut off: the model's context is full",
}


def _usage(usage: Mapping[str, Any]) -> Usage:
    """Anthropic counts what it wrote to and read from its cache beside the rest of the input."""
    plain = count(usage, "input_tokens")
    written = count(usage, "cache_creation_input_tokens") or 0
    read = count(usage, "cache_read_input_tokens") or 0
    return Usage(None if plain is None else plain + written + read, count(usage, "output_tokens"), read)


def _turns(messages: list[Mapping[str, Any]]) -> list[Json]:
    """The messages but for the system's, each side's that follow one another as one turn."""
    turns: list[dict[str, Json]] = []
    for message in messages:
        if message["role"] == "system":
            continue
        role = "assistant" if message["role"] == "assistant" else "user"
        parts = _parts(message)
        if turns and turns[-1]["role"] == role:
            turns[-1]["content"] += parts
        else:
            turns.append({"role": role, "content": parts})
    return list(turns)


def _parts(message: Mapping[str, Any]) -> list[Json]:
    if message["role"] == "tool":
        return [{"type": "tool_result", "tool_use_id": message["tool_call_id"], "content": message["content"]}]
    parts: list[Json] = [*(message.get("kept") or ())]
    if message.get("content"):
        parts.append({"type": "text", "text": message["content"]})
    for call in message.get("tool_calls") or ():
        arguments = call["arguments"] if isinstance(call["arguments"], dict) else {}
        parts.append({"type": "tool_use", "id": call["id"], "name": call["name"], "input": arguments})
    # An empty turn is refused.
    return parts or [{"type": "text", "text": "(nothing)"}]
