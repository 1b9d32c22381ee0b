"""What touches the world for behaviors: models and tools, called side by side within limits."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from forktrail_behaviors.asked import Asked
from forktrail_behaviors.reads import canonical
from forktrail_schemas.errors import ForktrailError, InvalidInput
from forktrail_schemas.events import ModelRequested, ToolRequested
from forktrail_schemas.events.base import Event
from forktrail_schemas.json_text import Json

SideEffects = Literal["none", "read", "write"]
Outcome = Literal["ok", "error", "abstained", "unknown"]
ERROR_LENGTH_MAX = 1_000


@dataclass(frozen=True)
class EffectResult:
    """What a model or tool answered.

    Attributes:
        answer: a JSON value; None where there is none.
        error: what went wrong, in words that hold no secret.
        cost_micros: millionths of the currency that prices are kept in.
    """

    outcome: Outcome
    answer: Json = None
    error: str = ""
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_micros: int | None = None


class Model(Protocol):
    """A model by the name that behaviors ask it under."""

    @property
    def name(self) -> str:
        """Its name."""
        ...

    def answer(self, request: Mapping[str, Any]) -> EffectResult:
        """Answer a request: its `messages`, the JSON `schema` of the answer or None, and `options`.

        May be called by several threads at once. What it raises becomes the outcome `error`.
        """
        ...


class Tool(Protocol):
    """A tool by the name that behaviors call it under."""

    @property
    def name(self) -> str:
        """Its name."""
        ...

    @property
    def side_effects(self) -> SideEffects:
        """What calling it does to the world."""
        ...

    def call(self, arguments: Mapping[str, Any], idempotency_key: str | None) -> Json:
        """Call it; returns a JSON value. See `Model.answer` for threads and errors."""
        ...


@dataclass(frozen=True)
class FunctionTool:
    """A tool made of a function that takes its arguments by name; made by `tool`."""

    name: str
    side_effects: SideEffects
    function: Callable[..., Json] = field(repr=False)

    def call(self, arguments: Mapping[str, Any], idempotency_key: str | None) -> Json:
        """Call the function; a parameter `idempotency_key` gets the key."""
        takes_key = "idempotency_key" in inspect.signature(self.function).parameters
        return self.function(**arguments, **({"idempotency_key": idempotency_key} if takes_key else {}))


def tool(
    *, name: str | None = None, side_effects: SideEffects = "read"
) -> Callable[[Callable[..., Json]], FunctionTool]:
    """Make a tool of a function; by default it is called what the function is."""
    return lambda function: FunctionTool(name or function.__name__, side_effects, function)


@dataclass(frozen=True)
class Limits:
    """How many calls are under way at once."""

    models: int = 4
    tools: int = 8


Answered = Callable[[Asked, EffectResult], None]


class Effects:
    """Calls models and tools in threads of its own; each request once."""

    def __init__(
        self, models: Mapping[str, Model], tools: Mapping[str, Tool], answered: Answered, limits: Limits | None = None
    ) -> None:
        """Start nothing yet.

        Args:
            answered: takes each answer, in the thread that got it.
        """
        limits = limits or Limits()
        self._models, self._tools = models, tools
        self._answered = answered
        self._pools: dict[type[Event], ThreadPoolExecutor] = {
            ModelRequested: ThreadPoolExecutor(limits.models, thread_name_prefix="forktrail-model"),
            ToolRequested: ThreadPoolExecutor(limits.tools, thread_name_prefix="forktrail-tool"),
        }

    def start(self, asked: Asked) -> None:
        """Call what a request asks for."""
        self._pools[type(asked.event)].submit(self._call, asked)

    def close(self) -> None:
        """Begin nothing more; what is under way ends by itself."""
        for pool in self._pools.values():
            pool.shutdown(wait=False, cancel_futures=True)

    def _call(self, asked: Asked) -> None:
        self._answered(asked, outcome_of(asked, self._models, self._tools))


def outcome_of(asked: Asked, models: Mapping[str, Model], tools: Mapping[str, Tool]) -> EffectResult:
    """Call what a request asks for, and return what came of it; never raises."""
    event = asked.event
    try:
        if isinstance(event, ModelRequested):
            result: EffectResult = _named(models, event.name, "model").answer(json.loads(event.request))
            canonical(result.answer)
            return result
        assert isinstance(event, ToolRequested)
        arguments = json.loads(event.request)["arguments"]
        answer = _named(tools, event.name, "tool").call(arguments, event.idempotency_key)
        canonical(answer)
        return EffectResult("ok", answer)
    except ForktrailError as error:
        return EffectResult("error", error=error.message[:ERROR_LENGTH_MAX])
    except Exception as error:
        # What a library says may hold an address with a password or a token; its kind says enough for the log.
        return EffectResult("error", error=type(error).__name__)


def left_unknown(asked: Asked, epoch: int) -> bool:
    """Whether a request may have been carried out by a worker that is gone, and can't be sent again safely."""
    event = asked.event
    if not isinstance(event, ToolRequested) or event.epoch == epoch:
        return False
    return event.side_effects == "write" and event.idempotency_key is None


def _named(known: Mapping[str, Any], name: str, kind: str) -> Any:
    try:
        return known[name]
    except KeyError:
        raise InvalidInput(f"this worker has no {kind} {name!r}; it has {', '.join(known) or 'none'}") from None
