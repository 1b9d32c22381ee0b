"""Every way in which a rule of the evidence family refuses an event."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from forktrail_projectors.receipts import Statement, sign_receipt
from forktrail_projectors.record import LogRecord
from forktrail_schemas import events
from forktrail_schemas.events.base import Event
from forktrail_schemas.signatures import SigningKey
from support.refusals import Refusal, case
from support.story import ADMIN, EVIDENCE_SHA256, HOLDERS, OPERATOR, REVIEWER, RUNNER, STRANGER, Story

EVIDENCE: list[Refusal] = []
NO_CASE = "case-00000000000000000000"
NO_FINDING = "finding-00000000000000000000"


def written(story: Story, cls: type[Event], key: SigningKey, kind: str = "human", **fields: Any) -> LogRecord:
    """A record signed by a key in its holder's name."""
    return story.record(story.event(cls, HOLDERS[key.key_id], kind, **fields), key)


def two_tests(story: Story) -> None:
    """`root` enables `way`, which `leaf` requires."""
    story.open()
    story.register("root", enables=["way"])
    story.register("leaf", requires=["way"])


def found(story: Story, test_id: str = "root") -> str:
    """A finding of the test."""
    return story.settle(story.report(test_id))


def proposed(story: Story, test_id: str, findings: Sequence[str] = (), **changes: Any) -> LogRecord:
    fields = {"test_id": test_id, "revision": "r1", "finding_ids": list(findings), "rationale": "", **changes}
    return story.record(story.event(events.TestProposed, "planner", "agent", **fields))


def approval(story: Story, case_id: str, kind: str = "human", decision: str = "approve", of: str = "case") -> LogRecord:
    fields = {"subject": {"kind": of, "id": case_id}, "decision": decision, "reason": ""}
    return written(story, events.ApprovalDecided, OPERATOR, kind, **fields)


def start(story: Story, case_id: str, approval_id: str | None = None, key: SigningKey = RUNNER) -> LogRecord:
    if approval_id is None:
        approval_id = str(story.row("Case", case_id)["approval"] or "approval-00000000000000000000")
    return written(story, events.TestStarted, key, "service", case_id=case_id, approval_id=approval_id)


def review(story: Story, case_id: str, /, key: SigningKey = REVIEWER, kind: str = "human", **changes: Any) -> LogRecord:
    observation = story.row("Case", case_id)["observation"] or "observation-00000000000000000000"
    fields = {"case_id": case_id, "observation_id": observation, "decision": "accept", "note": "", **changes}
    return written(story, events.ReviewDecided, key, kind, **fields)


def running(story: Story) -> str:
    """A case that the runner has taken."""
    two_tests(story)
    case_id = story.report("root")
    assert story.decide(case_id).valid
    assert story.start(case_id).valid
    return case_id


def observed(story: Story, outcome: str = "reproduced") -> str:
    """A case that waits for a review."""
    case_id = running(story)
    assert story.tell(story.observation(case_id, outcome), RUNNER).valid
    return case_id


def altered(story: Story, case_id: str, key: SigningKey = RUNNER, /, **changes: Any) -> LogRecord:
    """The right observation of a running case, altered after its receipt was signed."""
    return story.record(story.observation(case_id, "reproduced", key).model_copy(update=changes), key)


# Reports and proposals.


@case(EVIDENCE, "unknown_test", takes_id=True)
def a_report_on_an_unknown_test(story: Story) -> LogRecord:
    two_tests(story)
    return story.record(story.event(events.ReportFiled, test_id="nowhere", summary=""))


@case(EVIDENCE, "unknown_test", takes_id=True)
def a_proposal_of_an_unknown_test(story: Story) -> LogRecord:
    two_tests(story)
    return proposed(story, "nowhere")


@case(EVIDENCE, "revision_not_active", takes_id=True)
def a_proposal_for_a_revision_that_is_over(story: Story) -> LogRecord:
    two_tests(story)
    story.advance("r2")
    return proposed(story, "root")


