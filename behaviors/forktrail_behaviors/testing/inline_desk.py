"""A desk without threads: it answers at once, in an order that dice may choose; time passes when nothing else does."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace

from forktrail_behaviors.asked import Asked, asked_by
from forktrail_behaviors.clerk import Clerk
from forktrail_behaviors.effects import EffectResult, left_unknown, outcome_of
from forktrail_behaviors.log import Log
from forktrail_behaviors.pack import Pack
from forktrail_behaviors.reactor import Reaction
from forktrail_schemas.events import ApprovalRequested, TimerSet

START_MICROS = 1_700_000_000_000_000


@dataclass
class Clock:
    """Time as a test has it; each look at it is a microsecond later."""

    now_micros: int = START_MICROS

    def tick(self) -> int:
        """The next moment."""
        self.now_micros += 1
        return self.now_micros


class InlineDesk:
    """Implements `Desk`.

    Attributes:
        calls: how often each request was carried out, by its call.
    """

    def __init__(
        self, clerk: Clerk, log: Log, pack: Pack, clock: Clock, calls: dict[str, int], dice: random.Random | None = None
    ) -> None:
        self.calls = calls
        self._clerk, self._log, self._clock, self._dice = clerk, log, clock, dice
        self._models = {model.name: model for model in pack.models}
        self._tools = {tool.name: tool for tool in pack.tools}
        self._waiting: dict[str, Asked] = {}
        self._new: dict[str, Asked] = {}

    def take(self, reaction: Reaction) -> None:
        """Take in what the log says."""
        settled = [] if reaction.settled is None else [reaction.settled]
        if reaction.ended is not None:
            settled += asked_by(reaction.ended, self._waiting)
        for call_id in settled:
            self._waiting.pop(call_id, None)
            self._new.pop(call_id, None)
        if reaction.asked is not None:
            self._waiting[reaction.asked.call_id] = self._new[reaction.asked.call_id] = reaction.asked

    def idle(self) -> bool:
        """Let the next timer fire; True where there is none, and so nothing is waited for but people."""
        timers = [asked for asked in self._waiting.values() if isinstance(asked.event, TimerSet)]
        if not timers:
            return True
        due = {asked.call_id: asked.event.due_at for asked in timers if isinstance(asked.event, TimerSet)}
        first = min(timers, key=lambda asked: (due[asked.call_id], asked.call_id))
        self._clock.now_micros = max(self._clock.now_micros, due[first.call_id])
        del self._waiting[first.call_id]
        self._log.append([self._clerk.fired(first)])
        return False

    def start_new(self, epoch: int) -> None:
        """Answer what was asked since the last call."""
        new = list(self._new.values())
        self._new = {}
        if self._dice is not None:
            self._dice.shuffle(new)
        for asked in new:
            if isinstance(asked.event, TimerSet | ApprovalRequested):
                continue
            if left_unknown(asked, epoch):
                result = EffectResult("unknown", error="the worker that sent it is gone")
            else:
                self.calls[asked.call_id] = self.calls.get(asked.call_id, 0) + 1
                result = replace(outcome_of(asked, self._models, self._tools, self._clerk.blobs), duration_micros=None)
            self._log.append([self._clerk.answered(asked, result)])

    def close(self) -> None:
        """Nothing is under way."""
