"""Folds a run record by record and says what its behaviors make of each. Worker, replay and testing kit all run this.

A record first changes the graph; then whatever waits for it goes on, or what it triggers starts. All of that follows
from the records alone: how fast they come, who reads them and when, changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from forktrail_behaviors.answers import answer_in, is_request, is_waited_for
from forktrail_behaviors.asked import Asked
from forktrail_behaviors.behavior import Behavior, Handler
from forktrail_behaviors.commands import Answer, Draft, Refusal
from forktrail_behaviors.context import GRAPH_QUERY, Identity
from forktrail_behaviors.execution import Execution
from forktrail_behaviors.firing import matches_of
from forktrail_behaviors.inputs import Blobs, Inputs, ReadFailed, given_from, read_inputs
from forktrail_behaviors.mirrored_graph import MirroredGraph
from forktrail_behaviors.output import Output
from forktrail_behaviors.pack import Pack
from forktrail_behaviors.queries import QueryAnswer, answer_query
from forktrail_behaviors.registrations import Registrations
from forktrail_behaviors.subscription import Match
from forktrail_projectors.fold import event_of
from forktrail_projectors.projector import Projector
from forktrail_projectors.record import LogRecord, Verdict
from forktrail_projectors.rules.context import number
from forktrail_schemas.events import (
    BehaviorCompleted,
    BehaviorFailed,
    BehaviorRegistered,
    BehaviorStarted,
    ExecutionCancelled,
    ToolRequested,
)
from forktrail_schemas.events.base import Event
from forktrail_schemas.ids import derived_id

START = "start"


@dataclass
class Reaction:
    """What came of one record.

    Attributes:
        event: what it holds, where it is an event.
        outputs: what behaviors make of it, in order.
        asked: the request that it is, to be answered by an effect.
        queries: answers that the graph gave, to be written.
        settled: the call that it answers.
        ended: the execution that it ends, and with it all that this still waits for.
    """

    verdict: Verdict
    event: Event | None = None
    outputs: list[Output] = field(default_factory=list)
    asked: Asked | None = None
    queries: list[QueryAnswer] = field(default_factory=list)
    settled: str | None = None
    ended: str | None = None


@dataclass
class _Remembered:
    """An execution whose trigger lies before the position: what is needed to run it again, if it goes on at all."""

    started: BehaviorStarted
    answers: list[tuple[str, Answer | Refusal, Event]] = field(default_factory=list)


class Reactor:
    """A run's behaviors at one offset of its log.

    Attributes:
        graph: the run's graph as of the last record.
        registrations: which behaviors react from here on.
        blobs: where large inputs, requests and answers lie.
        foreign_executions: ids of executions whose code isn't loaded, by behavior; they are left alone.
    """

    def __init__(
        self, graph: MirroredGraph, topic_id: str, pack: Pack, blobs: Blobs, record_at: Callable[[int], LogRecord]
    ) -> None:
        """Stand before the first record.

        Args:
            record_at: gives a record of the log below the one at hand.
        """
        self.graph = graph
        self.projector = Projector(graph, topic_id)
        self.registrations = Registrations(pack)
        self.foreign_executions: dict[str, list[str]] = {}
        self._pack = pack
        self.blobs = blobs
        self._record_at = record_at
        self._open: dict[str, Execution] = {}
        self._remembered: dict[str, _Remembered] = {}
        self._fired: set[tuple[str, str, tuple[str, ...]]] = set()
        self._answered_ahead: frozenset[str] = frozenset()
        self._reacting_from = 0
        self._reacting = False

    @property
    def next_offset(self) -> int:
        """The offset of the record that comes next."""
        return self.projector.cursor.next_offset

    @property
    def open_executions(self) -> list[str]:
        """Ids of the executions that wait for something."""
        return list(self._open)

    def remember(self, record: LogRecord) -> Reaction:
        """Fold a record whose consequences are all on the log, but for answers that are still waited for.

        Starts nothing and makes no outputs; what is asked and settled is told all the same.
        """
        verdict, event = self._folded(record)
        reaction = Reaction(verdict, event)
        if event is None:
            return reaction
        if verdict.kind == "valid":
            self._note(reaction, event, record.offset)
        if isinstance(event, BehaviorStarted) and self.took_its_id(event, record.offset):
            self.note_fired([event])
            if verdict.kind == "valid" and event.meta.execution is not None:
                self._remembered[event.meta.execution.id] = _Remembered(event)
        reaction.ended = self._ended_by(event, verdict)
        if reaction.ended is not None:
            self._remembered.pop(reaction.ended, None)
            return reaction
        found = self._answer(event, verdict, record.offset)
        if found is not None and found[0] in self._remembered:
            execution_id, path, answer = found
            self._remembered[execution_id].answers.append((path, answer, event))
        return reaction

    def go_on(self) -> None:
        """From the next record on, react; first bring the executions that are still open to where they stood."""
        self._reacting_from = self.next_offset
        self._reacting = True
        remembered, self._remembered = self._remembered, {}
        for one in remembered.values():
            execution = self._reopened(one.started)
            for path, answer, event in one.answers if execution else ():
                assert execution is not None
                if execution.waits_at(path):
                    execution.resume(path, answer, event.meta.occurred_at)

    def note_answered(self, call_ids: Iterable[str]) -> None:
        """Take it that these calls are answered further on in the log, so that no query need be made for them."""
        self._answered_ahead = frozenset(call_ids)

    def note_fired(self, events: Iterable[BehaviorStarted]) -> None:
        """Take it that these matches have fired, though the log says so only further on."""
        for event in events:
            execution = event.meta.execution
            if execution is not None and execution.match:
                self._fired.add((execution.behavior, execution.handler, tuple(execution.match)))

    def react(self, record: LogRecord) -> Reaction:
        """Fold a record, resume what waited for it, and start what it triggers."""
        verdict, event = self._folded(record)
        reaction = Reaction(verdict, event)
        if event is None:
            return reaction
        self._resume(reaction, event, record.offset)
        if verdict.kind != "valid":
            return reaction
        self._note(reaction, event, record.offset)
        for entry in self.registrations.active(record.offset):
            for handler in entry.handlers:
                for match in self._new_matches(entry, handler, event):
                    reaction.outputs += self._start(entry, handler, match, event)
        return reaction

    def close(self) -> None:
        """End every open execution where it stands."""
        for execution in self._open.values():
            execution.close()
        self._open.clear()
        self.graph.close()

    def _folded(self, record: LogRecord) -> tuple[Verdict, Event | None]:
        (verdict,) = self.projector.apply([record])
        return verdict, None if verdict.kind in ("unreadable", "unhandled") else event_of(record, self.graph)

    def _resume(self, reaction: Reaction, event: Event, offset: int) -> None:
        """Send an answer, or the refusal of a request, to the execution that waits for it."""
        if isinstance(event, BehaviorStarted):
            self._started(event, reaction.verdict, offset)
        reaction.ended = self._ended_by(event, reaction.verdict)
        if reaction.ended is not None:
            execution = self._open.pop(reaction.ended, None)
            if execution is not None:
                execution.close()
            return
        found = self._answer(event, reaction.verdict, offset)
        if found is None:
            return
        execution_id, path, answer = found
        execution = self._open.get(execution_id)
        if execution is None or not execution.waits_at(path):
            return
        drafts = execution.resume(path, answer, event.meta.occurred_at)
        reaction.outputs += self._outputs(execution.identity, drafts, event, event.meta.occurred_at)
        if execution.ended:
            del self._open[execution_id]

    def _note(self, reaction: Reaction, event: Event, offset: int) -> None:
        """What else a valid event means: a registration, a request, an answer."""
        if isinstance(event, BehaviorRegistered):
            self.registrations.add(event, offset)
        reaction.settled = getattr(event, "call_id", None)
        if not is_request(event):
            return
        call_id = derived_id("call", event.meta.event_id)
        row = self.graph.node("Call", call_id)
        assert row is not None, "a valid request has its call"
        if isinstance(event, ToolRequested) and event.name == GRAPH_QUERY:
            # What was asked before the position was answered before that moved on.
            if self._reacting and call_id not in self._answered_ahead:
                reaction.queries.append(answer_query(self.graph, call_id, event))
        else:
            reaction.asked = Asked(call_id, event, row)

    def _new_matches(self, behavior: Behavior, handler: Handler, event: Event) -> Iterator[Match]:
        """What fires a handler, but for the matches that have fired before."""
        for match in matches_of(handler.subscription, event, self.graph):
            if match.ids:
                key = (behavior.name, handler.name, match.ids)
                if key in self._fired:
                    continue
                self._fired.add(key)
            yield match

    def _start(self, behavior: Behavior, handler: Handler, match: Match, event: Event) -> list[Output]:
        identity = Identity(event.meta.event_id, behavior.name, behavior.version, handler.name, match.ids)
        try:
            inputs = read_inputs(self.graph, handler, match, event)
        except ReadFailed as error:
            fields = {"error_type": error.code, "message": error.message}
            drafts = [self._start_draft(identity, Inputs({})), Draft(BehaviorFailed, "end", fields)]
            return self._outputs(identity, drafts, event, event.meta.occurred_at)
        execution = Execution(identity, behavior, given_from(inputs, event), self._pack.types)
        drafts = [self._start_draft(identity, inputs), *execution.start(event.meta.occurred_at)]
        if not execution.ended:
            self._open[identity.id] = execution
        return self._outputs(identity, drafts, event, event.meta.occurred_at)

    def _start_draft(self, identity: Identity, inputs: Inputs) -> Draft:
        fields = {"trigger": identity.trigger, "inputs": inputs.recorded(self.blobs)}
        return Draft(BehaviorStarted, START, fields)

    def _outputs(self, identity: Identity, drafts: list[Draft], cause: Event, occurred_at: int) -> list[Output]:
        """The drafts of one stretch. BehaviorStarted follows from the trigger, what the first stretch makes from it."""
        for draft in drafts:
            if draft.large is not None:
                self.blobs.put(draft.large)
        started = identity.output_id(START)
        first = bool(drafts) and drafts[0].path == START
        return [
            Output(
                identity,
                draft,
                cause=cause.meta.event_id if not first or draft.path == START else started,
                goal=cause.meta.goal,
                occurred_at=occurred_at,
            )
            for draft in drafts
        ]

    def _started(self, event: BehaviorStarted, verdict: Verdict, offset: int) -> None:
        """BehaviorStarted came back: where it is void its execution ends; where its trigger is old, it opens now."""
        if not self.took_its_id(event, offset):
            return  # forged, or said under a claim that was lost: it comes again
        self.note_fired([event])
        execution = event.meta.execution
        if execution is None:
            return
        if verdict.kind == "void":
            refused = self._open.pop(execution.id, None)
            if refused is not None:
                refused.close()
        if verdict.kind == "valid" and execution.id not in self._open:
            trigger = self._offset_of(event.trigger)
            if trigger is not None and trigger < self._reacting_from:
                self._reopened(event)

    def _reopened(self, started: BehaviorStarted) -> Execution | None:
        """Run an execution again up to its first await, from what BehaviorStarted recorded; its events are there."""
        recorded = started.meta.execution
        assert recorded is not None, "the rules ask for it"
        behavior = self.registrations.loaded(recorded.behavior, recorded.version)
        if behavior is None:
            self.foreign_executions.setdefault(recorded.behavior, []).append(recorded.id)
            return None
        offset = self._offset_of(started.trigger)
        assert offset is not None, "the rules ask for the trigger"
        trigger = event_of(self._record_at(offset), self.graph)
        assert trigger is not None, "a trigger is an event"
        identity = Identity(
            started.trigger, recorded.behavior, recorded.version, recorded.handler, tuple(recorded.match)
        )
        inputs = Inputs.recalled(started.inputs, self.blobs)
        execution = Execution(identity, behavior, given_from(inputs, trigger), self._pack.types)
        execution.start(trigger.meta.occurred_at)
        if not execution.ended:
            self._open[identity.id] = execution
        return execution

    def _answer(self, event: Event, verdict: Verdict, offset: int) -> tuple[str, str, Answer | Refusal] | None:
        """Which execution waits for the record, at which path, and what it says."""
        if is_waited_for(event) and verdict.kind == "void":
            execution = event.meta.execution
            if execution is None or not self.took_its_id(event, offset):
                return None
            return execution.id, execution.path, Refusal(verdict.reason, verdict.detail)
        if verdict.kind != "valid":
            return None
        return answer_in(event, self.graph, self.blobs)

    def _ended_by(self, event: Event, verdict: Verdict) -> str | None:
        """The execution that a valid event ends, whatever it waits for."""
        if verdict.kind != "valid":
            return None
        if isinstance(event, ExecutionCancelled):
            return event.execution_id
        if isinstance(event, BehaviorCompleted | BehaviorFailed) and event.meta.execution is not None:
            return event.meta.execution.id
        return None

    def took_its_id(self, event: Event, offset: int) -> bool:
        """Whether the event at an offset that was folded took its id: it counts, or came at the wrong time."""
        return self._offset_of(event.meta.event_id) == offset

    def is_taken(self, event_id: str) -> bool:
        """Whether some event has taken an id, so that nothing more can be said under it."""
        return self._offset_of(event_id) is not None

    def _offset_of(self, event_id: str) -> int | None:
        row = self.graph.node("Identity", event_id)
        return None if row is None else number(row, "offset")
