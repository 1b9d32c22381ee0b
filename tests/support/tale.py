"""Tells a list of moves as a log: looks at what it has come to so far, and writes the event that a move means there."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from forktrail_projectors.graph.protocol import Graph
from forktrail_projectors.receipts import Statement, sign_receipt
from forktrail_projectors.record import LogRecord, Verdict
from forktrail_projectors.rules.log import BUDGETS, CASES, EVENTS, FINDING_DEPTH, HTTP_REQUESTS
from forktrail_projectors.state import NodeKey, Row
from forktrail_schemas import events
from forktrail_schemas.catalog import schema_of
from forktrail_schemas.events.base import Event
from forktrail_schemas.events.shared import Meta
from forktrail_schemas.ids import derived_id
from forktrail_schemas.wire import build
from support.draft import Draft, pick
from support.flaws import flawed
from support.foreign import ForeignSchema, broken_goal, fields_of, later_goal, other_type
from support.moves import Move
from support.people import GUESTS, NOBODY, STAFF, Person, person_of
from support.refused_evidence import NO_CASE, NO_FINDING
from support.story import ADMIN, EVIDENCE, EVIDENCE_SHA256, Story
from support.tale_work import WorkSteps

# Tests stand in tiers, each of which enables what the next requires.
TIERS = 3
BROKEN = broken_goal()
FOREIGN = (later_goal(), other_type("Scanned"), BROKEN, other_type("Scanned", 1))
BUILT_IN = schema_of(events.ReportFiled)
EVIDENCE_BUDGETS = (CASES, HTTP_REQUESTS, FINDING_DEPTH)
OUTCOMES = (*["reproduced"] * 5, "not_reproduced", "inconclusive", "inconclusive")
LINES = ("", "look here", "süß, 世界 and 🙂")
TEXTS = (*LINES, 'it\'s "quoted"\n\\')
NEXT_STEP = {"proposed": "decide", "approved": "start", "running": "observe", "observed": "review"}


class Tale(Story):
    """A story told by moves.

    Attributes:
        verdicts: what the fold made of each record, as it was told.
        findings: ids of all findings, in the order they were made.
    """

    def __init__(self, moves: Iterable[Move] = (), graph: Graph | None = None, *, addresses: bool = True) -> None:
        """Tell the moves.

        Args:
            addresses: whether events may speak of offsets of their own log, or of its length.
        """
        super().__init__("tale", graph)
        self.verdicts: list[Verdict] = []
        self.findings: list[str] = []
        self._addresses = addresses
        self._tests: dict[str, tuple[set[str], set[str]]] = {}
        self._cases: list[str] = []
        self._people: list[Person] = []
        self._declared: list[ForeignSchema] = []
        self._revisions = 1
        self._steps: dict[str, Callable[[Move], Draft | LogRecord]] = {
            "open": self._open,
            "declare": self._declare,
            "foreign": self._foreign,
            "close": lambda move: self._by_admin(events.RunClosed, reason=TEXTS[move.a % 4]),
            "goal": lambda move: Draft(events.GoalSet, self._somebody(move.b), {"text": TEXTS[move.a % 4]}),
            "setting": self._setting,
            "budget": self._budget,
            "key": self._key,
            "revoke": self._revoke,
            "register": self._register,
            "report": self._report,
            "propose": self._propose,
            "go_on": self._go_on,
            "decide": lambda move: self._decide(self._a_case(move), move),
            "start": lambda move: self._start(self._a_case(move), move),
            "observe": lambda move: self._observe(self._a_case(move), move),
            "review": lambda move: self._review(self._a_case(move), move),
            "retry": self._retry,
            "withdraw": self._withdraw,
            "advance": self._advance,
            "copy": self._copy,
        }
        self._work = WorkSteps(self)
        self._steps |= self._work.steps
        for move in moves:
            self.take(move)

    def take(self, move: Move) -> Verdict:
        """Write what a move means here."""
        draft = self._steps[move.step](move)
        record = self._written(draft, move) if isinstance(draft, Draft) else draft
        verdict = self.append(replace(record, offset=len(self.records)))
        self.verdicts.append(verdict)
        if verdict.kind == "valid" and isinstance(draft, Draft):
            self._learn(draft, verdict)
        return verdict

    # What there is.

    def node(self, table: str, id: str) -> Row | None:
        """A row of the graph, if it is there."""
        key = NodeKey(table, id)
        return self.graph.nodes([key]).get(key)

    @property
    def _revision(self) -> str:
        run = self.node("Run", "run")
        return str(run["active_revision"]) if run else "r1"

    def _learn(self, draft: Draft, verdict: Verdict) -> None:
        """Remember what a valid event made."""
        self._work.learn(draft, verdict)
        fields = draft.fields
        if draft.cls is events.RunOpened:
            self._people.append(person_of(str(fields["admin_public_key"])))
        elif draft.cls is events.KeyRegistered:
            self._people.append(person_of(fields["public_key"]))
        elif draft.cls is events.TestRegistered:
            self._tests[fields["test_id"]] = (set(fields["requires"]), set(fields["enables"]))
        elif draft.cls is events.RevisionAdvanced:
            self._revisions += 1
        elif draft.cls is events.SchemaDeclared:
            self._declared.append(ForeignSchema(fields["text"]))
        for made, kind, table in ((self._cases, "case", "Case"), (self.findings, "finding", "Finding")):
            id = derived_id(kind, verdict.event_id)
            if self.node(table, id) is not None:
                made.append(id)

    def _a_case(self, move: Move) -> str:
        return pick(self._cases[::-1], move.a) or NO_CASE

    def _somebody(self, number: int) -> Person | None:
        """Mostly nobody: who may say what needs no signature, but may sign it."""
        return pick(self._people, number // 4) if number % 4 == 3 else None

    def in_role(self, role: str) -> Person | None:
        """Somebody with a registered key of the role, if there is one."""
        return next((person for person in self._people if role in person.roles), None)

    def _in_role(self, role: str, number: int) -> Person:
        """Somebody with a registered key of the role, mostly the first; else whom the role was meant for."""
        able = [person for person in self._people if role in person.roles]
        chosen = pick(able, number // 4) if number % 4 == 3 else pick(able, 0)
        return chosen or next(person for person in STAFF if role in person.roles)

    def _by_admin(self, cls: type[Event], **fields: Any) -> Draft:
        return Draft(cls, self._in_role("admin", 0), fields)

    def _by_operator(self, cls: type[Event], number: int, **fields: Any) -> Draft:
        return Draft(cls, self._in_role("operator", number), fields)

    # The log itself.

    def _open(self, move: Move) -> Draft:
        admin = pick([STAFF[0], NOBODY], move.a // 16) or NOBODY
        fields = {"goal": TEXTS[move.b % 4], "revision": "r1", "admin_public_key": admin.key.public_key}
        return Draft(events.RunOpened, admin, fields)

    def _setting(self, move: Move) -> Draft:
        name = "colour" if move.b % 8 == 7 else "same-person-may-review"
        return self._by_admin(events.SettingChanged, name=name, value=("true", "false", "maybe")[move.a % 3])

    def _budget(self, move: Move) -> Draft:
        name = pick((*EVIDENCE_BUDGETS, *BUDGETS, "coffee"), move.a)
        if name == EVENTS:
            name, limit = (EVENTS, 10 * move.b) if self._addresses else (CASES, None)
        else:
            limit = (None, None, 0, 1, 2, 3, 5, 8)[move.b % 8]
        return self._by_admin(events.BudgetSet, name=name, limit=limit)

    def _declare(self, move: Move) -> Draft:
        schema = pick(FOREIGN, move.a) or FOREIGN[0]
        fields = {"fingerprint": schema.fingerprint, "text": schema.text}
        wrong: dict[int, dict[str, str]] = {
            5: {"text": "{"},
            6: {"fingerprint": "0123456789abcdef"},
            7: {"text": BUILT_IN.text, "fingerprint": BUILT_IN.fingerprint.hex()},
        }
        return self._by_admin(events.SchemaDeclared, **(fields | wrong.get(move.b % 8, {})))

    def _foreign(self, move: Move) -> Draft | LogRecord:
        """A value written under a schema that the run may have declared."""
        goal = self.event(events.GoalSet, text=TEXTS[move.b % 4])
        schema = pick(self._declared, move.a) if move.b % 4 else pick(FOREIGN, move.a)
        schema = schema or FOREIGN[0]
        fields = {"percent": move.b} if '"percent"' in schema.text else fields_of(goal, links=["x"])
        if schema == BROKEN:
            fields["text"] = move.b
        return replace(self.record(goal), value=schema.value(fields), headers=())

    def _key(self, move: Move) -> Draft:
        known = {person.key.key_id for person in self._people}
        new = [person for person in (*STAFF[1:], *GUESTS) if person.key.key_id not in known]
        person = pick(new, move.a // 2) if move.a % 8 < 7 and new else pick(STAFF, move.a)
        assert person is not None
        key_id = ADMIN.key_id if move.c % 8 == 6 else person.key.key_id
        fields = {"key_id": key_id, "public_key": person.key.public_key, "holder": person.name}
        return self._by_admin(events.KeyRegistered, **fields, holder_kind=person.kind, roles=person.roles)

    def _revoke(self, move: Move) -> Draft:
        person = pick(self._people[4:] if move.a % 4 else self._people, move.b) or NOBODY
        return self._by_admin(events.KeyRevoked, key_id=person.key.key_id, reason="lost")

    def _register(self, move: Move) -> Draft:
        """A test of some tier; now and then one that would enable what it requires."""
        number = move.a % (3 * TIERS)
        tier = number % TIERS
        requires = {f"c{tier - 1}"} if tier else set()
        requires |= {"c0"} if tier and move.b % 4 == 3 else set()
        enables = {f"c{tier}", *({"c9"} if move.c % 4 == 3 else ())}
        if move.c % 8 == 7:
            requires |= {f"c{tier}"}
        return self._by_admin(
            events.TestRegistered,
            test_id=f"t{number}",
            title=f"Test {number}",
            asset_id=f"asset-{move.b % 2}",
            requires=sorted(requires),
            enables=sorted(enables),
            impact=move.b,
            requests_max=move.c % 4,
            definition_sha256="d" * 64,
        )

    # Evidence.

    def _current(self) -> dict[str, set[str]]:
        """The findings that count now, with what each provides."""
        current: dict[str, set[str]] = {}
        for id in self.findings:
            row = self.row("Finding", id)
            if row["revision"] == self._revision and not row["withdrawn"]:
                current[id] = self._tests[str(row["test"])][1]
        return current

    def _report(self, move: Move) -> Draft:
        roots = [test for test, (requires, _) in self._tests.items() if not requires] or [*self._tests]
        test = pick([*self._tests], move.a) if move.b % 4 == 3 else pick(roots, move.a)
        fields = {"test_id": test if test and move.c < 60 else "nowhere", "summary": LINES[move.c % 3]}
        return Draft(events.ReportFiled, self._somebody(move.b // 4), fields)

    def _propose(self, move: Move) -> Draft:
        current = self._current()
        provided = {capability for enables in current.values() for capability in enables}
        ready = [test for test, (requires, _) in self._tests.items() if requires and requires <= provided]
        test = pick(ready if ready and move.b % 4 < 3 else [*self._tests], move.a) or "nowhere"
        requires = self._tests.get(test, (set(), set()))[0]
        findings = [id for id, enables in current.items() if enables & requires]
        if move.b % 8 == 7:
            findings = [*self.findings[move.c % 3 :], *([NO_FINDING] if move.c % 8 == 7 else ())]
        run = self.node("Run", "run")
        opened = int(str(run["last_case_offset"])) if run else -1
        as_of = (None, len(self.records), max(0, opened), opened + 1)[move.c % 4] if self._addresses else None
        revision = "r1" if move.c % 16 == 15 else self._revision
        fields = {"test_id": test, "revision": revision, "finding_ids": findings, "as_of": as_of, "rationale": ""}
        return Draft(events.TestProposed, None, fields)

    def _go_on(self, move: Move) -> Draft:
        """The next right step of a case that has one, the latest first; where there is none, another case."""
        rows = [self.row("Case", id) for id in self._cases[::-1]]
        open_cases = [row for row in rows if row["status"] in NEXT_STEP and not row["retried"]]
        # What waits to be approved or run in a revision that is over can't go on.
        going = [row for row in open_cases if row["revision"] == self._revision or (row["approval"] and row["runner"])]
        row = pick(going, move.a // 4)
        if row is None:
            return self._propose(move) if self._current() and move.b % 2 else self._report(move)
        step = {"decide": self._decide, "start": self._start, "observe": self._observe, "review": self._review}
        return step[NEXT_STEP[str(row["status"])]](str(row["id"]), _without_case(move))

    def _decide(self, case_id: str, move: Move) -> Draft:
        subject = {"kind": "request" if move.c % 16 == 15 else "case", "id": case_id}
        decision = "deny" if move.b % 8 == 7 else "approve"
        return self._by_operator(events.ApprovalDecided, move.c, subject=subject, decision=decision, reason="")

    def _start(self, case_id: str, move: Move) -> Draft:
        case = self.node("Case", case_id)
        approval = case["approval"] if case and move.b % 8 < 7 else None
        fields = {"case_id": case_id, "approval_id": approval or "approval-00000000000000000000"}
        return Draft(events.TestStarted, self._in_role("runner", move.c), fields)

    def _observe(self, case_id: str, move: Move) -> Draft:
        case = self.node("Case", case_id) or {}
        test_id, revision = str(case.get("test", "t0")), str(case.get("revision", "r1"))
        runner = self._runner_of(case, move)
        outcome = OUTCOMES[move.b % len(OUTCOMES)]
        statement = Statement(EVIDENCE_SHA256, case_id, test_id, revision, outcome)
        test = self.node("TestCase", test_id)
        allowed = int(str(test["requests_max"])) if test else 0
        fields: dict[str, Any] = {
            "case_id": case_id,
            "test_id": test_id,
            "revision": revision,
            "outcome": outcome,
            "reason": "rule 1",
            "evidence": EVIDENCE,
            "requests": move.a % (allowed + 1),
            "interrupted": outcome == "inconclusive" and move.c % 4 == 3,
            "receipt": sign_receipt(statement, runner.key),
        }
        wrong: tuple[dict[str, Any], ...] = (
            {"test_id": "t5" if test_id != "t5" else "t4"},
            {"revision": "r0"},
            {"receipt": "{}"},
            {"evidence": {**EVIDENCE, "sha256": "f" * 64}},
            {"requests": allowed + 1},
            {"interrupted": True},
        )
        if move.c % 4 == 1:
            fields |= wrong[(move.a + move.b) % len(wrong)]
        return Draft(events.ObservationRecorded, runner, fields)

    def _runner_of(self, case: Row, move: Move) -> Person:
        """The runner that took the case; now and then another."""
        took = [person for person in self._people if person.key.key_id == case.get("runner")]
        return took[0] if took and move.a % 8 < 7 else self._in_role("runner", move.a)

    def _review(self, case_id: str, move: Move) -> Draft:
        case = self.node("Case", case_id)
        observation = case["observation"] if case and move.a % 16 < 15 else None
        fields = {
            "case_id": case_id,
            "observation_id": observation or "observation-00000000000000000000",
            "decision": "reject" if move.b % 8 == 7 else "accept",
            "note": TEXTS[move.c % 4],
        }
        return Draft(events.ReviewDecided, self._in_role("reviewer", move.c), fields)

    def _retry(self, move: Move) -> Draft:
        rows = [self.row("Case", id) for id in self._cases[::-1]]
        stuck = [row["id"] for row in rows if row["outcome"] == "inconclusive" or row["status"] == "running"]
        case_id = pick(stuck, move.a) if move.b % 4 < 3 else None
        fields = {"case_id": case_id or self._a_case(move), "reason": "again"}
        return self._by_operator(events.RetryRequested, move.c, **fields)

    def _withdraw(self, move: Move) -> Draft:
        finding = pick(self.findings, move.a) if move.b % 8 < 7 else None
        return self._by_operator(events.FindingWithdrawn, move.c, finding_id=finding or NO_FINDING, reason="was wrong")

    def _advance(self, move: Move) -> Draft:
        origin = "r0" if move.a % 8 == 7 else self._revision
        target = f"r{1 + move.c % self._revisions}" if move.b % 8 == 7 else f"r{self._revisions + 1}"
        fields = {"from_revision": origin, "to_revision": target, "reason": "shipped"}
        return self._by_operator(events.RevisionAdvanced, 0, **fields)

    def _copy(self, move: Move) -> Draft | LogRecord:
        """An earlier record once more; where there is none, a goal."""
        record = pick(self.records[::-1], move.a)
        if record is None:
            return Draft(events.GoalSet, None, {"text": "first"})
        other_rim = replace(record, headers=record.headers[:2], key=None, timestamp_ms=move.c)
        return other_rim if move.b % 8 == 7 else record

    # Writing it.

    def _written(self, draft: Draft, move: Move) -> LogRecord:
        signer = draft.signer
        name, kind = draft.actor or ((signer.name, signer.kind) if signer else ("rita", "human"))
        if move.flaw == "wrong_role":
            signer = pick(self._people, move.a + move.b + 1) or NOBODY
            name, kind = signer.name, signer.kind
        elif move.flaw == "borrowed_key":
            signer = pick(self._people, move.a + move.b + 1) or NOBODY
        taken = pick([verdict.event_id for verdict in self.verdicts if verdict.event_id], move.a)
        causes = [self.verdicts[-1 - move.c % len(self.verdicts)].event_id] if self.verdicts and move.c % 2 else []
        event = self.event(
            draft.cls,
            name,
            kind,
            event_id=taken if move.flaw == "taken_id" else None,
            causes=[cause for cause in causes if cause],
            **draft.fields,
        )
        if draft.execution is not None or draft.frame is not None:
            told = {"execution": draft.execution, "frame": draft.frame}
            meta = build(Meta, {**event.meta.model_dump(), **told})
            event = event.model_copy(update={"meta": meta})
        return flawed(self, event, signer.key if signer else None, move)


def _without_case(move: Move) -> Move:
    """The same move without its choice of a case, so that a right step stays mostly right."""
    return move._replace(a=move.a // 4)
