"""Strict replay: runs every execution of a log again and compares all that it read, asked for and emitted.

Answers, timers, events from outside and the log's order are inputs; nothing else is. No model or tool is called. What a
behavior makes of the same inputs must be what is on the log, field by field; where it isn't, the first difference tells
the offset and the field.

A record is compared unless its execution is of code that this process doesn't have: a behavior whose code has changed
since is told as changed.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from forktrail_behaviors.answers import answer_text
from forktrail_behaviors.context import GRAPH_QUERY
from forktrail_behaviors.log import Records
from forktrail_behaviors.output import Output
from forktrail_behaviors.queries import QueryAnswer
from forktrail_behaviors.reactor import START, Reaction, Reactor
from forktrail_behaviors.registrations import Registered
from forktrail_projectors import merkle
from forktrail_projectors.rules.context import number, text
from forktrail_schemas.events import ToolResponded
from forktrail_schemas.events.base import Event

NOTHING = "nothing"


@dataclass(frozen=True)
class Divergence:
    """Where a run and its replay part.

    Attributes:
        offset: of the record that differs; of the last one where something is missing from the log.
        event: its type.
        field: dotted path of what differs; "event" where there is an event on one side alone.
        expected: what the replay makes, as JSON.
        found: what the log holds, as JSON.
    """

    offset: int
    event_id: str
    event: str
    behavior: str
    execution: str
    field: str
    expected: str
    found: str


@dataclass
class Replayed:
    """What a replay came to.

    Attributes:
        next_offset: how far it went.
        executions: how many were run again.
        compared: how many events, by type.
        queries: how many answers of the graph were made again.
        unwritten: what the replay makes that the log doesn't hold yet, at its end: the run was stopped there.
        changed: behaviors registered with other code than is loaded, and how many events of theirs were left out.
    """

    next_offset: int = 0
    executions: int = 0
    compared: Counter[str] = field(default_factory=Counter)
    queries: int = 0
    unwritten: int = 0
    changed: dict[Registered, int] = field(default_factory=dict)
    divergences: list[Divergence] = field(default_factory=list)
    state_digest: str = ""
    log_root: str = ""

    @property
    def events(self) -> int:
        """How many events were compared."""
        return self.compared.total()


class _Comparison:
    """One replay under way."""

    def __init__(self, run: str, reactor: Reactor, start: int) -> None:
        self.replayed = Replayed()
        self._run = run
        self._reactor = reactor
        self._start = start
        # What the replay made and the log hasn't shown yet, each with its place among all that was made.
        self._owed: dict[str, tuple[int, Output]] = {}
        self._queries: dict[str, QueryAnswer] = {}
        self._made = 0
        self._last_seen = -1

    def take(self, reaction: Reaction, offset: int) -> Iterator[Divergence]:
        """Compare a record with what was made for it, and take in what it makes."""
        event, verdict = reaction.event, reaction.verdict
        counts = event is not None and verdict.kind in ("valid", "void") and self._took_its_id(event, offset)
        if event is not None and counts and event.meta.execution is not None:
            yield from self._compared(event, offset)
        if isinstance(event, ToolResponded) and verdict.kind == "valid":
            yield from self._query(event, offset)
        for output in reaction.outputs:
            self._owed[output.event_id] = (self._made, output)
            self._made += 1
            self.replayed.executions += output.draft.path == START
        self._queries.update((answer.call_id, answer) for answer in reaction.queries)

    def left(self, offset: int) -> Iterator[Divergence]:
        """What is missing from the log, though what came after it is there; the rest isn't written yet."""
        for place, output in self._owed.values():
            if place > self._last_seen:
                self.replayed.unwritten += 1
                continue
            event = output.event(self._run, 1)
            yield _divergence(event, offset, "event", event.TYPE, NOTHING)

    def _compared(self, event: Event, offset: int) -> Iterator[Divergence]:
        execution = event.meta.execution
        assert execution is not None, "that is asked before"
        if self._reactor.registrations.loaded(execution.behavior, execution.version) is None:
            self._changed(execution.behavior, execution.version)
            return
        place, output = self._owed.pop(event.meta.event_id, (-1, None))
        if output is None:
            if self._since(event) >= self._start:
                yield _divergence(event, offset, "event", NOTHING, event.TYPE)
            return
        self._last_seen = max(self._last_seen, place)
        self.replayed.compared[event.TYPE.rpartition(".")[2]] += 1
        made = output.event(self._run, getattr(event, "epoch", 1))
        if made != event:
            dumped = made.model_dump(mode="json"), event.model_dump(mode="json")
            # Null and nothing said read alike.
            path, expected, found = next(_differences(*dumped, ""), ("event", *map(str, dumped)))
            yield _divergence(event, offset, path, expected, found)

    def _query(self, event: ToolResponded, offset: int) -> Iterator[Divergence]:
        """Compare the graph's recorded answer with the one that it gives now."""
        call = self._reactor.graph.node("Call", event.call_id)
        if call is None or call["name"] != GRAPH_QUERY:
            return
        made = self._queries.pop(event.call_id, None)
        if made is None:
            return
        self.replayed.queries += 1
        told = (event.outcome, answer_text(event, self._reactor.blobs))
        for name, expected, found in zip(("outcome", "answer"), (made.outcome, made.answer), told, strict=True):
            if expected != found:
                yield _divergence(event, offset, name, expected, found)
                return

    def _since(self, event: Event) -> int:
        """The offset of what an event follows from: its trigger, or the answer that resumed its execution."""
        execution = event.meta.execution
        assert execution is not None, "that is asked before"
        row = self._reactor.graph.node("Execution", execution.id)
        cause = event.meta.causes[0] if event.meta.causes else ""
        started = self._reactor.graph.node("Identity", cause)
        if row is not None and started is not None and row["created_event"] == cause:
            started = self._reactor.graph.node("Identity", text(row, "trigger"))
        return -1 if started is None else number(started, "offset")

    def _changed(self, behavior: str, version: str) -> None:
        for registered in self._reactor.registrations.all():
            if (registered.name, registered.version) == (behavior, version):
                self.replayed.changed[registered] = self.replayed.changed.get(registered, 0) + 1

    def _took_its_id(self, event: Event, offset: int) -> bool:
        row = self._reactor.graph.node("Identity", event.meta.event_id)
        return row is not None and row["offset"] == offset


