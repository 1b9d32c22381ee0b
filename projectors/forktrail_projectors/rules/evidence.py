"""Rules of the evidence family: report → case → approval → observation → review → finding.

A report claims, a case asks, an approval permits, an observation shows, a review judges; only an accepted review of a
reproduced observation makes a finding. Whether a finding is current is never written: it follows from the revision.
"""

from __future__ import annotations

from forktrail_projectors.receipts import receipt_fault
from forktrail_projectors.rules.calls import request_decided
from forktrail_projectors.rules.context import Context, Refused, number, text
from forktrail_projectors.rules.log import CASES, FINDING_DEPTH, HTTP_REQUESTS, SAME_PERSON_MAY_REVIEW, setting
from forktrail_projectors.rules.support import (
    check_budget,
    check_revision,
    check_support,
    depth_on,
    missing,
    standing_attempt,
    support_of,
    used,
)
from forktrail_projectors.state import NodeKey, Row
from forktrail_schemas.events import (
    ApprovalDecided,
    FindingWithdrawn,
    ObservationRecorded,
    ReportFiled,
    RetryRequested,
    ReviewDecided,
    RevisionAdvanced,
    TestProposed,
    TestStarted,
)
from forktrail_schemas.events.base import Event
from forktrail_schemas.ids import derived_id

PROPOSED, APPROVED, DENIED = "proposed", "approved", "denied"
RUNNING, OBSERVED, ACCEPTED, REJECTED = "running", "observed", "accepted", "rejected"


def report_filed(ctx: Context[ReportFiled]) -> None:
    """Keeps the report; opens a case where the test is eligible and has none in this revision."""
    event = ctx.event
    test = ctx.existing("TestCase", event.test_id, "unknown_test")
    standing = standing_attempt(ctx, event.test_id)
    outcome, case = ("case_exists", None) if standing else _attempted(ctx, test)
    report = ctx.create(
        "Report",
        derived_id("report", event.meta.event_id),
        test=test["id"],
        revision=ctx.revision,
        researcher=event.meta.actor.id,
        summary=event.summary,
        details=event.details,
        outcome=outcome,
        case_id=case.id if case else standing,
    )
    ctx.relate("REPORTS", report, NodeKey("TestCase", event.test_id))
    if case:
        ctx.relate("OPENED", report, case)


def _attempted(ctx: Context[ReportFiled], test: Row) -> tuple[str, NodeKey | None]:
    """The outcome of a report on a test that has no case yet, and the case, where one could be opened."""
    support = support_of(ctx, text(test, "id"))
    if missing(support):
        return "support_missing", None
    findings = tuple(dict.fromkeys(finding for providers in support.values() for finding in providers))
    try:
        return "case_opened", _open_case(ctx, test, findings, opened_by="report")
    except Refused as refusal:
        return refusal.reason, None


def proposal_made(ctx: Context[TestProposed]) -> None:
    """Opens a case that rests on the findings named; they must be just what meets the requirements now."""
    event = ctx.event
    test = ctx.existing("TestCase", event.test_id, "unknown_test")
    if event.revision != ctx.revision:
        raise Refused("revision_not_active", f"{event.revision}; active: {ctx.revision}")
    if event.as_of is not None and number(ctx.run, "last_case_offset") >= event.as_of:
        raise Refused("overtaken", text(ctx.run, "last_case"))
    standing = standing_attempt(ctx, event.test_id)
    if standing is not None:
        raise Refused("case_exists", standing)
    support = support_of(ctx, event.test_id)
    named = set(event.finding_ids)
    gaps = sorted(capability for capability, providers in support.items() if not named & set(providers))
    if gaps:
        raise Refused("support_missing", ", ".join(gaps))
    strangers = sorted(named - {finding for providers in support.values() for finding in providers})
    if strangers:
        raise Refused("support_mismatch", ", ".join(strangers))
    _open_case(ctx, test, tuple(dict.fromkeys(event.finding_ids)), opened_by="proposal")


def _open_case(ctx: Context[Event], test: Row, finding_ids: tuple[str, ...], *, opened_by: str) -> NodeKey:
    """Stage a case and what it uses of the budgets; refuses, before it stages anything, what would pass one."""
    depth = depth_on(ctx, finding_ids)
    check_budget(ctx, CASES, used(ctx, CASES) + 1)
    check_budget(ctx, FINDING_DEPTH, depth)
    meta = ctx.event.meta
    case = ctx.create(
        "Case",
        derived_id("case", meta.event_id),
        test=test["id"],
        asset=test["asset"],
        revision=ctx.revision,
        status=PROPOSED,
        opened_by=opened_by,
        proposer=meta.actor.id,
        depth=depth,
        retried=False,
    )
    ctx.relate("ATTEMPTS", case, NodeKey("TestCase", text(test, "id")))
    for finding in finding_ids:
        ctx.relate("RESTS_ON", case, NodeKey("Finding", finding))
    ctx.update("Budget", CASES, used=used(ctx, CASES) + 1)
    ctx.update("Budget", FINDING_DEPTH, used=max(depth, used(ctx, FINDING_DEPTH)))
    ctx.update("Run", "run", last_case=case.id, last_case_offset=ctx.offset)
    return case


