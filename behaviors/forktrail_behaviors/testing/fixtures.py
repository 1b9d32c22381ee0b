"""A model whose answers are given beforehand."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from forktrail_behaviors.effects import EffectResult
from forktrail_schemas.json_text import Json

Answers = Callable[[Mapping[str, Any]], Json]


def tool_calls(*calls: tuple[str, Mapping[str, Json]], text: str = "") -> Json:
    """What a model answers that calls tools, each by its name and arguments."""
    told = [{"id": f"t{n}", "name": name, "arguments": dict(given)} for n, (name, given) in enumerate(calls, 1)]
    return {"tool_calls": told, "text": text}


@dataclass
class FixtureModel:
    """Answers each request by a function of it.

    Attributes:
        answers: takes the request (`messages`, `schema`, `options`) and returns a JSON value, or an EffectResult.
        asked: every request that there was, in order.
    """

    name: str
    answers: Answers = field(repr=False)
    asked: list[Mapping[str, Any]] = field(default_factory=list, repr=False)

    def answer(self, request: Mapping[str, Any]) -> EffectResult:
        """Answer a request; costs nothing."""
        self.asked.append(request)
        found = self.answers(request)
        return found if isinstance(found, EffectResult) else EffectResult("ok", found)
