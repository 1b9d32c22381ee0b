"""The desk of a worker: which requests wait for an answer, who gets it, and when a timer is due.

Answers are written from the threads that got them, each as it comes; the worker reads them back from the log like any
other event. So it holds no answer that a kill could lose between its desk and the log.
"""

from __future__ import annotations

import heapq
import threading
from collections.abc import Callable
from functools import partial
from typing import Protocol

from forktrail_behaviors.asked import Asked, asked_by
from forktrail_behaviors.clerk import Clerk
from forktrail_behaviors.effects import EffectResult, Effects, Limits, left_unknown
from forktrail_behaviors.log import Log
from forktrail_behaviors.pack import Pack
from forktrail_behaviors.reactor import Reaction
from forktrail_schemas.errors import ForktrailError
from forktrail_schemas.events import ApprovalRequested, TimerSet
from forktrail_schemas.events.base import Event
from forktrail_schemas.ids import now_micros

_MICROS = 1_000_000
LOOK_SECONDS = 0.2

Now = Callable[[], int]


class Desk(Protocol):
    """Has a run's requests answered, each once, from the moment that the worker has claimed the run."""

    def take(self, reaction: Reaction) -> None:
        """Take in what the log says: a request waits, an answer settles it."""
        ...

    def idle(self) -> bool:
        """Whether nothing is waited for but people."""
        ...

    def start_new(self, epoch: int) -> None:
        """Have what was asked since the last call answered, in the order it was asked.

        Raises:
            ForktrailError: an answer couldn't be written.
        """
        ...

    def close(self) -> None:
        """Start nothing more."""
        ...


class ThreadedDesk:
    """Implements `Desk` by threads that call models and tools, and one that watches the clock."""

    def __init__(
        self, clerk: Clerk, log: Log, pack: Pack, *, limits: Limits | None = None, now: Now = now_micros
    ) -> None:
        """Take no request yet.

        Args:
            log: written to by several threads, in turn.
            now: the clock that timers go by, microseconds since 1970 UTC.
        """
        self._clerk, self._log, self._now = clerk, log, now
        models = {model.name: model for model in pack.models}
        tools = {tool.name: tool for tool in pack.tools}
        self._effects = Effects(models, tools, clerk.blobs, self._answered, limits)
        self._waiting: dict[str, Asked] = {}
        self._new: dict[str, Asked] = {}
        self._writing = threading.Lock()
        self._timers: list[tuple[int, str]] = []
        self._timer_changed = threading.Condition()
        self._stopped = False
        self._clock: threading.Thread | None = None
        self.failure: ForktrailError | None = None

    def take(self, reaction: Reaction) -> None:
        """Take in what the log says: a request waits, an answer settles it."""
        settled = [] if reaction.settled is None else [reaction.settled]
        if reaction.ended is not None:
            settled += asked_by(reaction.ended, self._waiting)
        for call_id in settled:
            self._waiting.pop(call_id, None)
            self._new.pop(call_id, None)
        if reaction.asked is not None:
            self._waiting[reaction.asked.call_id] = self._new[reaction.asked.call_id] = reaction.asked

    def idle(self) -> bool:
        """Whether nothing is waited for but people."""
        return all(isinstance(asked.event, ApprovalRequested) for asked in self._waiting.values())

    def start_new(self, epoch: int) -> None:
        """Have what was asked since the last call answered, in the order it was asked.

        Raises:
            ForktrailError: an answer couldn't be written.
        """
        if self.failure is not None:
            raise self.failure
        new, self._new = self._new, {}
        for asked in new.values():
            if isinstance(asked.event, TimerSet):
                self._set(asked.event.due_at, asked.call_id)
            elif left_unknown(asked, epoch):
                gone = "the worker that sent it is gone, and it has no idempotency key"
                self._answered(asked, EffectResult("unknown", error=gone))
            elif not isinstance(asked.event, ApprovalRequested):
                self._effects.start(asked)

    def close(self) -> None:
        """Start nothing more."""
        self._effects.close()
        with self._timer_changed:
            self._stopped = True
            self._timer_changed.notify()

    def _answered(self, asked: Asked, result: EffectResult) -> None:
        self._write(lambda: self._clerk.answered(asked, result))

    def _write(self, make: Callable[[], Event]) -> None:
        """Write an answer; what keeps it from the log ends the worker, and its successor asks again."""
        try:
            event = make()
            with self._writing:
                if not self._stopped:
                    self._log.append([event])
        except ForktrailError as error:
            self.failure = error
        except Exception as error:  # a disk that is full, say: nobody else would hear of it, and all would wait
            self.failure = ForktrailError(f"an answer couldn't be written: {type(error).__name__}: {error}")

    def _set(self, due_at: int, call_id: str) -> None:
        with self._timer_changed:
            heapq.heappush(self._timers, (due_at, call_id))
            self._timer_changed.notify()
        if self._clock is None:
            self._clock = threading.Thread(target=self._watch, name="forktrail-timers", daemon=True)
            self._clock.start()

    def _watch(self) -> None:
        """Fire timers as they come due."""
        while True:
            with self._timer_changed:
                if self._stopped:
                    return
                if not self._timers or self._timers[0][0] > self._now():
                    left = (self._timers[0][0] - self._now()) / _MICROS if self._timers else LOOK_SECONDS
                    self._timer_changed.wait(min(left, LOOK_SECONDS) if left > 0 else 0)
                    continue
                _, call_id = heapq.heappop(self._timers)
            asked = self._waiting.get(call_id)
            if asked is not None:
                self._write(partial(self._clerk.fired, asked))
