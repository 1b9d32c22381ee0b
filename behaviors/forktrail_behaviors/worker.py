"""A behavior worker: the one process that reacts to a run, from a claim of it until another claims it.

    remember [0, position)  →  catch up [position, end), writing nothing  →  claim  →  write what is missing  →  react

Each record is folded, what it fires is written, and only then the position moves on. So a worker that is killed at any
moment is followed by one that finds on the log all that was written, and writes the rest.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from forktrail_behaviors.budgets import UsedUp, used_up
from forktrail_behaviors.clerk import Clerk
from forktrail_behaviors.desk import Desk
from forktrail_behaviors.log import Log
from forktrail_behaviors.output import Output
from forktrail_behaviors.position import Position
from forktrail_behaviors.queries import QueryAnswer
from forktrail_behaviors.reactor import Reaction, Reactor
from forktrail_projectors.authority import check_signature
from forktrail_projectors.fold import event_of
from forktrail_projectors.record import LogRecord
from forktrail_projectors.rules.context import Refused, number
from forktrail_projectors.rules.reasons import in_words
from forktrail_projectors.state import Overlay
from forktrail_schemas.errors import ForktrailError, InvalidInput
from forktrail_schemas.events import BehaviorRegistered, BehaviorStarted, RunClosed, WorkerClaimed
from forktrail_schemas.events.base import Event

_CLAIM_HINTS = {
    "budget_exhausted": "an admin may raise the budget: see `forktrail budget`",
    "run_closed": "a closed run takes no more work",
}


class Superseded(ForktrailError):
    """Another worker has claimed the run; this one stops, and what it asked for from then on is void."""

    code = "superseded"


@dataclass
class _Owed:
    """What a catching up worker would write, but for what it finds on the log."""

    outputs: dict[str, Output] = field(default_factory=dict)
    queries: dict[str, QueryAnswer] = field(default_factory=dict)

    def take(self, reaction: Reaction, reactor: Reactor) -> None:
        """Take in a reaction: what it makes is owed, what it shows to be on the log is not.

        What was refused for who said it, under a lost claim or without the right signature, is owed all the same.
        """
        if reaction.event is not None and reactor.is_taken(reaction.event.meta.event_id):
            self.outputs.pop(reaction.event.meta.event_id, None)
        if reaction.settled is not None:
            self.queries.pop(reaction.settled, None)
        self.outputs.update((output.event_id, output) for output in reaction.outputs)
        self.queries.update((answer.call_id, answer) for answer in reaction.queries)


class Worker:
    """Reacts to one run.

    Attributes:
        epoch: of its claim; 0 before that.
    """

    def __init__(self, clerk: Clerk, log: Log, reactor: Reactor, desk: Desk, position: Position) -> None:
        """Stand before the log.

        Args:
            clerk: writes in its name.
            desk: has requests answered.
        """
        self.run = clerk.run
        self.epoch = 0
        self._clerk = clerk
        self._log = log
        self._reactor = reactor
        self._desk = desk
        self._position = position
        self._closed = False
        self._claim_id: str | None = None
        self._said: set[UsedUp] = set()
        # The log is this long at least: what the worker wrote it will read.
        self._written = 0
        # All that was fired before this offset is on the log; None until that is known.
        self._settled: int | None = None
        # How far it has read, and how long the log was with what came of that.
        self._unsettled: deque[tuple[int, int]] = deque()

    def work(self, stopping: threading.Event, *, until_idle: bool = False) -> None:
        """React until told to stop, the run is closed, or, where asked, nothing is left to do but what people decide.

        Raises:
            Superseded: another worker claimed the run.
            InvalidInput: a registered behavior's code isn't loaded.
            LogUnavailable: Kafka doesn't answer; start again.
        """
        for idle in self.steps(stopping):
            if idle and until_idle:
                return

    def steps(self, stopping: threading.Event) -> Iterator[bool]:
        """The same, batch by batch: after each, whether nothing is left to do but what people decide.

        Raises:
            Superseded, InvalidInput, LogUnavailable: as `work`.
        """
        owed = self._caught_up(self._log.end())
        self._require_code()
        try:
            for batch in self._log.follow(self._reactor.next_offset):
                self._take(batch, owed)
                if self._closed or stopping.is_set():
                    return
                if not batch and self._claim_id is None:
                    self._claim()
                yield self._idle(batch)
        finally:
            self._desk.close()
            if self._settled is not None:
                self._position.save(self._settled, at_once=True)

    def _idle(self, batch: Sequence[LogRecord]) -> bool:
        """Whether all that was written is read back, and nothing is waited for but people."""
        read_back = not batch and self._reactor.next_offset >= self._written
        return bool(self.epoch) and read_back and self._desk.idle()

    def _caught_up(self, end: int) -> _Owed:
        """Come to the log's end without writing anything; returns what is to be written."""
        reactor, position = self._reactor, self._position.load(end)
        for batch in self._log.read(0, position):
            for record in batch:
                self._desk.take(reactor.remember(record))
        self._look_ahead(position, end)
        reactor.go_on()
        owed = _Owed()
        for batch in self._log.read(position, end):
            for record in batch:
                self._catch_up(record, owed)
        return owed

    def _catch_up(self, record: LogRecord, owed: _Owed) -> Reaction:
        reaction = self._reactor.react(record)
        owed.take(reaction, self._reactor)
        self._desk.take(reaction)
        return reaction

    def _look_ahead(self, position: int, end: int) -> None:
        """Learn what is on the log from the position on, of what was fired before it."""
        seen: set[str] = set()
        fired: list[BehaviorStarted] = []
        answered: list[str] = []
        for batch in self._log.read(position, end):
            for record in batch:
                event = event_of(record, self._reactor.graph)
                if event is None:
                    continue
                seen.add(event.meta.event_id)
                if not self._is_signed(event, record):
                    continue
                if isinstance(event, BehaviorStarted) and event.trigger not in seen:
                    fired.append(event)
                if (call_id := getattr(event, "call_id", None)) is not None:
                    answered.append(call_id)
        self._reactor.note_fired(fired)
        self._reactor.note_answered(answered)

    def _is_signed(self, event: Event, record: LogRecord) -> bool:
        """Whether an event that isn't folded yet is signed as it must be, as far as keys are known by now."""
        try:
            check_signature(event, record, Overlay(self._reactor.graph))
        except Refused:
            return False
        return True

    def _require_code(self) -> None:
        missing = self._reactor.registrations.missing()
        if missing:
            names = ", ".join(f"{one.name} {one.version}" for one in missing)
            raise InvalidInput(
                f"the run has behaviors whose code isn't loaded, or differs: {names}",
                hint="load their packs too, or register the changed code as a new version",
                run=self.run,
            )

    def _require_code_for(self, reaction: Reaction) -> None:
        """Stop before a registration whose code isn't loaded: what comes after it is another worker's to react to."""
        if isinstance(reaction.event, BehaviorRegistered) and reaction.verdict.kind == "valid":
            self._require_code()

    def _claim(self) -> None:
        row = self._reactor.graph.node("Worker", "worker")
        last = 0 if row is None else number(row, "epoch")
        claim = self._clerk.claimed(last + 1)
        self._claim_id = claim.meta.event_id
        self._written = self._log.append([claim])

    def _take(self, batch: Iterable[LogRecord], owed: _Owed) -> None:
        """React to a batch of records, and write what comes of all of them at once."""
        events: list[Event] = []
        for record in batch:
            if not self.epoch:
                reaction = self._catch_up(record, owed)
                self._require_code_for(reaction)
                if self._claimed(reaction):
                    events += self._events(owed.outputs.values(), owed.queries.values())
                continue
            reaction = self._reactor.react(record)
            self._desk.take(reaction)
            self._stop_if_claimed(reaction)
            self._require_code_for(reaction)
            events += self._events(reaction.outputs, reaction.queries)
            self._closed |= isinstance(reaction.event, RunClosed) and reaction.verdict.kind == "valid"
        if self.epoch:
            events += self._exhausted()
        if events:
            self._written = self._log.append(events)
        if self.epoch:
            self._settle()
            self._desk.start_new(self.epoch)

    def _settle(self) -> None:
        """Move the position past what was read, once all that came of it is read back: it may be void till then."""
        self._unsettled.append((self._reactor.next_offset, self._written))
        while self._unsettled and self._unsettled[0][1] <= self._reactor.next_offset:
            self._settled = self._unsettled.popleft()[0]
            self._position.save(self._settled)

    def _exhausted(self) -> list[Event]:
        """What the log doesn't say yet of budgets; each limit is said once, though reading it back takes a moment."""
        new = [budget for budget in used_up(self._reactor.graph) if budget not in self._said]
        self._said.update(new)
        return [self._clerk.exhausted(budget) for budget in new]

    def _claimed(self, reaction: Reaction) -> bool:
        """Whether the record is the worker's own claim, and holds.

        Raises:
            Superseded: another claimed the run at the same moment, and was first.
            InvalidInput: the rules refuse the claim: of a key that isn't the worker's, say.
        """
        event = reaction.event
        if not isinstance(event, WorkerClaimed) or event.meta.event_id != self._claim_id:
            return False
        verdict = reaction.verdict
        if verdict.reason == "epoch_conflict":
            raise Superseded(f"another worker has claimed {self.run} just before", hint="one worker a run is enough")
        if verdict.kind != "valid":
            raise InvalidInput(
                f"the claim of {self.run} is void: {in_words(verdict.reason, verdict.detail)}",
                code=verdict.reason,
                hint=_CLAIM_HINTS.get(verdict.reason, "register the worker's key for its name, with the role worker"),
                run=self.run,
            )
        self.epoch = event.epoch
        return True

    def _stop_if_claimed(self, reaction: Reaction) -> None:
        event = reaction.event
        if isinstance(event, WorkerClaimed) and reaction.verdict.kind == "valid" and event.epoch > self.epoch:
            raise Superseded(
                f"{event.worker} has claimed {self.run} (epoch {event.epoch})", hint="one worker a run is enough"
            )

    def _events(self, outputs: Iterable[Output], queries: Iterable[QueryAnswer]) -> list[Event]:
        made = [output.event(self.run, self.epoch) for output in outputs]
        return [*made, *map(self._clerk.queried, queries)]
