"""The events that a worker writes in its own name: its claim, and the answers to what behaviors asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from forktrail_behaviors.asked import Asked
from forktrail_behaviors.budgets import UsedUp
from forktrail_behaviors.effects import ERROR_LENGTH_MAX, EffectResult
from forktrail_behaviors.inputs import INLINE_BYTES_MAX, MEDIA_TYPE, Blobs
from forktrail_behaviors.queries import QueryAnswer
from forktrail_behaviors.reads import canonical
from forktrail_producers.producer import meta
from forktrail_schemas.errors import InvalidEvent
from forktrail_schemas.events import (
    BudgetExhausted,
    ModelRequested,
    ModelResponded,
    TimerFired,
    ToolResponded,
    WorkerClaimed,
)
from forktrail_schemas.events.base import Event
from forktrail_schemas.wire import build

# Makes the `meta` of a new event, as `forktrail_producers.producer.meta` does by the wall clock.
Head = Callable[..., dict[str, object]]
_ACTOR_KIND = "service"


@dataclass(frozen=True)
class Clerk:
    """Writes a worker's own events.

    Attributes:
        worker: its name.
        blobs: where large answers go, before the event that names them.
    """

    run: str
    worker: str
    blobs: Blobs
    head: Head = meta

    def claimed(self, epoch: int) -> WorkerClaimed:
        """The worker takes the run over."""
        head = self.head(self.run, _ACTOR_KIND, self.worker)
        return build(WorkerClaimed, {"meta": head, "worker": self.worker, "epoch": epoch})

    def queried(self, answer: QueryAnswer) -> ToolResponded:
        """The graph's answer to a query."""
        text = None if answer.answer is None else answer.answer.encode()
        fields = {"call_id": answer.call_id, "outcome": answer.outcome, "error": answer.error, "cost_micros": None}
        return build(ToolResponded, {"meta": self._meta(answer.request), **fields, **self._told(text)})

    def answered(self, asked: Asked, result: EffectResult) -> Event:
        """A model's or a tool's answer; one that no event can hold is told as an error."""
        try:
            return self._answered(asked, result)
        except InvalidEvent as error:
            fault = f"the answer can't be kept: {error.message}"[:ERROR_LENGTH_MAX]
            return self._answered(asked, replace(result, outcome="error", answer=None, error=fault))

    def _answered(self, asked: Asked, result: EffectResult) -> Event:
        fields: dict[str, object] = {
            "meta": self._meta(asked.event),
            "call_id": asked.call_id,
            "outcome": result.outcome,
            "error": _writable(result.error),
            "cost_micros": result.cost_micros,
            "duration_micros": result.duration_micros,
            **self._told(canonical(result.answer) if result.outcome == "ok" else None),
        }
        if isinstance(asked.event, ModelRequested):
            return build(ModelResponded, fields | self._exchange(result))
        return build(ToolResponded, fields)

    def _exchange(self, result: EffectResult) -> dict[str, object]:
        """What a model's provider was asked and said; the bytes go to the blob store first."""
        told: dict[str, object] = {"input_tokens": result.input_tokens, "output_tokens": result.output_tokens}
        told |= {"provider": result.provider, "model": result.model, "finish_reason": result.finish_reason}
        told |= {"attempts": result.attempts}
        for name, value in (("sent", result.sent), ("received", result.received)):
            if value is not None:
                told[name] = {"sha256": self.blobs.put(value), "size": len(value), "media_type": MEDIA_TYPE}
        return told

    def exhausted(self, budget: UsedUp) -> BudgetExhausted:
        """Nothing is left of a budget."""
        head = self.head(self.run, _ACTOR_KIND, self.worker)
        return build(BudgetExhausted, {"meta": head, **budget._asdict()})

    def fired(self, asked: Asked) -> TimerFired:
        """A timer is due."""
        return build(TimerFired, {"meta": self._meta(asked.event), "call_id": asked.call_id})

    def _meta(self, request: Event) -> dict[str, object]:
        causes = [request.meta.event_id]
        return self.head(self.run, _ACTOR_KIND, self.worker, causes=causes, goal=request.meta.goal)

    def _told(self, answer: bytes | None) -> dict[str, object]:
        return _told(answer, self.blobs)


def _writable(text: str) -> str:
    """A text of somebody else's that an event can hold: NUL and lone surrogates are replaced."""
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}").encode("utf-8", "replace").decode()


def _told(answer: bytes | None, blobs: Blobs) -> dict[str, object]:
    if answer is None or len(answer) <= INLINE_BYTES_MAX:
        return {"answer": None if answer is None else answer.decode(), "blob": None}
    blob = {"sha256": blobs.put(answer), "size": len(answer), "media_type": MEDIA_TYPE}
    return {"answer": None, "blob": blob}