def replay(run: str, log: Records, reactor: Reactor, end: int, *, start: int = 0, strict: bool = True) -> Replayed:
    """Replay the records [start, end) of a run.

    Args:
        reactor: stands before the first record.
        start: records before it are folded, and executions that are open there go on; they aren't compared.
        strict: stop at the first divergence; otherwise go on with what the log holds, and tell all.

    Raises:
        LogUnavailable: Kafka stopped answering.
        Corruption: a recorded input or answer is missing or altered.
    """
    for batch in log.read(0, start):
        for record in batch:
            reactor.remember(record)
    reactor.go_on()
    comparison = _Comparison(run, reactor, start)
    replayed = comparison.replayed
    for divergence in _divergences(comparison, log, reactor, start, end):
        replayed.divergences.append(divergence)
        if strict:
            break
    cursor = reactor.projector.cursor
    replayed.next_offset = cursor.next_offset
    replayed.state_digest = reactor.projector.state_digest
    replayed.log_root = merkle.root(cursor.frontier)
    for registered in reactor.registrations.missing():
        replayed.changed.setdefault(registered, 0)
    return replayed


def _divergences(comparison: _Comparison, log: Records, reactor: Reactor, start: int, end: int) -> Iterator[Divergence]:
    for batch in log.read(start, end):
        for record in batch:
            yield from comparison.take(reactor.react(record), record.offset)
    yield from comparison.left(end - 1)


def _differences(made: object, found: object, path: str) -> Iterator[tuple[str, object, object]]:
    """Where two values differ, by dotted paths; into texts that hold JSON as well."""
    if isinstance(made, str) and isinstance(found, str) and made != found:
        inner = _as_json(made), _as_json(found)
        if all(isinstance(one, dict | list) for one in inner) and inner[0] != inner[1]:
            made, found = inner
    if isinstance(made, Mapping) and isinstance(found, Mapping):
        for name in [*made, *(name for name in found if name not in made)]:
            yield from _differences(made.get(name), found.get(name), f"{path}.{name}" if path else str(name))
    elif isinstance(made, list) and isinstance(found, list) and len(made) == len(found):
        for place, (one, other) in enumerate(zip(made, found, strict=True)):
            yield from _differences(one, other, f"{path}.{place}")
    elif made != found:
        yield path, made, found


def _as_json(value: str) -> object:
    try:
        return json.loads(value)
    except ValueError:
        return None


def _divergence(event: Event, offset: int, path: str, expected: object, found: object) -> Divergence:
    execution = event.meta.execution
    return Divergence(
        offset=offset,
        event_id=event.meta.event_id,
        event=event.TYPE.rpartition(".")[2],
        behavior=execution.behavior if execution else event.meta.actor.id,
        execution=execution.id if execution else "",
        field=path,
        expected=_shown(expected),
        found=_shown(found),
    )


def _shown(value: object) -> str:
    return NOTHING if value is NOTHING else json.dumps(value, ensure_ascii=False)