@case(EVIDENCE, "overtaken", takes_id=True)
def a_proposal_decided_on_before_another_case_was_opened(story: Story) -> LogRecord:
    two_tests(story)
    finding = found(story)
    story.register("other")
    as_of = len(story.records)
    story.report("other")
    return proposed(story, "leaf", [finding], as_of=as_of)


@case(EVIDENCE, "case_exists", takes_id=True)
def a_proposal_of_a_test_with_an_open_case(story: Story) -> LogRecord:
    two_tests(story)
    story.report("root")
    return proposed(story, "root")


def _settled(story: Story, outcome: str, decision: str = "accept") -> LogRecord:
    case_id = observed(story, outcome)
    assert story.review(case_id, decision)[1].valid
    return proposed(story, "root")


@case(EVIDENCE, "case_exists", takes_id=True)
def a_proposal_of_a_test_that_was_reproduced(story: Story) -> LogRecord:
    return _settled(story, "reproduced")


@case(EVIDENCE, "case_exists", takes_id=True)
def a_proposal_of_a_test_that_was_not_reproduced(story: Story) -> LogRecord:
    return _settled(story, "not_reproduced")


@case(EVIDENCE, "case_exists", takes_id=True)
def a_proposal_of_an_inconclusive_test_that_nobody_asked_to_retry(story: Story) -> LogRecord:
    return _settled(story, "inconclusive")


@case(EVIDENCE, "case_exists", takes_id=True)
def a_proposal_of_a_test_whose_observation_was_rejected(story: Story) -> LogRecord:
    return _settled(story, "reproduced", "reject")


@case(EVIDENCE, "case_exists", takes_id=True)
def a_proposal_of_a_test_that_was_denied(story: Story) -> LogRecord:
    two_tests(story)
    assert story.decide(story.report("root"), "deny").valid
    return proposed(story, "root")


@case(EVIDENCE, "support_missing", takes_id=True)
def a_proposal_that_names_no_finding(story: Story) -> LogRecord:
    two_tests(story)
    found(story)
    return proposed(story, "leaf")


@case(EVIDENCE, "support_missing", takes_id=True)
def a_proposal_on_a_finding_that_there_is_not(story: Story) -> LogRecord:
    two_tests(story)
    return proposed(story, "leaf", [NO_FINDING])


@case(EVIDENCE, "support_missing", takes_id=True)
def a_proposal_on_a_withdrawn_finding(story: Story) -> LogRecord:
    two_tests(story)
    finding = found(story)
    assert story.withdraw(finding).valid
    return proposed(story, "leaf", [finding])


@case(EVIDENCE, "support_missing", takes_id=True)
def a_proposal_on_a_finding_of_the_revision_before(story: Story) -> LogRecord:
    two_tests(story)
    finding = found(story)
    assert story.advance("r2").valid
    return proposed(story, "leaf", [finding], revision="r2")


@case(EVIDENCE, "support_missing", takes_id=True)
def a_proposal_that_meets_one_of_two_requirements(story: Story) -> LogRecord:
    two_tests(story)
    story.register("both", requires=["way", "second-way"])
    return proposed(story, "both", [found(story)])


@case(EVIDENCE, "support_mismatch", takes_id=True)
def a_proposal_that_names_a_finding_it_does_not_need(story: Story) -> LogRecord:
    two_tests(story)
    story.register("other", enables=["elsewhere"])
    return proposed(story, "leaf", [found(story), found(story, "other")])


@case(EVIDENCE, "support_mismatch", takes_id=True)
def a_proposal_of_a_root_that_names_a_finding(story: Story) -> LogRecord:
    two_tests(story)
    story.register("other")
    return proposed(story, "other", [found(story)])


@case(EVIDENCE, "budget_exhausted", takes_id=True)
def a_proposal_past_the_number_of_cases(story: Story) -> LogRecord:
    two_tests(story)
    finding = found(story)
    assert story.budget("cases", 1).valid
    return proposed(story, "leaf", [finding])


@case(EVIDENCE, "budget_exhausted", takes_id=True)
def a_proposal_deeper_than_allowed(story: Story) -> LogRecord:
    two_tests(story)
    finding = found(story)
    assert story.budget("finding-depth", 0).valid
    return proposed(story, "leaf", [finding])


