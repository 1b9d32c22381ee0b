"""The events of an investigation, one method each: it drafts the event and keeps count of what it must lead to."""

from __future__ import annotations

from benchmarks.attempts import Attempt, Attempts, Registered, Tally
from benchmarks.author import Author, Draft, Signer
from forktrail_projectors.receipts import Statement, sign_receipt
from forktrail_schemas import events
from forktrail_schemas.ids import derived_id

SUMMARIES = (
    "the marker is trusted from outside",
    "another tenant's invoice shows",
    "a token works for a second time",
    "the redirect keeps credentials",
    "routes answer without a session",
    "quota is counted by address",
)
GOALS = (
    "find out how far the trusted marker reaches behind the gateway",
    "which of the tenants can read what the export job leaves behind",
    "see whether a replayed webhook is paid for a second time",
)
_EVIDENCE_SHA256 = "e" * 64
_REQUESTS_MAX = 2


class Investigation:
    """One run's story, told as drafts.

    Attributes:
        author: writes the drafts.
        attempts: the model that they follow.
        tests: those registered so far.
        tally: what the fold must have made of the drafts so far.
    """

    def __init__(self, run: str, seed: int) -> None:
        self.author = Author(run, seed)
        self.attempts = Attempts()
        self.tests: list[Registered] = []
        self.tally = Tally()

    def open(self) -> Draft:
        """RunOpened."""
        author = self.author
        fields = {"goal": GOALS[0], "revision": "r1", "admin_public_key": author.admin.key.public_key}
        draft = author.signed(events.RunOpened, author.admin, **fields)
        self._set_goal(draft)
        return draft

    def register_key(self, signer: Signer) -> Draft:
        """KeyRegistered."""
        return self.author.signed(
            events.KeyRegistered,
            self.author.admin,
            key_id=signer.key.key_id,
            public_key=signer.key.public_key,
            holder=signer.holder,
            holder_kind=signer.kind,
            roles=[signer.role],
        )

    def register(self, test: Registered) -> Draft:
        """TestRegistered."""
        self.tests.append(test)
        self.tally.rows["TestCase"] += 1
        return self.author.signed(
            events.TestRegistered,
            self.author.admin,
            test_id=test.id,
            title=f"Is it so that {self.author.chance.choice(SUMMARIES)}?",
            asset_id=test.asset,
            requires=list(test.requires),
            enables=list(test.enables),
            impact=test.impact,
            requests_max=_REQUESTS_MAX,
            definition_sha256=f"{len(self.tests):064x}",
        )

    def report(self, test: Registered) -> Draft:
        """ReportFiled."""
        summary = self.author.chance.choice(SUMMARIES)
        draft = self.author.unsigned(events.ReportFiled, test_id=test.id, summary=summary)
        outcome = self.attempts.report(test, derived_id("case", draft.event_id), draft.event_id)
        self.tally.reports[outcome] += 1
        self.tally.rows["Report"] += 1
        self.tally.rows["Case"] += outcome == "case_opened"
        return draft

    def new_goal(self) -> Draft:
        """GoalSet."""
        draft = self.author.unsigned(events.GoalSet, text=self.author.chance.choice(GOALS))
        self._set_goal(draft)
        return draft

    def advance(self) -> Draft:
        """RevisionAdvanced."""
        old = self.attempts.revision
        self.attempts.advance()
        fields = {"from_revision": f"r{old}", "to_revision": f"r{old + 1}", "reason": "the fixes are out"}
        return self.author.signed(events.RevisionAdvanced, self.author.operator, **fields)

    def approve(self, attempt: Attempt) -> Draft:
        """ApprovalDecided, yes."""
        draft = self._decide(attempt, "approve", "in scope")
        attempt.status, attempt.approval_id = "approved", derived_id("approval", draft.event_id)
        return draft

    def deny(self, attempt: Attempt) -> Draft:
        """ApprovalDecided, no."""
        attempt.status = "settled"
        return self._decide(attempt, "deny", "not in this window")

    def start(self, attempt: Attempt) -> Draft:
        """TestStarted."""
        fields = {"case_id": attempt.case_id, "approval_id": attempt.approval_id}
        draft = self.author.signed(events.TestStarted, self.author.runner, attempt.cause, **fields)
        attempt.status, attempt.cause = "running", draft.event_id
        return draft

    def observe(self, attempt: Attempt, outcome: str) -> Draft:
        """ObservationRecorded, with a receipt."""
        runner, revision = self.author.runner, f"r{self.attempts.revision}"
        statement = Statement(_EVIDENCE_SHA256, attempt.case_id, attempt.test.id, revision, outcome)
        draft = self.author.signed(
            events.ObservationRecorded,
            runner,
            attempt.cause,
            case_id=attempt.case_id,
            test_id=attempt.test.id,
            revision=revision,
            outcome=outcome,
            reason="as its rule says",
            evidence={"sha256": _EVIDENCE_SHA256, "size": 71_204, "media_type": "application/json"},
            requests=_REQUESTS_MAX,
            interrupted=False,
            receipt=sign_receipt(statement, runner.key),
        )
        attempt.status, attempt.cause, attempt.outcome = "observed", draft.event_id, outcome
        attempt.observation_id = derived_id("observation", draft.event_id)
        self.tally.rows["Observation"] += 1
        return draft

    def review(self, attempt: Attempt, decision: str) -> Draft:
        """ReviewDecided; accepting a reproduced observation makes a finding."""
        attempt.status = "settled"
        self.tally.rows["Review"] += 1
        if decision == "accept" and attempt.outcome == "reproduced":
            self.attempts.establish(attempt)
            self.tally.rows["Finding"] += 1
        return self.author.signed(
            events.ReviewDecided,
            self.author.reviewer,
            attempt.cause,
            case_id=attempt.case_id,
            observation_id=attempt.observation_id,
            decision=decision,
            note="seen in the stored exchanges",
        )

    def carry_on(self, attempt: Attempt) -> Draft:
        """The next step of an attempt: 90 % are approved, 70 % reproduced, 85 % accepted."""
        chance = self.author.chance
        if attempt.status == "proposed":
            draft = self.approve(attempt) if chance.random() < 0.9 else self.deny(attempt)
        elif attempt.status == "approved":
            draft = self.start(attempt)
        elif attempt.status == "running":
            draft = self.observe(
                attempt, chance.choices(("reproduced", "not_reproduced", "inconclusive"), (7, 2, 1))[0]
            )
        else:
            draft = self.review(attempt, "accept" if chance.random() < 0.85 else "reject")
        self.attempts.put_back(attempt)
        return draft

    def _decide(self, attempt: Attempt, decision: str, reason: str) -> Draft:
        draft = self.author.signed(
            events.ApprovalDecided,
            self.author.operator,
            attempt.cause,
            subject={"kind": "case", "id": attempt.case_id},
            decision=decision,
            reason=reason,
        )
        attempt.cause = draft.event_id
        self.tally.rows["Approval"] += 1
        return draft

    def _set_goal(self, draft: Draft) -> None:
        self.author.goal = derived_id("goal", draft.event_id)
        self.tally.rows["Goal"] += 1
