"""A model whose answers are given beforehand."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from forktrail_behaviors.effects import EffectResult
from forktrail_schemas.json_text import Json

Answers = Callable[[Mapping[str, Any]], Json]


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
