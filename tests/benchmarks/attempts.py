"""A small model of an investigation, apart from the fold: what each report must come to, and which cases are open.

It follows the rules in DESIGN.md and none of the fold's code, so that its counts check the fold's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field
from random import Random


@dataclass(frozen=True)
class Registered:
    """A registered test."""

    id: str
    asset: str
    requires: tuple[str, ...]
    enables: tuple[str, ...]
    impact: int


@dataclass
class Attempt:
    """A case on its way through approval, run, observation and review.

    Attributes:
        cause: id of the event that brought it where it is.
        status: "proposed", "approved", "running", "observed", or "settled" once nobody has to decide any more.
        approval_id: once it is approved.
        observation_id: once it is observed.
        outcome: once it is observed.
    """

    case_id: str
    test: Registered
    cause: str
    status: str = "proposed"
    approval_id: str = ""
    observation_id: str = ""
    outcome: str = ""


@dataclass
class Tally:
    """What the fold must have made of the events so far, every one of which is valid.

    Attributes:
        rows: how many rows a node table has; of those tables alone that are named here.
        reports: how many reports came to which outcome.
    """

    rows: Counter[str] = field(default_factory=Counter)
    reports: Counter[str] = field(default_factory=Counter)


class Attempts:
    """The attempts and findings of one run in its active revision."""

    def __init__(self) -> None:
        self.revision = 1
        self._provided: set[str] = set()
        self._standing: dict[str, Attempt] = {}
        self._undecided: list[Attempt] = []

    def report(self, test: Registered, case_id: str, event_id: str) -> str:
        """What a report of a test comes to; the case it would open is `case_id`."""
        if test.id in self._standing:
            return "case_exists"
        if not self._met(test.requires):
            return "support_missing"
        attempt = Attempt(case_id, test, cause=event_id)
        self._standing[test.id] = attempt
        self._undecided.append(attempt)
        return "case_opened"

    def take_undecided(self, chance: Random) -> Attempt | None:
        """One attempt that waits for somebody, at random; None where none does."""
        if not self._undecided:
            return None
        place = chance.randrange(len(self._undecided))
        self._undecided[place], self._undecided[-1] = self._undecided[-1], self._undecided[place]
        return self._undecided.pop()

    def put_back(self, attempt: Attempt) -> None:
        """Let an attempt wait for the next decision, unless it is settled."""
        if attempt.status != "settled":
            self._undecided.append(attempt)

    def establish(self, attempt: Attempt) -> None:
        """Count an accepted, reproduced attempt as a finding."""
        self._provided.update(attempt.test.enables)

    def advance(self) -> None:
        """Begin the next revision: nothing is found or attempted in it yet."""
        self.revision += 1
        self._provided.clear()
        self._standing.clear()
        self._undecided.clear()

    def _met(self, requires: Collection[str]) -> bool:
        return self._provided.issuperset(requires)