def approval_decided(ctx: Context[ApprovalDecided]) -> None:
    """A person's yes or no to a case, or to what an execution put to them; the first valid one stands."""
    event = ctx.event
    check_person(event)
    if event.subject.kind == "request":
        request_decided(ctx)
        return
    case = ctx.existing("Case", event.subject.id, "unknown_case")
    if case["status"] != PROPOSED:
        raise Refused("already_decided", f"{case['approval']} by {case['approver']}")
    check_revision(ctx, case)
    if event.decision == "approve":
        check_support(ctx, text(case, "test"))
    person = event.meta.actor.id
    approval = ctx.create(
        "Approval",
        derived_id("approval", event.meta.event_id),
        case_id=event.subject.id,
        decision=event.decision,
        approver=person,
        reason=event.reason,
    )
    ctx.relate("DECIDES", approval, NodeKey("Case", event.subject.id))
    status = APPROVED if event.decision == "approve" else DENIED
    ctx.update("Case", event.subject.id, status=status, approval=approval.id, approver=person)


def case_started(ctx: Context[TestStarted]) -> None:
    """A runner takes an approved case, once; its requests are reserved from the budget."""
    event = ctx.event
    case = ctx.existing("Case", event.case_id, "unknown_case")
    if case["status"] in (PROPOSED, DENIED):
        raise Refused("not_approved", text(case, "status"))
    if case["status"] != APPROVED:
        raise Refused("already_started", str(case["runner"]))
    if case["approval"] != event.approval_id:
        raise Refused("approval_mismatch", str(case["approval"]))
    check_revision(ctx, case)
    check_support(ctx, text(case, "test"))
    requests = number(ctx.existing("TestCase", text(case, "test"), "unknown_test"), "requests_max")
    check_budget(ctx, HTTP_REQUESTS, used(ctx, HTTP_REQUESTS) + requests)
    ctx.update("Budget", HTTP_REQUESTS, used=used(ctx, HTTP_REQUESTS) + requests)
    ctx.update("Case", event.case_id, status=RUNNING, runner=_signer_id(ctx))


def observation_recorded(ctx: Context[ObservationRecorded]) -> None:
    """What the runner that took the case saw, with a receipt that it signed over just that."""
    event = ctx.event
    case = ctx.existing("Case", event.case_id, "unknown_case")
    if case["status"] in (PROPOSED, APPROVED, DENIED):
        raise Refused("not_started", text(case, "status"))
    if case["status"] != RUNNING:
        raise Refused("already_observed", str(case["observation"]))
    if case["runner"] != _signer_id(ctx):
        raise Refused("wrong_runner", str(case["runner"]), takes_id=False)
    assert ctx.signer is not None
    if (event.test_id, event.revision) != (case["test"], case["revision"]):
        raise Refused("case_mismatch", f"{case['test']} in {case['revision']}", takes_id=False)
    fault = receipt_fault(event, ctx.signer)
    if fault is not None:
        raise Refused("receipt_mismatch", fault, takes_id=False)
    if event.interrupted and event.outcome != "inconclusive":
        raise Refused("interrupted_outcome", event.outcome, takes_id=False)
    reserved = number(ctx.existing("TestCase", event.test_id, "unknown_test"), "requests_max")
    if event.requests > reserved:
        raise Refused("bounds_exceeded", f"{event.requests} requests; allowed: {reserved}", takes_id=False)
    # How many an interrupted runner had sent nobody knows: what was reserved stays used.
    spent = reserved if event.interrupted else event.requests
    ctx.update("Budget", HTTP_REQUESTS, used=used(ctx, HTTP_REQUESTS) - reserved + spent)
    observation = ctx.create(
        "Observation",
        derived_id("observation", event.meta.event_id),
        case_id=event.case_id,
        test=event.test_id,
        revision=event.revision,
        outcome=event.outcome,
        reason=event.reason,
        runner=ctx.signer.key_id,
        receipt=event.receipt,
        evidence_sha256=event.evidence.sha256,
        evidence_bytes=event.evidence.size,
        evidence_media_type=event.evidence.media_type,
        requests=event.requests,
        interrupted=event.interrupted,
    )
    ctx.relate("OBSERVES", observation, NodeKey("Case", event.case_id))
    ctx.update("Case", event.case_id, status=OBSERVED, outcome=event.outcome, observation=observation.id)


