"""OpenAI's chat completions, which Ollama, vLLM, Gemini, Cloudflare and others speak too.

https://platform.openai.com/docs/api-reference/chat
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from forktrail_behaviors.models.prices import Usage
from forktrail_behaviors.models.provider import Reply, answered, count, usage_in
from forktrail_schemas.errors import InvalidInput
from forktrail_schemas.json_text import Json, read_json

# What the runtime says itself.
_OURS = frozenset({"model", "messages", "tools", "response_format", "stream", "n"})


class OpenAiChat:
    """How an OpenAI-compatible provider is spoken to."""

    name = "openai"
    path = "/chat/completions"

    def headers(self, key: str) -> Mapping[str, str]:
        """The headers that carry the key."""
        return {"authorization": f"Bearer {key}"} if key else {}

    def body(self, model: str, request: Mapping[str, Any]) -> dict[str, Json]:
        """The request's body; options are passed on as they are."""
        options = request.get("options") or {}
        check_options(options, _OURS)
        body: dict[str, Json] = {**options, "model": model, "messages": [_message(one) for one in request["messages"]]}
        if request.get("schema") is not None:
            schema = {"name": "answer", "schema": request["schema"]}
            body["response_format"] = {"type": "json_schema", "json_schema": schema}
        if request.get("tools"):
            body["tools"] = [{"type": "function", "function": tool} for tool in request["tools"]]
        return body

    def reply(self, answer: Json, request: Mapping[str, Any]) -> Reply:
        """What an answer says."""
        choice, usage = answer["choices"][0], usage_in(answer)
        message, finish = choice["message"], str(choice.get("finish_reason") or "")
        cached = count(usage_in(usage, "prompt_tokens_details"), "cached_tokens") or 0
        used = Usage(count(usage, "prompt_tokens"), count(usage, "completion_tokens"), cached)
        seen = Reply(None, "", finish, str(answer.get("model") or ""), used)
        fault = ""
        if message.get("refusal"):
            fault = f"the model refuses: {message['refusal']}"
        elif finish == "length":
            fault = "the answer was cut off: the model reached its limit of tokens"
        elif finish == "content_filter":
            fault = "the answer was withheld by the provider's filter"
        if fault:
            return Reply(None, fault, finish, seen.model, used)
        calls = [_call(call) for call in message.get("tool_calls") or ()]
        text = message.get("content")
        if text is None and not calls:
            raise ValueError("neither content nor tool calls")
        return answered(_text(text), calls, request, seen)


def check_options(options: Mapping[str, Any], ours: frozenset[str]) -> None:
    """Refuse options that the runtime sets itself."""
    taken = sorted(options.keys() & ours)
    if taken:
        raise InvalidInput(f"the option {taken[0]!r} can't be given", hint="ctx.model has arguments for it, or sets it")


def _message(message: Mapping[str, Any]) -> Json:
    calls = message.get("tool_calls")
    if not calls:
        return dict(message)
    told = [
        {"id": call["id"], "type": "function", "function": {"name": call["name"], "arguments": _dumped(call)}}
        for call in calls
    ]
    return {"role": "assistant", "content": message.get("content") or None, "tool_calls": told}


def _dumped(call: Mapping[str, Any]) -> str:
    arguments = call.get("arguments")
    return arguments if isinstance(arguments, str) else json.dumps(arguments, sort_keys=True)


def _call(call: Mapping[str, Any]) -> Json:
    """A call as behaviors see it; arguments that are no JSON stay the text they are, which the model is then told."""
    function = call["function"]
    try:
        arguments = read_json(function.get("arguments") or "{}")
    except InvalidInput:
        arguments = function["arguments"]
    return {"id": str(call["id"]), "name": str(function["name"]), "arguments": arguments}


def _text(content: Json) -> str:
    """A message's text; some providers give it in parts."""
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in content)
    return content or ""
