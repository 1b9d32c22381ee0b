"""The events that the benchmarks write and fold: an investigation by many, valid throughout, the same for a seed.

    for record in bulk(100_000): ...    # LogRecord: encoded, with headers, at offsets from 0 on

Every stream starts with a preamble that its admin signs: RunOpened, KeyRegistered for an operator, a reviewer and a
runner, and TestRegistered for each test (one for every 200 events; half of them require capabilities). Then come:

- `BULK`: 90 % ReportFiled on tests at random, 10 % GoalSet, none of them signed. In 100,000 events 250 reports open a
  case, half of the rest find that their test has one, and half that its support is missing.
- `MIXED`: in 5 % of the steps (where a case is open) a person or the runner decides on it instead, signed:
  ApprovalDecided, TestStarted, ObservationRecorded with its signed receipt, ReviewDecided. Findings follow, and with
  them support for tests that require it. Every 20,000 events the revision advances, and all tests may be reported anew.

An unsigned event's value has about 210 bytes, a nested `meta`, and 1.2 causes: mostly among the few hundred events
before it, one in twenty from anywhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from benchmarks.attempts import Registered
from benchmarks.author import RUN, Draft
from benchmarks.investigation import Investigation
from forktrail_projectors.record import LogRecord
from forktrail_schemas.headers import headers_of
from forktrail_schemas.wire import build, encode

EVENTS_PER_TEST = 200
TESTS_MIN = 10
CAPABILITIES = 40
EVENTS_PER_REVISION = 20_000
_SURFACES = ("edge", "billing", "search", "session", "export", "webhook", "admin", "ledger")
_WEAKNESSES = ("routing", "tenant", "replay", "redirect", "header", "quota", "token", "cache")


@dataclass(frozen=True)
class Mix:
    """What a stream is made of after its preamble, in shares of 1; the rest are reports."""

    name: str
    goals: float
    decisions: float


BULK = Mix("bulk", goals=0.1, decisions=0.0)
MIXED = Mix("mixed", goals=0.1, decisions=0.05)


def bulk(count: int) -> Iterator[LogRecord]:
    """So many records of the bulk mix, preamble included."""
    return Workload(BULK, tests=tests_for(count)).records(count)


def mixed(count: int) -> Iterator[LogRecord]:
    """So many records of the mix with signed decisions, preamble included."""
    return Workload(MIXED, tests=tests_for(count)).records(count)


def tests_for(count: int) -> int:
    """How many tests a stream of so many events registers."""
    return max(TESTS_MIN, count // EVENTS_PER_TEST)


def record_of(draft: Draft, offset: int) -> LogRecord:
    """The record that an event is at an offset of its run."""
    event = build(draft.cls, draft.fields)
    value = encode(event)
    signature = draft.key.sign(value) if draft.key else None
    headers: Iterable[tuple[str, bytes | None]] = headers_of(event, signature)
    return LogRecord(offset, event.meta.occurred_at // 1000, event.subject_id.encode(), value, tuple(headers))


class Workload:
    """An endless stream of events; the first n are the same, however many are taken.

    Attributes:
        story: what was told so far, with its tally.
    """

    def __init__(self, mix: Mix, *, tests: int, run: str = RUN, seed: int = 1) -> None:
        self.story = Investigation(run, seed)
        self._mix = mix
        self._tests = tests

    @property
    def preamble_events(self) -> int:
        """How many events open the stream, each of them signed."""
        return 4 + self._tests

    def records(self, count: int) -> Iterator[LogRecord]:
        """The next records; offsets go on from the last one taken."""
        for offset, draft in enumerate(self.drafts(count), self.story.author.events):
            yield record_of(draft, offset)

    def drafts(self, count: int) -> Iterator[Draft]:
        """The next events, not built yet."""
        for _ in range(count):
            yield self._next()

    def _next(self) -> Draft:
        story, author = self.story, self.story.author
        offset = author.events
        if offset == 0:
            return story.open()
        if offset <= 3:
            return story.register_key((author.operator, author.reviewer, author.runner)[offset - 1])
        if offset < self.preamble_events:
            return story.register(self._test(offset - 4))
        if self._mix.decisions and offset % EVENTS_PER_REVISION == 0:
            return story.advance()
        draw = author.chance.random()
        attempt = story.attempts.take_undecided(author.chance) if draw < self._mix.decisions else None
        if attempt is not None:
            return self.story.carry_on(attempt)
        return story.new_goal() if draw > 1 - self._mix.goals else story.report(author.chance.choice(story.tests))

    def _test(self, number: int) -> Registered:
        """Even tests require nothing and enable a capability; odd ones require one or two, and half enable one."""
        chance = self.story.author.chance
        surface = chance.choice(_SURFACES)
        names = [f"capability-{chance.randrange(CAPABILITIES):02d}" for _ in range(2)]
        if number % 2 == 0:
            requires, enables = [], names[:1]
        else:
            requires = names[: chance.choice((1, 1, 2))]
            enables = [f"reach-{number}"] if number % 4 == 1 else []
        return Registered(
            id=f"{surface}-{chance.choice(_WEAKNESSES)}-{number:04d}",
            asset=f"{surface}-service",
            requires=tuple(sorted(set(requires))),
            enables=tuple(enables),
            impact=chance.randrange(101),
        )