def review_decided(ctx: Context[ReviewDecided]) -> None:
    """A person's judgement of an observation; accepting a reproduced one makes a finding."""
    event = ctx.event
    check_person(event)
    case = ctx.existing("Case", event.case_id, "unknown_case")
    if case["status"] in (ACCEPTED, REJECTED):
        raise Refused("already_reviewed", str(case["reviewer"]))
    if case["status"] != OBSERVED:
        raise Refused("no_observation", text(case, "status"))
    if case["observation"] != event.observation_id:
        raise Refused("observation_mismatch", str(case["observation"]))
    person = event.meta.actor.id
    if person == case["approver"] and setting(ctx, SAME_PERSON_MAY_REVIEW) != "true":
        raise Refused("same_person", person)
    review = ctx.create(
        "Review",
        derived_id("review", event.meta.event_id),
        case_id=event.case_id,
        observation=event.observation_id,
        decision=event.decision,
        reviewer=person,
        note=event.note,
    )
    ctx.relate("REVIEWS", review, NodeKey("Observation", event.observation_id))
    accepted = event.decision == "accept"
    ctx.update("Case", event.case_id, status=ACCEPTED if accepted else REJECTED, reviewer=person)
    if accepted and case["outcome"] == "reproduced":
        _establish(ctx, case, review)


def _establish(ctx: Context[ReviewDecided], case: Row, review: NodeKey) -> None:
    """Stage the finding of an accepted case, with the capabilities that its test enables."""
    test_key = NodeKey("TestCase", text(case, "test"))
    test = ctx.existing(test_key.table, test_key.id, "unknown_test")
    finding = ctx.create(
        "Finding",
        derived_id("finding", ctx.event.meta.event_id),
        title=test["title"],
        case_id=case["id"],
        test=case["test"],
        asset=case["asset"],
        revision=case["revision"],
        researcher=case["proposer"],
        observation=case["observation"],
        review=review.id,
        impact=test["impact"],
        depth=case["depth"],
        withdrawn=False,
    )
    ctx.relate("ESTABLISHES", review, finding)
    ctx.relate("FOUND_IN", finding, NodeKey("Case", text(case, "id")))
    for capability in ctx.neighbours("WOULD_ENABLE", "source", test_key):
        ctx.relate("ENABLES", finding, capability)


def revision_advanced(ctx: Context[RevisionAdvanced]) -> None:
    """Makes a new revision the active one; findings of others stay what they are, but not current."""
    event = ctx.event
    if event.from_revision != ctx.revision:
        raise Refused("revision_conflict", f"active: {ctx.revision}")
    if ctx.node("Revision", event.to_revision) is not None:
        raise Refused("revision_exists", event.to_revision)
    ordinal = number(ctx.run, "revisions") + 1
    ctx.create("Revision", event.to_revision, ordinal=ordinal)
    ctx.update("Run", "run", active_revision=event.to_revision, revisions=ordinal)


def retry_requested(ctx: Context[RetryRequested]) -> None:
    """Takes an attempt out of the way of another: an inconclusive one, or one whose runner can't end it any more."""
    case = ctx.existing("Case", ctx.event.case_id, "unknown_case")
    check_revision(ctx, case)
    if case["outcome"] != "inconclusive" and not _orphaned(ctx, case):
        raise Refused("not_inconclusive", str(case["outcome"] or case["status"]))
    if case["retried"]:
        raise Refused("already_retried", ctx.event.case_id)
    ctx.update("Case", ctx.event.case_id, retried=True)


def _orphaned(ctx: Context[Event], case: Row) -> bool:
    """Whether a running case's runner lost its key, so that nobody may record what it saw."""
    if case["status"] != RUNNING:
        return False
    return bool(ctx.existing("Key", text(case, "runner"), "unknown_key")["revoked"])


def finding_withdrawn(ctx: Context[FindingWithdrawn]) -> None:
    """Takes a finding back; it stays on record and stops counting."""
    event = ctx.event
    finding = ctx.existing("Finding", event.finding_id, "unknown_finding")
    if finding["withdrawn"]:
        raise Refused("already_withdrawn", text(finding, "withdrawn_by"))
    ctx.update(
        "Finding",
        event.finding_id,
        withdrawn=True,
        withdrawn_by=event.meta.actor.id,
        withdrawn_reason=event.reason,
    )


def check_person(event: Event) -> None:
    if event.meta.actor.kind != "human":
        raise Refused("not_a_person", event.meta.actor.kind, takes_id=False)


def _signer_id(ctx: Context[Event]) -> str:
    assert ctx.signer is not None, "the type's role makes sure of a signature"
    return ctx.signer.key_id