@case(EVIDENCE, "budget_exhausted", takes_id=True)
def a_report_past_the_number_of_events(story: Story) -> LogRecord:
    two_tests(story)
    length_with_the_budget_itself = len(story.records) + 1
    assert story.budget("events", length_with_the_budget_itself).valid
    return story.record(story.event(events.ReportFiled, test_id="root", summary=""))


@case(EVIDENCE, "budget_exhausted", takes_id=True)
def a_report_too_far_from_the_first_cause(story: Story) -> LogRecord:
    two_tests(story)
    assert story.budget("cause-depth", 1).valid
    chain: list[str] = []
    for _ in range(2):
        event = story.event(events.ReportFiled, causes=chain[-1:], test_id="root", summary="")
        assert story.tell(event).valid
        chain.append(event.meta.event_id)
    return story.record(story.event(events.ReportFiled, causes=chain, test_id="root", summary=""))


# Approvals.


@case(EVIDENCE, "not_a_person", takes_id=False)
def an_approval_by_an_agent(story: Story) -> LogRecord:
    two_tests(story)
    story.add_key(STRANGER, "operator", kind="agent")
    subject = {"kind": "case", "id": story.report("root")}
    return written(story, events.ApprovalDecided, STRANGER, "agent", subject=subject, decision="approve", reason="")


@case(EVIDENCE, "unknown_request", takes_id=True)
def an_approval_of_a_request_that_there_is_not(story: Story) -> LogRecord:
    two_tests(story)
    return approval(story, story.report("root"), of="request")


@case(EVIDENCE, "unknown_case", takes_id=True)
def an_approval_of_an_unknown_case(story: Story) -> LogRecord:
    two_tests(story)
    return approval(story, NO_CASE)


@case(EVIDENCE, "already_decided", takes_id=True)
def an_approval_after_an_approval(story: Story) -> LogRecord:
    two_tests(story)
    case_id = story.report("root")
    assert story.decide(case_id).valid
    return approval(story, case_id)


@case(EVIDENCE, "already_decided", takes_id=True)
def a_denial_after_an_approval(story: Story) -> LogRecord:
    two_tests(story)
    case_id = story.report("root")
    assert story.decide(case_id).valid
    return approval(story, case_id, decision="deny")


@case(EVIDENCE, "already_decided", takes_id=True)
def an_approval_after_a_denial(story: Story) -> LogRecord:
    two_tests(story)
    case_id = story.report("root")
    assert story.decide(case_id, "deny").valid
    return approval(story, case_id)


@case(EVIDENCE, "already_decided", takes_id=True)
def an_approval_of_a_case_that_is_over(story: Story) -> LogRecord:
    case_id = observed(story)
    assert story.review(case_id)[1].valid
    return approval(story, case_id)


@case(EVIDENCE, "revision_not_active", takes_id=True)
def an_approval_after_the_revision_is_over(story: Story) -> LogRecord:
    two_tests(story)
    case_id = story.report("root")
    assert story.advance("r2").valid
    return approval(story, case_id)


@case(EVIDENCE, "support_missing", takes_id=True)
def an_approval_after_the_support_was_withdrawn(story: Story) -> LogRecord:
    two_tests(story)
    finding = found(story)
    case_id, verdict = story.propose("leaf", [finding])
    assert verdict.valid
    assert story.withdraw(finding).valid
    return approval(story, case_id)


# Starting.


@case(EVIDENCE, "unknown_case", takes_id=True)
def a_start_of_an_unknown_case(story: Story) -> LogRecord:
    two_tests(story)
    return start(story, NO_CASE, "approval-00000000000000000000")


@case(EVIDENCE, "not_approved", takes_id=True)
def a_start_before_the_approval(story: Story) -> LogRecord:
    two_tests(story)
    return start(story, story.report("root"))


@case(EVIDENCE, "not_approved", takes_id=True)
def a_start_after_a_denial(story: Story) -> LogRecord:
    two_tests(story)
    case_id = story.report("root")
    assert story.decide(case_id, "deny").valid
    return start(story, case_id)


