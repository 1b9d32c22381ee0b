"""What a producer of the chaos run has to send: an endless investigation, each event with the verdict it must get.

Reports, goals, and people's and the runner's signed decisions, which walk cases to findings; every now and then the
revision advances. A few events are wrong on purpose. Verdicts follow from DESIGN.md and from a model that is no part of
the fold (benchmarks/attempts.py).
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from benchmarks.attempts import Attempt, Registered
from benchmarks.author import Draft, Signer
from benchmarks.investigation import Investigation
from forktrail_projectors.record import VerdictKind
from forktrail_schemas import events
from forktrail_schemas.signatures import SigningKey
from forktrail_schemas.wire import build, encode

TESTS = 150
EVENTS_PER_REVISION = 1_500
DECISIONS, GOALS, WRONG = 0.45, 0.15, 0.03
_UNKNOWN_CASE = "case-00000000000000000000"
_END = b'{"end":true}\n'


class Expected(NamedTuple):
    """The verdict that an event must get.

    Attributes:
        kind: of its first record.
        reason: of every one of its records.
        again: of further records with the same bytes: a duplicate, unless it is refused for what it is.
    """

    kind: VerdictKind = "valid"
    reason: str = ""
    again: VerdictKind = "duplicate"


@dataclass(frozen=True)
class Planned:
    """An event to send, by its place in the plan."""

    number: int
    value: bytes
    signer: str | None
    expected: Expected

    def to_json(self) -> bytes:
        """One line."""
        value = base64.b64encode(self.value).decode()
        fields = {"number": self.number, "value": value, "signer": self.signer, "expected": list(self.expected)}
        return orjson.dumps(fields) + b"\n"

    @staticmethod
    def from_json(line: bytes) -> Planned:
        """What `to_json` wrote."""
        found: dict[str, Any] = orjson.loads(line)
        value = base64.b64decode(found["value"])
        return Planned(found["number"], value, found["signer"], Expected(*found["expected"]))


def signing_keys() -> dict[str, SigningKey]:
    """The key of each role; the same in every run."""
    return {role: signer.key for role, signer in _signers(Investigation("any", 0)).items()}


class Plan:
    """The events of one run; the same for the same seed, however many are taken."""

    def __init__(self, run: str, seed: int) -> None:
        self._story = Investigation(run, seed)
        self._roles = {signer.key.key_id: role for role, signer in _signers(self._story).items()}
        self._reviewed: list[Attempt] = []

    def take(self, count: int) -> Iterator[Planned]:
        """The next events."""
        for _ in range(count):
            number = self._story.author.events
            draft, expected = self._next(number)
            signer = self._roles[draft.key.key_id] if draft.key else None
            yield Planned(number, encode(build(draft.cls, draft.fields)), signer, expected)

    def _next(self, number: int) -> tuple[Draft, Expected]:
        story, author = self._story, self._story.author
        if number == 0:
            return story.open(), Expected()
        if number <= 3:
            return story.register_key((author.operator, author.reviewer, author.runner)[number - 1]), Expected()
        if number < 4 + TESTS:
            return story.register(self._test(number - 4)), Expected()
        if number % EVENTS_PER_REVISION == 0:
            return story.advance(), Expected()
        draw = author.chance.random()
        if draw < WRONG:
            return self._wrong()
        attempt = story.attempts.take_undecided(author.chance) if draw < WRONG + DECISIONS else None
        if attempt is not None:
            if attempt.status == "observed":
                self._reviewed.append(attempt)
            return story.carry_on(attempt), Expected()
        if draw > 1 - GOALS:
            return story.new_goal(), Expected()
        return story.report(author.chance.choice(story.tests)), Expected()

    def _test(self, number: int) -> Registered:
        """Every second test requires what an earlier one enables."""
        enables = (f"capability-{number // 2}",) if number % 2 == 0 else ()
        requires = () if number % 2 == 0 else (f"capability-{self._story.author.chance.randrange(number // 2 + 1)}",)
        return Registered(f"test-{number:03d}", f"service-{number % 7}", requires, enables, impact=number % 101)

    def _wrong(self) -> tuple[Draft, Expected]:
        """An event that the rules refuse: too late, about nothing, or by the wrong hand."""
        author = self._story.author
        draw = author.chance.randrange(3)
        if draw == 0 and self._reviewed:
            attempt = author.chance.choice(self._reviewed)
            fields = {"case_id": attempt.case_id, "observation_id": attempt.observation_id}
            second = author.signed(events.ReviewDecided, author.reviewer, **fields, decision="reject", note="no, wait")
            return second, Expected("void", "already_reviewed")
        by, expected = author.operator, Expected("void", "unknown_case")
        if draw == 1:
            by, expected = author.reviewer, Expected("void", "role_missing", again="void")
        subject = {"kind": "case", "id": _UNKNOWN_CASE}
        return author.signed(events.ApprovalDecided, by, subject=subject, decision="approve", reason=""), expected


class PlanFile:
    """A plan as a file that grows ahead of the producer that reads it.

    Attributes:
        length: how many events it has.
        ended: whether no more will come.
    """

    def __init__(self, path: Path, plan: Plan) -> None:
        """Begin an empty file."""
        self.path = path
        self.path.touch()
        self._plan = plan
        self.length = 0
        self.ended = False

    def extend(self, count: int) -> None:
        """Append the next events."""
        with self.path.open("ab") as file:
            file.write(b"".join(planned.to_json() for planned in self._plan.take(count)))
        self.length += count

    def end(self) -> None:
        """Say that no more will come."""
        with self.path.open("ab") as file:
            file.write(_END)
        self.ended = True


class PlanReader:
    """Reads a plan file from an event on, as it grows."""

    def __init__(self, path: Path, number: int) -> None:
        self._file = path.open("rb")
        self._rest = b""
        self.ended = False
        for _ in range(number):
            self._file.readline()

    def take(self, count: int) -> list[Planned]:
        """Up to so many of the next events, as far as the file has them."""
        found: list[Planned] = []
        while len(found) < count and not self.ended:
            line = self._rest + self._file.readline()
            if not line.endswith(b"\n"):  # the rest of it isn't written yet
                self._rest = line
                break
            self._rest = b""
            if line == _END:
                self.ended = True
            else:
                found.append(Planned.from_json(line))
        return found


def _signers(story: Investigation) -> dict[str, Signer]:
    author = story.author
    return {signer.role: signer for signer in (author.admin, author.operator, author.reviewer, author.runner)}
