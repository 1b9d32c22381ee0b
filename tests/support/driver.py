"""A long story that chance tells: right events and every kind of wrong one, the same for the same seed."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

from forktrail_projectors.record import LogRecord
from forktrail_projectors.state import NodeKey, Row
from forktrail_schemas import events
from forktrail_schemas.events import RunAnnounced
from forktrail_schemas.wire import build, encode
from support.refused_authority import with_header
from support.refused_evidence import NO_CASE
from support.story import ADMIN, HOLDERS, OPERATOR, REVIEWER, RUNNER, STRANGER, Story

TESTS = [f"test-{number}" for number in range(30)]
CAPABILITIES = [f"capability-{number}" for number in range(4)]
REVISION_EVERY = 100


class Driver:
    """Drives a story, one event a step."""

    def __init__(self, seed: int, story: Story | None = None) -> None:
        self.story = story or Story()
        self._chance = random.Random(seed)
        self._revisions = 1
        # How often each is taken, in parts.
        self._steps: list[tuple[int, Callable[[], object]]] = [
            (12, self._register),
            (14, self._report),
            (10, self._propose),
            (12, self._decide),
            (12, self._start),
            (12, self._observe),
            (12, self._review),
            (3, self._retry),
            (2, self._withdraw),
            (2, self._budget),
            (1, self._set),
            (2, self._goal),
            (2, self._keys),
            (4, self._unsigned),
            (6, self._copy),
            (4, self._reuse_id),
            (6, self._unreadable),
            (2, self._lie_in_a_header),
            (2, self._stray),
        ]

    def tell(self, steps: int) -> Story:
        """Open the run and take that many steps."""
        self.story.open()
        weights = [weight for weight, _ in self._steps]
        for step in range(1, steps + 1):
            if step % REVISION_EVERY == 0:
                self._revisions += 1
                self.story.advance(f"r{self._revisions}")
            else:
                self._chance.choices([move for _, move in self._steps], weights)[0]()
        return self.story

    def _rows(self, table: str) -> list[Row]:
        keys = (key for key in self.story.rows() if isinstance(key, NodeKey) and key.table == table)
        return [self.story.row(*key) for key in sorted(keys)]

    def _a_case(self, *statuses: str) -> str | None:
        """The id of a case, mostly of one in such a state; None where there is none."""
        cases = self._rows("Case")
        if self._chance.random() < 0.9:
            cases = [row for row in cases if row["status"] in statuses]
        return str(self._chance.choice(cases)["id"]) if cases else None

    def _register(self) -> None:
        chance = self._chance
        requires = chance.sample(CAPABILITIES, chance.choice([0, 0, 1, 2]))
        enables = chance.sample(CAPABILITIES, chance.choice([0, 1, 1, 2]))
        impact, requests_max = chance.randrange(101), chance.randrange(4)
        self.story.register(
            chance.choice(TESTS), requires=requires, enables=enables, impact=impact, requests_max=requests_max
        )

    def _report(self) -> None:
        causes = [self._an_id() for _ in range(self._chance.randrange(3))]
        test_id = self._chance.choice([*TESTS, "nowhere"])
        self.story.tell(self.story.event(events.ReportFiled, causes=causes, test_id=test_id, summary="süß 🙂"))

    def _propose(self) -> None:
        chance = self._chance
        findings = [str(row["id"]) for row in self._rows("Finding")]
        tests = [str(row["id"]) for row in self._rows("TestCase")] or TESTS
        chosen = chance.sample(findings, min(len(findings), chance.randrange(4)))
        as_of = chance.choice([None, None, len(self.story.records), len(self.story.records) // 2])
        self.story.propose(chance.choice(tests), chosen, as_of)

    def _decide(self) -> None:
        decision = "approve" if self._chance.random() < 0.85 else "deny"
        self.story.decide(self._a_case("proposed") or NO_CASE, decision)

    def _start(self) -> None:
        case_id = self._a_case("approved")
        if case_id is not None:
            self.story.start(case_id)

    def _observe(self) -> None:
        case_id = self._a_case("running")
        if case_id is None:
            return
        outcome = self._chance.choice(["reproduced", "reproduced", "not_reproduced", "inconclusive"])
        event = self.story.observation(case_id, outcome)
        if self._chance.random() < 0.2:
            event = event.model_copy(update={"revision": "r0"})
        elif self._chance.random() < 0.2:
            event = event.model_copy(update={"receipt": "{}"})
        self.story.tell(event, RUNNER)

    def _review(self) -> None:
        case_id = self._a_case("observed")
        if case_id is not None:
            self.story.review(case_id, self._chance.choice(["accept", "accept", "accept", "reject"]))

    def _retry(self) -> None:
        self.story.retry(self._a_case("observed", "accepted") or NO_CASE)

    def _withdraw(self) -> None:
        findings = [str(row["id"]) for row in self._rows("Finding")]
        self.story.withdraw(self._chance.choice(findings) if findings else "finding-00000000000000000000")

    def _budget(self) -> None:
        name = self._chance.choice(["cases", "http-requests", "finding-depth", "coffee"])
        self.story.budget(name, self._chance.choice([None, None, None, 3, 20]))

    def _set(self) -> None:
        self.story.set("same-person-may-review", self._chance.choice(["true", "false", "maybe"]))

    def _goal(self) -> None:
        self.story.tell(self.story.event(events.GoalSet, causes=[self._an_id()], text="go on"))

    def _keys(self) -> None:
        if self._chance.random() < 0.5:
            self.story.add_key(STRANGER, "runner")
        else:
            self.story.revoke(STRANGER)

    def _unsigned(self) -> None:
        subject = {"kind": "case", "id": self._a_case("proposed") or NO_CASE}
        event = self.story.event(events.ApprovalDecided, "olga", subject=subject, decision="approve", reason="")
        self.story.tell(event, self._chance.choice([None, REVIEWER, STRANGER, OPERATOR, ADMIN]))

    def _a_record(self) -> LogRecord:
        return replace(self._chance.choice(self.story.records), offset=len(self.story.records))

    def _an_id(self) -> str:
        row = self.story.row("Event", self._chance.randrange(len(self.story.records)))
        return str(row["id"] or "00000000-0000-7000-8000-000000000000")

    def _copy(self) -> None:
        self.story.append(self._a_record())

    def _reuse_id(self) -> None:
        self.story.tell(self.story.event(events.GoalSet, event_id=self._an_id(), text=f"{self._chance.random()}"))

    def _unreadable(self) -> None:
        record = self._a_record()
        value = record.value or b"\x00"
        broken = [
            None,
            b"",
            self._chance.randbytes(30),
            value[: self._chance.randrange(len(value))],
            value + b"\x00",
            b"\xc3\x01" + self._chance.randbytes(60),
            value[:10] + self._chance.randbytes(len(value)),
        ]
        self.story.append(replace(record, value=self._chance.choice(broken)))

    def _lie_in_a_header(self) -> None:
        event = self.story.event(events.GoalSet, HOLDERS[ADMIN.key_id], text="")
        self.story.append(with_header(self.story.record(event, ADMIN), {"ce_type": b"forktrail.Other"}))

    def _stray(self) -> None:
        """An event of another run, or a record that is no event."""
        if self._chance.random() < 0.5:
            foreign = Story("elsewhere").event(events.GoalSet, text="")
            self.story.append(self.story.record(foreign))
        else:
            fields = {"run": "r", "topic": "t", "goal": "", "status": "open", "opened_at": len(self.story.records)}
            offset = len(self.story.records)
            self.story.append(LogRecord(offset, 0, None, encode(build(RunAnnounced, fields))))