@case(EVIDENCE, "already_started", takes_id=True)
def a_second_start_under_one_approval(story: Story) -> LogRecord:
    return start(story, running(story))


@case(EVIDENCE, "already_started", takes_id=True)
def a_second_start_by_another_runner(story: Story) -> LogRecord:
    case_id = running(story)
    assert story.add_key(STRANGER, "runner").valid
    return start(story, case_id, key=STRANGER)


@case(EVIDENCE, "already_started", takes_id=True)
def a_start_after_the_observation(story: Story) -> LogRecord:
    return start(story, observed(story))


@case(EVIDENCE, "already_started", takes_id=True)
def a_start_after_the_review(story: Story) -> LogRecord:
    case_id = observed(story)
    assert story.review(case_id, "reject")[1].valid
    return start(story, case_id)


@case(EVIDENCE, "approval_mismatch", takes_id=True)
def a_start_under_the_approval_of_another_case(story: Story) -> LogRecord:
    two_tests(story)
    story.register("other")
    first, second = story.report("root"), story.report("other")
    assert story.decide(first).valid
    assert story.decide(second).valid
    return start(story, second, str(story.row("Case", first)["approval"]))


@case(EVIDENCE, "revision_not_active", takes_id=True)
def a_start_after_the_revision_is_over(story: Story) -> LogRecord:
    two_tests(story)
    case_id = story.report("root")
    assert story.decide(case_id).valid
    assert story.advance("r2").valid
    return start(story, case_id)


@case(EVIDENCE, "support_missing", takes_id=True)
def a_start_after_the_support_was_withdrawn(story: Story) -> LogRecord:
    two_tests(story)
    finding = found(story)
    case_id, _ = story.propose("leaf", [finding])
    assert story.decide(case_id).valid
    assert story.withdraw(finding).valid
    return start(story, case_id)


@case(EVIDENCE, "budget_exhausted", takes_id=True)
def a_start_past_the_number_of_requests(story: Story) -> LogRecord:
    two_tests(story)
    case_id = story.report("root")
    assert story.decide(case_id).valid
    assert story.budget("http-requests", 1).valid  # the test may send 2
    return start(story, case_id)


# Observations.


@case(EVIDENCE, "unknown_case", takes_id=True)
def an_observation_of_an_unknown_case(story: Story) -> LogRecord:
    return altered(story, running(story), case_id=NO_CASE)


@case(EVIDENCE, "not_started", takes_id=True)
def an_observation_before_the_approval(story: Story) -> LogRecord:
    two_tests(story)
    return altered(story, story.report("root"))


@case(EVIDENCE, "not_started", takes_id=True)
def an_observation_before_the_start(story: Story) -> LogRecord:
    two_tests(story)
    case_id = story.report("root")
    assert story.decide(case_id).valid
    return altered(story, case_id)


@case(EVIDENCE, "not_started", takes_id=True)
def an_observation_after_a_denial(story: Story) -> LogRecord:
    two_tests(story)
    case_id = story.report("root")
    assert story.decide(case_id, "deny").valid
    return altered(story, case_id)


@case(EVIDENCE, "already_observed", takes_id=True)
def a_second_observation(story: Story) -> LogRecord:
    return altered(story, observed(story))


@case(EVIDENCE, "already_observed", takes_id=True)
def an_observation_after_the_review(story: Story) -> LogRecord:
    case_id = observed(story)
    assert story.review(case_id)[1].valid
    return altered(story, case_id)


@case(EVIDENCE, "wrong_runner", takes_id=False)
def an_observation_by_a_runner_that_did_not_take_the_case(story: Story) -> LogRecord:
    case_id = running(story)
    assert story.add_key(STRANGER, "runner").valid
    return altered(story, case_id, STRANGER)


@case(EVIDENCE, "case_mismatch", takes_id=False)
def an_observation_of_another_test(story: Story) -> LogRecord:
    return altered(story, running(story), test_id="leaf")


@case(EVIDENCE, "case_mismatch", takes_id=False)
def an_observation_of_another_revision(story: Story) -> LogRecord:
    return altered(story, running(story), revision="r2")


