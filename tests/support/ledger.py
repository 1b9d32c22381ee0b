"""What a log's valid events come to, kept in plain Python: another telling of the rules, to hold the graph against.

It takes the fold's word for which events are valid, and works out for itself what follows from them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from forktrail_projectors.record import LogRecord, Verdict
from forktrail_schemas import events
from forktrail_schemas.events.base import Event
from forktrail_schemas.ids import derived_id
from forktrail_schemas.wire import build, decode
from support.foreign import later_goal

LATER_GOAL = later_goal()


@dataclass
class Case:
    """One attempt, with whatever became of it."""

    test: str
    revision: str
    rests_on: frozenset[str]
    depth: int
    decision: events.ApprovalDecided | None = None
    started: events.TestStarted | None = None
    observed: events.ObservationRecorded | None = None
    reviewed: events.ReviewDecided | None = None
    retried: bool = False
    one_person_may: bool = False  # whether the run let one person approve and review, when it was reviewed


@dataclass
class Finding:
    """An accepted review of a reproduced observation."""

    test: str
    revision: str
    depth: int
    withdrawn: bool = False


@dataclass
class Ledger:
    """What has come of the events so far; `add` them in order."""

    revision: str = ""
    one_person_may: bool = False
    tests: dict[str, events.TestRegistered] = field(default_factory=dict)
    cases: dict[str, Case] = field(default_factory=dict)
    findings: dict[str, Finding] = field(default_factory=dict)
    limits: dict[str, int | None] = field(default_factory=dict)
    last_opened: int = -1  # offset of the last event that opened a case
    calls: Counter[str] = field(default_factory=Counter)  # what calls have used, by their budgets; of time microseconds

    def add(self, record: LogRecord, verdict: Verdict) -> None:
        """Take in a record; only a valid one changes anything."""
        if verdict.kind != "valid":
            return
        event = event_of(record)
        if isinstance(event, events.RunOpened):
            self.revision = event.revision
        elif isinstance(event, events.RevisionAdvanced):
            self.revision = event.to_revision
        elif isinstance(event, events.SettingChanged):
            self.one_person_may = event.value == "true"
        elif isinstance(event, events.BudgetSet):
            self.limits[event.name] = event.limit
        elif isinstance(event, events.TestRegistered):
            self.tests[event.test_id] = event
        elif isinstance(event, events.ModelRequested | events.ToolRequested):
            self.calls.update(dict.fromkeys(self.with_call(event), 1))
        elif isinstance(event, events.ModelResponded | events.ToolResponded):
            self.calls["cost-micros"] += event.cost_micros or 0
            self.calls["micros"] += event.duration_micros or 0
            if isinstance(event, events.ModelResponded):
                self.calls["tokens"] += (event.input_tokens or 0) + (event.output_tokens or 0)
        else:
            self._add_evidence(event, record.offset)

    def _add_evidence(self, event: Event, offset: int) -> None:
        if isinstance(event, events.ReportFiled):
            if self.opens(event.test_id):
                self._open(event, offset, event.test_id, self.support(event.test_id))
        elif isinstance(event, events.TestProposed):
            self._open(event, offset, event.test_id, frozenset(event.finding_ids))
        elif isinstance(event, events.ApprovalDecided):
            if event.subject.kind == "request":
                return  # an execution asked for it
            self.cases[event.subject.id].decision = event
        elif isinstance(event, events.TestStarted):
            self.cases[event.case_id].started = event
        elif isinstance(event, events.ObservationRecorded):
            self.cases[event.case_id].observed = event
        elif isinstance(event, events.ReviewDecided):
            self._review(event)
        elif isinstance(event, events.RetryRequested):
            self.cases[event.case_id].retried = True
        elif isinstance(event, events.FindingWithdrawn):
            self.findings[event.finding_id].withdrawn = True

    def _open(self, event: Event, offset: int, test: str, rests_on: frozenset[str]) -> None:
        case_id = derived_id("case", event.meta.event_id)
        self.last_opened = offset
        self.cases[case_id] = Case(test, self.revision, rests_on, self.depth(rests_on))

    def _review(self, event: events.ReviewDecided) -> None:
        case = self.cases[event.case_id]
        case.reviewed, case.one_person_may = event, self.one_person_may
        if event.decision == "accept" and case.observed is not None and case.observed.outcome == "reproduced":
            finding_id = derived_id("finding", event.meta.event_id)
            self.findings[finding_id] = Finding(case.test, case.revision, case.depth)

    # What follows.

    def current(self) -> dict[str, Finding]:
        """The findings that count now."""
        return {id: f for id, f in self.findings.items() if f.revision == self.revision and not f.withdrawn}

    def provided(self) -> set[str]:
        """The capabilities that a current finding provides."""
        return {capability for finding in self.current().values() for capability in self.tests[finding.test].enables}

    def support(self, test: str) -> frozenset[str]:
        """The current findings that provide something the test requires."""
        required = set(self.tests[test].requires)
        return frozenset(id for id, f in self.current().items() if required & set(self.tests[f.test].enables))

    def depth(self, findings: frozenset[str]) -> int:
        """How deep a case stands that rests on these."""
        return 1 + max(self.findings[id].depth for id in findings) if findings else 0

    def standing(self, test: str) -> list[str]:
        """The attempts that stand in the way of another in this revision."""
        cases = self.cases.items()
        return [id for id, case in cases if (case.test, case.revision) == (test, self.revision) and not case.retried]

    def opens(self, test: str) -> bool:
        """Whether a report would open a case."""
        met = set(self.tests[test].requires) <= self.provided()
        return met and not self.standing(test) and self.fits(self.with_case(self.support(test)))

    def fits(self, amounts: Mapping[str, int]) -> bool:
        """Whether these amounts are all within their budgets."""
        return all(self._within(budget, amount) for budget, amount in amounts.items())

    def with_case(self, rests_on: frozenset[str]) -> dict[str, int]:
        """What one more case would bring the budgets to."""
        return {"cases": len(self.cases) + 1, "finding-depth": self.depth(rests_on)}

    def with_call(self, event: events.ModelRequested | events.ToolRequested) -> dict[str, int]:
        """What one more call would bring the budgets to."""
        if event.name == "graph.query":
            return {}
        name = "model-calls" if isinstance(event, events.ModelRequested) else "tool-calls"
        return {name: self.calls[name] + 1}

    def spent(self, event: Event) -> dict[str, int]:
        """What is used, before a call, of the budgets that calls may pass and of which something must be left."""
        if not isinstance(event, events.ModelRequested | events.ToolRequested) or not self.with_call(event):
            return {}
        spent = {"cost-micros": self.calls["cost-micros"], "seconds": self.calls["micros"] // 1_000_000}
        return spent | ({"tokens": self.calls["tokens"]} if isinstance(event, events.ModelRequested) else {})

    def with_start(self, case_id: str) -> dict[str, int]:
        """What one more start would bring the budgets to."""
        return {"http-requests": self.requests() + self.tests[self.cases[case_id].test].requests_max}

    def requests(self) -> int:
        """The requests that started cases sent or may still send; nobody knows of interrupted ones."""
        total = 0
        for case in self.cases.values():
            if case.started is not None:
                seen = case.observed
                unknown = seen is None or seen.interrupted
                total += self.tests[case.test].requests_max if unknown or seen is None else seen.requests
        return total

    def _within(self, budget: str, amount: int) -> bool:
        limit = self.limits.get(budget)
        return limit is None or amount <= limit


def event_of(record: LogRecord) -> Event:
    """The event in a record that the fold could read."""
    value = record.value or b""
    if LATER_GOAL.wrote(value):
        fields = LATER_GOAL.fields(value)
        return build(events.GoalSet, {name: fields[name] for name in ("meta", "text")})
    event = decode(value)
    assert isinstance(event, Event)
    return event
