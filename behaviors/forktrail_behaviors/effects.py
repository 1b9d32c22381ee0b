"""What touches the world for behaviors: models and tools, called side by side within limits."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol

from forktrail_behaviors.asked import Asked
from forktrail_behaviors.daemon_pool import DaemonPool
from forktrail_behaviors.inputs import Blobs
from forktrail_behaviors.reads import canonical
from forktrail_behaviors.tools import Tool
from forktrail_schemas.errors import ForktrailError, InvalidInput
from forktrail_schemas.events import ModelRequested, ToolRequested
from forktrail_schemas.events.base import Event
from forktrail_schemas.json_text import Json

Outcome = Literal["ok", "error", "abstained", "unknown"]
ERROR_LENGTH_MAX = 1_000


@dataclass(frozen=True)
class EffectResult:
    """What a model or tool answered.

    Attributes:
        answer: a JSON value; None where there is none.
        error: what went wrong, in words that hold no secret.
        cost_micros: millionths of the currency that prices are kept in.
        duration_micros: how long it took.
        provider: who answered, of a model.
        model: what the provider calls it.
        finish_reason: why it ended, in the provider's words.
        attempts: how often the request was sent.
        sent: the body of the last request to a provider, without secrets.
        received: the body of its answer, without secrets.
    """

    outcome: Outcome
    answer: Json = None
    error: str = ""
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_micros: int | None = None
    duration_micros: int | None = None
    provider: str = ""
    model: str = ""
    finish_reason: str = ""
    attempts: int = 1
    sent: bytes | None = field(default=None, repr=False)
    received: bytes | None = field(default=None, repr=False)


class Model(Protocol):
    """A model by the name that behaviors ask it under."""

    @property
    def name(self) -> str:
        """Its name."""
        ...

    def answer(self, request: Mapping[str, Any]) -> EffectResult:
        """Answer a request: its `messages`, the JSON `schema` of the answer or None, `options`, and perhaps `tools`.

        A model that calls tools answers `{"tool_calls": [{"id", "name", "arguments"}, …], "text": …}`.

        May be called by several threads at once. What it raises becomes the outcome `error`.
        """
        ...


@dataclass(frozen=True)
class Limits:
    """How many calls are under way at once."""

    models: int = 4
    tools: int = 8


Answered = Callable[[Asked, EffectResult], None]
# A tool that writes, under an idempotency key, is sent again so often after it took too long.
SENDINGS_MAX = 2


class Effects:
    """Calls models and tools in threads of its own; each request once.

    The threads are daemons: one that hangs in a tool doesn't keep the process from ending.
    """

    def __init__(
        self,
        models: Mapping[str, Model],
        tools: Mapping[str, Tool],
        blobs: Blobs,
        answered: Answered,
        limits: Limits | None = None,
    ) -> None:
        """Start nothing yet.

        Args:
            blobs: where large requests lie.
            answered: takes each answer, in the thread that got it.
        """
        limits = limits or Limits()
        self._models, self._tools, self._blobs = models, tools, blobs
        self._answered = answered
        self._pools: dict[type[Event], DaemonPool] = {
            ModelRequested: DaemonPool(limits.models, "forktrail-model"),
            ToolRequested: DaemonPool(limits.tools, "forktrail-tool"),
        }

    def start(self, asked: Asked) -> None:
        """Call what a request asks for."""
        self._submit(asked, 1)

    def close(self) -> None:
        """Begin nothing more; what is under way ends by itself."""
        for pool in self._pools.values():
            pool.close()

    def _submit(self, asked: Asked, sending: int) -> None:
        self._pools[type(asked.event)].submit(lambda: self._call(asked, sending))

    def _call(self, asked: Asked, sending: int) -> None:
        """Call it; where it takes too long, answer so, and let it end in its own time."""
        tool = self._tools.get(asked.event.name) if isinstance(asked.event, ToolRequested) else None
        once = threading.Lock()
        timer: threading.Timer | None = None
        if tool is not None:
            timer = threading.Timer(tool.timeout_seconds, self._late, (asked, tool, sending, once))
            timer.daemon = True
            timer.start()
        result = outcome_of(asked, self._models, self._tools, self._blobs)
        if timer is not None:
            timer.cancel()
        if once.acquire(blocking=False):
            self._answered(asked, result)

    def _late(self, asked: Asked, tool: Tool, sending: int, once: threading.Lock) -> None:
        """A tool has taken too long: what it may have written, nobody knows."""
        if not once.acquire(blocking=False):
            return
        event = asked.event
        assert isinstance(event, ToolRequested)
        told = f"timed out after {tool.timeout_seconds:g} s"
        if event.side_effects != "write":
            self._answered(asked, EffectResult("error", error=told))
        elif event.idempotency_key is not None and sending < SENDINGS_MAX:
            self._submit(asked, sending + 1)
        else:
            self._answered(asked, EffectResult("unknown", error=told))


def outcome_of(asked: Asked, models: Mapping[str, Model], tools: Mapping[str, Tool], blobs: Blobs) -> EffectResult:
    """Call what a request asks for, and return what came of it, with how long it took; never raises."""
    began = time.monotonic_ns()
    result = _outcome(asked, models, tools, blobs)
    if result.duration_micros is not None:
        return result
    return replace(result, duration_micros=(time.monotonic_ns() - began) // 1_000)


def _outcome(asked: Asked, models: Mapping[str, Model], tools: Mapping[str, Tool], blobs: Blobs) -> EffectResult:
    event = asked.event
    try:
        if isinstance(event, ModelRequested):
            request = json.loads(request_text(event, blobs))
            result: EffectResult = _named(models, event.name, "model").answer(request)
            canonical(result.answer)
            return _unless_unsure(result, request.get("abstain_below"))
        assert isinstance(event, ToolRequested)
        tool: Tool = _named(tools, event.name, "tool")
        answer = tool.call(json.loads(event.request)["arguments"], event.idempotency_key)
        size = len(canonical(answer))
        if size > tool.output_bytes_max:
            return EffectResult("error", error=f"the answer has {size:,} bytes, {tool.output_bytes_max:,} are allowed")
        return EffectResult("ok", answer)
    except ForktrailError as error:
        return EffectResult("error", error=error.message[:ERROR_LENGTH_MAX])
    except (Exception, SystemExit, KeyboardInterrupt) as error:  # no tool ends its worker, and a thread hears no Ctrl-C
        # What a library says may hold an address with a password or a token; its kind says enough for the log.
        return EffectResult("error", error=type(error).__name__)


def request_text(event: ModelRequested, blobs: Blobs) -> str:
    """The canonical text of a request, wherever it lies."""
    if event.request is not None:
        return event.request
    assert event.blob is not None, "the rules ask for one of both"
    return blobs.get(event.blob.sha256).decode()


def _unless_unsure(result: EffectResult, threshold: float | None) -> EffectResult:
    """The result; one whose confidence is below what was asked for abstains."""
    if threshold is None or result.outcome != "ok" or not isinstance(result.answer, dict):
        return result
    confidence = result.answer.get("confidence")
    if isinstance(confidence, int | float) and confidence < threshold:
        return replace(result, outcome="abstained", answer=None, error=f"confidence {confidence} is below {threshold}")
    return result


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