@case(EVIDENCE, "receipt_mismatch", takes_id=False)
def an_outcome_that_the_receipt_does_not_state(story: Story) -> LogRecord:
    return altered(story, running(story), outcome="not_reproduced")


@case(EVIDENCE, "receipt_mismatch", takes_id=False)
def evidence_that_the_receipt_does_not_state(story: Story) -> LogRecord:
    case_id = running(story)
    evidence = story.observation(case_id, "reproduced").evidence
    return altered(story, case_id, evidence=evidence.model_copy(update={"sha256": "f" * 64}))


@case(EVIDENCE, "receipt_mismatch", takes_id=False)
def the_receipt_of_another_case(story: Story) -> LogRecord:
    case_id = running(story)
    story.register("other")
    other = story.report("other")
    return altered(story, case_id, receipt=story.observation(other, "reproduced").receipt)


@case(EVIDENCE, "receipt_mismatch", takes_id=False)
def a_receipt_forged_by_another_key(story: Story) -> LogRecord:
    case_id = running(story)
    statement = Statement(EVIDENCE_SHA256, case_id, "root", "r1", "reproduced")
    return altered(story, case_id, receipt=sign_receipt(statement, ADMIN))


@case(EVIDENCE, "receipt_mismatch", takes_id=False)
def a_receipt_that_is_none(story: Story) -> LogRecord:
    return altered(story, running(story), receipt="")


@case(EVIDENCE, "receipt_mismatch", takes_id=False)
def a_receipt_whose_payload_is_no_base64(story: Story) -> LogRecord:
    envelope = {"payload": "é", "payloadType": "x", "signatures": [{"keyid": RUNNER.key_id, "sig": ""}]}
    return altered(story, running(story), receipt=json.dumps(envelope))


@case(EVIDENCE, "bounds_exceeded", takes_id=False)
def more_requests_than_the_test_may_send(story: Story) -> LogRecord:
    return altered(story, running(story), requests=3)


@case(EVIDENCE, "interrupted_outcome", takes_id=False)
def an_interrupted_test_that_claims_an_outcome(story: Story) -> LogRecord:
    return altered(story, running(story), interrupted=True)


# Reviews.


@case(EVIDENCE, "not_a_person", takes_id=False)
def a_review_by_a_service(story: Story) -> LogRecord:
    case_id = observed(story)
    story.add_key(STRANGER, "reviewer", kind="service")
    return review(story, case_id, key=STRANGER, kind="service")


@case(EVIDENCE, "unknown_case", takes_id=True)
def a_review_of_an_unknown_case(story: Story) -> LogRecord:
    return review(story, observed(story), case_id=NO_CASE)


@case(EVIDENCE, "no_observation", takes_id=True)
def a_review_before_the_approval(story: Story) -> LogRecord:
    two_tests(story)
    return review(story, story.report("root"))


@case(EVIDENCE, "no_observation", takes_id=True)
def a_review_while_the_test_runs(story: Story) -> LogRecord:
    return review(story, running(story))


@case(EVIDENCE, "observation_mismatch", takes_id=True)
def a_review_of_another_observation(story: Story) -> LogRecord:
    return review(story, observed(story), observation_id="observation-00000000000000000000")


@case(EVIDENCE, "already_reviewed", takes_id=True)
def a_second_review(story: Story) -> LogRecord:
    case_id = observed(story)
    assert story.review(case_id)[1].valid
    return review(story, case_id)


@case(EVIDENCE, "already_reviewed", takes_id=True)
def an_acceptance_after_a_rejection(story: Story) -> LogRecord:
    case_id = observed(story)
    assert story.review(case_id, "reject")[1].valid
    return review(story, case_id)


def _by_the_approver(story: Story) -> LogRecord:
    case_id = observed(story)
    both = HOLDERS[OPERATOR.key_id]
    assert story.add_key(STRANGER, "reviewer", holder=both).valid
    observation = story.row("Case", case_id)["observation"]
    fields: dict[str, Any] = {"case_id": case_id, "observation_id": observation, "decision": "reject", "note": ""}
    return story.record(story.event(events.ReviewDecided, both, **fields), STRANGER)


@case(EVIDENCE, "same_person", takes_id=True)
def a_review_by_the_approver_with_another_key(story: Story) -> LogRecord:
    return _by_the_approver(story)


@case(EVIDENCE, "same_person", takes_id=True)
def a_review_by_the_approver_after_the_setting_was_changed_back(story: Story) -> LogRecord:
    record = _by_the_approver(story)
    assert story.set("same-person-may-review", "true").valid
    assert story.set("same-person-may-review", "false").valid
    return LogRecord(len(story.records), record.timestamp_ms, record.key, record.value, record.headers)


# Revisions, retries, withdrawals.


@case(EVIDENCE, "revision_conflict", takes_id=True)
def an_advance_from_a_revision_that_is_over(story: Story) -> LogRecord:
    two_tests(story)
    assert story.advance("r2").valid
    fields = {"from_revision": "r1", "to_revision": "r3", "reason": ""}
    return written(story, events.RevisionAdvanced, OPERATOR, **fields)


@case(EVIDENCE, "revision_exists", takes_id=True)
def an_advance_back_to_an_old_revision(story: Story) -> LogRecord:
    two_tests(story)
    assert story.advance("r2").valid
    fields = {"from_revision": "r2", "to_revision": "r1", "reason": ""}
    return written(story, events.RevisionAdvanced, OPERATOR, **fields)


@case(EVIDENCE, "revision_exists", takes_id=True)
def an_advance_to_the_active_revision(story: Story) -> LogRecord:
    two_tests(story)
    fields = {"from_revision": "r1", "to_revision": "r1", "reason": ""}
    return written(story, events.RevisionAdvanced, OPERATOR, **fields)


def _retry(story: Story, case_id: str) -> LogRecord:
    return written(story, events.RetryRequested, OPERATOR, case_id=case_id, reason="")


@case(EVIDENCE, "unknown_case", takes_id=True)
def a_retry_of_an_unknown_case(story: Story) -> LogRecord:
    two_tests(story)
    return _retry(story, NO_CASE)


@case(EVIDENCE, "revision_not_active", takes_id=True)
def a_retry_after_the_revision_is_over(story: Story) -> LogRecord:
    case_id = observed(story, "inconclusive")
    assert story.advance("r2").valid
    return _retry(story, case_id)


@case(EVIDENCE, "not_inconclusive", takes_id=True)
def a_retry_of_what_was_not_reproduced(story: Story) -> LogRecord:
    return _retry(story, observed(story, "not_reproduced"))


@case(EVIDENCE, "not_inconclusive", takes_id=True)
def a_retry_of_what_was_reproduced(story: Story) -> LogRecord:
    return _retry(story, observed(story))


@case(EVIDENCE, "not_inconclusive", takes_id=True)
def a_retry_of_what_was_denied(story: Story) -> LogRecord:
    two_tests(story)
    case_id = story.report("root")
    assert story.decide(case_id, "deny").valid
    return _retry(story, case_id)


@case(EVIDENCE, "not_inconclusive", takes_id=True)
def a_retry_of_what_still_runs(story: Story) -> LogRecord:
    return _retry(story, running(story))


@case(EVIDENCE, "already_retried", takes_id=True)
def a_second_retry(story: Story) -> LogRecord:
    case_id = observed(story, "inconclusive")
    assert story.retry(case_id).valid
    return _retry(story, case_id)


def _withdrawal(story: Story, finding_id: str) -> LogRecord:
    return written(story, events.FindingWithdrawn, OPERATOR, finding_id=finding_id, reason="")


@case(EVIDENCE, "unknown_finding", takes_id=True)
def a_withdrawal_of_an_unknown_finding(story: Story) -> LogRecord:
    two_tests(story)
    return _withdrawal(story, NO_FINDING)


@case(EVIDENCE, "already_withdrawn", takes_id=True)
def a_second_withdrawal(story: Story) -> LogRecord:
    two_tests(story)
    finding = found(story)
    assert story.withdraw(finding).valid
    return _withdrawal(story, finding)
