from __future__ import annotations

import hashlib
from typing import Any

import pytest

from forktrail_projectors.rules.support import is_current
from forktrail_projectors.state import EdgeKey, NodeKey, Row
from forktrail_schemas import events
from forktrail_schemas.events.base import Event
from support.refusals import Refusal, check
from support.refused_evidence import EVIDENCE, observed, running, start, two_tests
from support.story import EVIDENCE_SHA256, HOLDERS, OPERATOR, REVIEWER, RUNNER, STRANGER, Story

each = pytest.mark.parametrize("refusal", EVIDENCE, ids=lambda refusal: str(refusal.name))
STAMPS = ("created_event", "created_offset", "changed_event", "changed_offset")


@each
def test_a_refused_event_changes_nothing_and_takes_its_id_only_where_it_came_at_the_wrong_time(
    refusal: Refusal,
) -> None:
    check(refusal)


def derived(kind: str, event: Event) -> str:
    digest = hashlib.sha256(f"forktrail/{kind}/{event.meta.event_id}".encode()).hexdigest()
    return f"{kind}-{digest[:20]}"


def told() -> Story:
    story = Story()
    two_tests(story)
    return story


def bare(row: Row) -> dict[str, object]:
    """A row without its stamps."""
    return {name: value for name, value in row.items() if name not in STAMPS}


def relations(story: Story, since: int) -> set[tuple[str, NodeKey, NodeKey]]:
    """The domain relations that were made at an offset or later."""
    found = ((key, row) for key, row in story.rows().items() if isinstance(key, EdgeKey))
    return {tuple(key) for key, row in found if row.get("created_offset", -1) >= since}  # type: ignore[operator, misc]


def budget(story: Story, name: str) -> object:
    return story.row("Budget", name)["used"]


# Report, case, approval, start, observation, review, finding: each step's rows, worked by hand from DESIGN.md.


def test_a_report_on_an_eligible_test_opens_a_case() -> None:
    story = told()
    offset = len(story.records)
    report = story.event(events.ReportFiled, test_id="root", summary="look here")
    assert story.tell(report).valid
    report_id, case_id = derived("report", report), derived("case", report)
    assert bare(story.row("Report", report_id)) == {
        "id": report_id,
        "test": "root",
        "revision": "r1",
        "researcher": "rita",
        "summary": "look here",
        "details": "",
        "outcome": "case_opened",
        "case_id": case_id,
    }
    assert bare(story.row("Case", case_id)) == {
        "id": case_id,
        "test": "root",
        "asset": "gateway",
        "revision": "r1",
        "status": "proposed",
        "outcome": None,
        "opened_by": "report",
        "proposer": "rita",
        "approval": None,
        "approver": None,
        "runner": None,
        "observation": None,
        "reviewer": None,
        "depth": 0,
        "retried": False,
    }
    report_key, case_key, test = NodeKey("Report", report_id), NodeKey("Case", case_id), NodeKey("TestCase", "root")
    assert relations(story, offset) == {
        ("REPORTS", report_key, test),
        ("OPENED", report_key, case_key),
        ("ATTEMPTS", case_key, test),
    }
    run = story.row("Run", "run")
    assert (run["last_case"], run["last_case_offset"]) == (case_id, offset)
    assert [budget(story, name) for name in ("cases", "http-requests", "finding-depth")] == [1, 0, 0]
    assert story.related("PRODUCED", NodeKey("Event", offset)) == [case_key, report_key]


def test_an_approval_lets_the_case_run() -> None:
    story = told()
    case_id = story.report("root")
    offset = len(story.records)
    fields: dict[str, Any] = {"subject": {"kind": "case", "id": case_id}, "decision": "approve", "reason": "go"}
    event, verdict = story.signed(events.ApprovalDecided, OPERATOR, **fields)
    assert verdict.valid
    approval = derived("approval", event)
    assert bare(story.row("Approval", approval)) == {
        "id": approval,
        "case_id": case_id,
        "decision": "approve",
        "approver": "olga",
        "reason": "go",
    }
    case = story.row("Case", case_id)
    assert (case["status"], case["approval"], case["approver"]) == ("approved", approval, "olga")
    assert relations(story, offset) == {("DECIDES", NodeKey("Approval", approval), NodeKey("Case", case_id))}


def test_a_denial_ends_the_case() -> None:
    story = told()
    case_id = story.report("root")
    assert story.decide(case_id, "deny").valid
    case = story.row("Case", case_id)
    assert (case["status"], case["approver"]) == ("denied", "olga")
    assert story.row("Approval", str(case["approval"]))["decision"] == "deny"


def test_a_denial_needs_no_support() -> None:
    story = told()
    finding = story.settle(story.report("root"))
    case_id, _ = story.propose("leaf", [finding])
    story.withdraw(finding)
    assert story.decide(case_id, "deny").valid


def test_a_start_takes_the_case_and_reserves_its_requests() -> None:
    story = told()
    case_id = story.report("root")
    story.decide(case_id)
    offset = len(story.records)
    assert story.start(case_id).valid
    case = story.row("Case", case_id)
    assert (case["status"], case["runner"], case["outcome"]) == ("running", RUNNER.key_id, None)
    assert budget(story, "http-requests") == 2
    assert relations(story, offset) == set()


def test_an_observation_is_kept_with_its_evidence_and_receipt() -> None:
    story = Story()
    case_id = running(story)
    offset = len(story.records)
    event = story.observation(case_id, "reproduced")
    assert story.tell(event, RUNNER).valid
    observation = derived("observation", event)
    assert bare(story.row("Observation", observation)) == {
        "id": observation,
        "case_id": case_id,
        "test": "root",
        "revision": "r1",
        "outcome": "reproduced",
        "reason": "rule 1",
        "runner": RUNNER.key_id,
        "evidence_sha256": EVIDENCE_SHA256,
        "evidence_media_type": "application/json",
        "evidence_bytes": 100,
        "receipt": event.receipt,
        "requests": 2,
        "interrupted": False,
    }
    case = story.row("Case", case_id)
    assert (case["status"], case["outcome"], case["observation"]) == ("observed", "reproduced", observation)
    assert relations(story, offset) == {("OBSERVES", NodeKey("Observation", observation), NodeKey("Case", case_id))}


def test_an_interrupted_test_keeps_its_whole_reserve_since_nobody_knows_what_was_sent() -> None:
    story = Story()
    case_id = running(story)
    before = story.row("Budget", "http-requests")["used"]
    story.tell(
        story.observation(case_id, "inconclusive").model_copy(update={"interrupted": True, "requests": 0}), RUNNER
    )
    assert story.row("Case", case_id)["status"] == "observed"
    assert story.row("Budget", "http-requests")["used"] == before == 2


def test_an_interrupted_test_is_inconclusive() -> None:
    story = Story()
    case_id = running(story)
    event = story.observation(case_id, "inconclusive").model_copy(update={"interrupted": True})
    assert story.tell(event, RUNNER).valid
    assert story.row("Observation", derived("observation", event))["interrupted"] is True


def test_an_observation_of_a_revision_that_is_over_is_kept_as_history() -> None:
    story = Story()
    case_id = running(story)
    story.advance("r2")
    assert story.tell(story.observation(case_id, "reproduced"), RUNNER).valid
    finding, verdict = story.review(case_id)
    assert verdict.valid
    assert story.row("Finding", finding)["revision"] == "r1"


def test_an_accepted_review_of_a_reproduced_observation_makes_a_finding() -> None:
    story = Story()
    case_id = observed(story)
    observation = str(story.row("Case", case_id)["observation"])
    offset = len(story.records)
    fields: dict[str, Any] = {"case_id": case_id, "observation_id": observation, "decision": "accept", "note": "seen"}
    event, verdict = story.signed(events.ReviewDecided, REVIEWER, **fields)
    assert verdict.valid
    review, finding = derived("review", event), derived("finding", event)
    assert bare(story.row("Review", review)) == {
        "id": review,
        "case_id": case_id,
        "observation": observation,
        "decision": "accept",
        "reviewer": "ravi",
        "note": "seen",
    }
    assert bare(story.row("Finding", finding)) == {
        "id": finding,
        "title": "Test root",
        "case_id": case_id,
        "test": "root",
        "asset": "gateway",
        "revision": "r1",
        "researcher": "rita",
        "observation": observation,
        "review": review,
        "impact": 50,
        "depth": 0,
        "withdrawn": False,
        "withdrawn_by": None,
        "withdrawn_reason": None,
    }
    case = story.row("Case", case_id)
    assert (case["status"], case["reviewer"]) == ("accepted", "ravi")
    review_key, finding_key = NodeKey("Review", review), NodeKey("Finding", finding)
    assert relations(story, offset) == {
        ("REVIEWS", review_key, NodeKey("Observation", observation)),
        ("ESTABLISHES", review_key, finding_key),
        ("FOUND_IN", finding_key, NodeKey("Case", case_id)),
        ("ENABLES", finding_key, NodeKey("Capability", "way")),
    }


@pytest.mark.parametrize(
    ("outcome", "decision", "status"),
    [
        ("reproduced", "reject", "rejected"),
        ("not_reproduced", "accept", "accepted"),
        ("inconclusive", "accept", "accepted"),
        ("not_reproduced", "reject", "rejected"),
    ],
)
def test_any_other_review_makes_none(outcome: str, decision: str, status: str) -> None:
    story = Story()
    case_id = observed(story, outcome)
    assert story.review(case_id, decision)[1].valid
    assert story.row("Case", case_id)["status"] == status
    assert not [key for key in story.rows() if isinstance(key, NodeKey) and key.table == "Finding"]


def test_a_finding_enables_every_capability_that_its_test_would() -> None:
    story = told()
    story.register("wide", enables=["x", "y", "z"])
    finding = story.settle(story.report("wide"))
    assert [key.id for key in story.related("ENABLES", NodeKey("Finding", finding))] == ["x", "y", "z"]


# Reports that open no case.


def reported(story: Story, test_id: str) -> Row:
    event = story.event(events.ReportFiled, test_id=test_id, summary="")
    assert story.tell(event).valid
    return story.row("Report", derived("report", event))


def test_a_report_without_support_is_kept_and_opens_no_case() -> None:
    story = told()
    before = story.row("Run", "run"), budget(story, "cases")
    offset = len(story.records)
    report = reported(story, "leaf")
    assert (report["outcome"], report["case_id"]) == ("support_missing", None)
    assert relations(story, offset) == {("REPORTS", NodeKey("Report", str(report["id"])), NodeKey("TestCase", "leaf"))}
    assert (story.row("Run", "run"), budget(story, "cases")) == before


def test_a_second_report_names_the_case_that_there_is() -> None:
    story = told()
    case_id = story.report("root")
    report = reported(story, "root")
    assert (report["outcome"], report["case_id"]) == ("case_exists", case_id)
    assert budget(story, "cases") == 1


def test_a_case_that_exists_is_named_even_where_support_is_gone() -> None:
    story = told()
    finding = story.settle(story.report("root"))
    case_id, _ = story.propose("leaf", [finding])
    story.withdraw(finding)
    assert reported(story, "leaf")["case_id"] == case_id


def test_a_report_past_a_budget_is_kept_and_opens_no_case() -> None:
    story = told()
    story.budget("cases", 0)
    report = reported(story, "root")
    assert (report["outcome"], report["case_id"]) == ("budget_exhausted", None)
    assert (budget(story, "cases"), story.row("Run", "run")["last_case"]) == (0, None)


def test_a_report_rests_on_every_current_finding_that_provides_what_its_test_requires() -> None:
    story = told()
    story.register("second-root", enables=["way"])
    first, second = story.settle(story.report("root")), story.settle(story.report("second-root"))
    case_id = str(reported(story, "leaf")["case_id"])
    assert {key.id for key in story.related("RESTS_ON", NodeKey("Case", case_id))} == {first, second}
    assert story.row("Case", case_id)["depth"] == 1


# Proposals, support and depth.


def test_a_proposal_rests_on_just_the_findings_that_it_names() -> None:
    story = told()
    story.register("second-root", enables=["way"])
    first = story.settle(story.report("root"))
    story.settle(story.report("second-root"))
    offset = len(story.records)
    case_id, verdict = story.propose("leaf", [first, first])
    assert verdict.valid
    case_key = NodeKey("Case", case_id)
    assert relations(story, offset) == {
        ("ATTEMPTS", case_key, NodeKey("TestCase", "leaf")),
        ("RESTS_ON", case_key, NodeKey("Finding", first)),
    }
    case = story.row("Case", case_id)
    assert (case["opened_by"], case["proposer"], case["depth"]) == ("proposal", "planner", 1)


def test_a_root_has_depth_0_what_rests_on_it_1_and_what_rests_on_that_2() -> None:
    story = told()
    story.register("next", requires=["way"], enables=["further"])
    story.register("end", requires=["way", "further"], enables=["goal"])
    root = story.settle(story.report("root"))
    following = story.settle(story.propose("next", [root])[0])
    end = story.settle(story.propose("end", [root, following])[0])
    assert [story.row("Finding", id)["depth"] for id in (root, following, end)] == [0, 1, 2]
    assert budget(story, "finding-depth") == 2


def test_the_deepest_case_stays_the_deepest_when_a_shallow_one_follows() -> None:
    story = told()
    root = story.settle(story.report("root"))
    story.propose("leaf", [root])
    story.register("other")
    story.report("other")
    assert budget(story, "finding-depth") == 1


def test_a_capability_that_two_findings_provide_survives_the_withdrawal_of_one() -> None:
    story = told()
    story.register("second-root", enables=["way"])
    first, second = story.settle(story.report("root")), story.settle(story.report("second-root"))
    case_id, _ = story.propose("leaf", [first])
    assert story.withdraw(first).valid
    assert story.decide(case_id).valid
    assert story.start(case_id).valid
    story.register("third", requires=["way"])
    assert story.propose("third", [second])[1].valid
    assert story.withdraw(second).valid
    assert reported(story, "third")["outcome"] == "case_exists"
    story.register("fourth", requires=["way"])
    assert reported(story, "fourth")["outcome"] == "support_missing"


def test_a_withdrawn_finding_stays_on_record() -> None:
    story = told()
    finding = story.settle(story.report("root"))
    before = story.row("Finding", finding)
    event, verdict = story.signed(events.FindingWithdrawn, OPERATOR, finding_id=finding, reason="was wrong")
    assert verdict.valid
    assert story.row("Finding", finding) == {
        **before,
        "withdrawn": True,
        "withdrawn_by": "olga",
        "withdrawn_reason": "was wrong",
        "changed_event": event.meta.event_id,
        "changed_offset": len(story.records) - 1,
    }
    assert story.related("ENABLES", NodeKey("Finding", finding)) == [NodeKey("Capability", "way")]


@pytest.mark.parametrize(
    ("revision", "withdrawn", "current"),
    [("r1", False, True), ("r1", True, False), ("r2", False, False), ("r2", True, False)],
)
def test_a_finding_is_current_in_its_own_revision_until_it_is_withdrawn(
    revision: str, withdrawn: bool, current: bool
) -> None:
    assert is_current({"revision": revision, "withdrawn": withdrawn}, "r1") is current


def test_a_finding_of_r1_supports_nothing_in_r2_and_is_not_rewritten() -> None:
    story = told()
    finding = story.settle(story.report("root"))
    before = story.row("Finding", finding)
    offset = len(story.records)
    assert story.advance("r2").valid
    assert story.row("Finding", finding) == before
    assert bare(story.row("Revision", "r2")) == {"id": "r2", "ordinal": 2}
    run = story.row("Run", "run")
    assert (run["active_revision"], run["revisions"], run["changed_offset"]) == ("r2", 2, offset)
    assert reported(story, "leaf")["outcome"] == "support_missing"
    # Each test may be tried anew, and what r2 finds counts in r2.
    again = story.settle(story.report("root"))
    assert story.row("Finding", again)["revision"] == "r2"
    assert reported(story, "leaf")["outcome"] == "case_opened"


# Retries.


def test_a_retry_opens_an_inconclusive_test_again_and_no_further() -> None:
    story = Story()
    first = observed(story, "inconclusive")
    assert story.propose("root", [])[1].reason == "case_exists"
    before = story.row("Case", first)
    assert story.retry(first).valid
    assert {name for name, value in story.row("Case", first).items() if value != before[name]} == {
        "retried",
        "changed_event",
        "changed_offset",
    }
    second, verdict = story.propose("root", [])
    assert verdict.valid
    assert second != first
    assert story.propose("root", [])[1].reason == "case_exists"


def test_a_retry_before_the_review_leaves_the_review_possible() -> None:
    story = Story()
    case_id = observed(story, "inconclusive")
    assert story.retry(case_id).valid
    assert story.review(case_id)[1].valid


# Who may judge.


def judged_by_the_approver(story: Story) -> str:
    """The reason of a review by the approver, who has a second key as a reviewer."""
    both = HOLDERS[OPERATOR.key_id]
    assert story.add_key(STRANGER, "reviewer", holder=both).valid
    case_id = story.report("root")
    assert story.decide(case_id).valid
    assert story.start(case_id).valid
    assert story.tell(story.observation(case_id, "reproduced"), RUNNER).valid
    observation = story.row("Case", case_id)["observation"]
    fields: dict[str, Any] = {"case_id": case_id, "observation_id": observation, "decision": "accept", "note": ""}
    return story.tell(story.event(events.ReviewDecided, both, **fields), STRANGER).reason


def test_one_person_may_approve_and_review_where_the_run_lets_them() -> None:
    story = told()
    assert story.set("same-person-may-review", "true").valid
    assert judged_by_the_approver(story) == ""


def test_one_person_may_not_where_the_run_says_nothing() -> None:
    assert judged_by_the_approver(told()) == "same_person"


# Budgets hold exactly.


def test_cases_are_opened_up_to_their_budget_and_not_one_more() -> None:
    story = told()
    story.budget("cases", 3)
    for number in range(5):
        story.register(f"test-{number}")
    outcomes = [reported(story, f"test-{number}")["outcome"] for number in range(5)]
    assert outcomes == ["case_opened"] * 3 + ["budget_exhausted"] * 2
    assert budget(story, "cases") == 3
    story.budget("cases", 4)
    assert reported(story, "test-3")["outcome"] == "case_opened"
    assert reported(story, "test-4")["outcome"] == "budget_exhausted"


def test_depth_is_allowed_up_to_its_budget() -> None:
    story = told()
    story.register("next", requires=["way"], enables=["further"])
    story.register("end", requires=["further"])
    story.budget("finding-depth", 1)
    root = story.settle(story.report("root"))
    following = story.settle(story.propose("next", [root])[0])
    assert story.propose("end", [following])[1].reason == "budget_exhausted"
    assert reported(story, "end")["outcome"] == "budget_exhausted"
    assert budget(story, "finding-depth") == 1


def test_requests_are_reserved_on_start_and_what_was_not_sent_is_released() -> None:
    story = told()
    story.budget("http-requests", 5)
    cases = []
    for number in range(3):
        story.register(f"test-{number}", requests_max=2)
        cases.append(story.report(f"test-{number}"))
        assert story.decide(cases[-1]).valid
    assert [story.start(case_id).reason for case_id in cases] == ["", "", "budget_exhausted"]
    assert budget(story, "http-requests") == 4  # 2 + 2 reserved; 2 more would make 6 of 5
    one = story.observation(cases[0], "reproduced").model_copy(update={"requests": 1})
    assert story.tell(one, RUNNER).valid
    assert budget(story, "http-requests") == 3  # 1 sent, 2 reserved
    assert story.append(start(story, cases[2])).valid
    assert budget(story, "http-requests") == 5
    for case_id in cases[1:]:
        nothing = story.observation(case_id, "inconclusive").model_copy(update={"requests": 0})
        assert story.tell(nothing, RUNNER).valid
    assert budget(story, "http-requests") == 1


def test_a_test_without_requests_runs_on_an_empty_budget() -> None:
    story = told()
    story.register("silent", requests_max=0)
    story.budget("http-requests", 0)
    case_id = story.report("silent")
    assert story.decide(case_id).valid
    assert story.start(case_id).valid


# Overtaken proposals.


def test_a_proposal_stands_where_no_case_was_opened_since_it_was_decided_on() -> None:
    story = told()
    finding = story.settle(story.report("root"))
    assert story.propose("leaf", [finding], as_of=len(story.records))[1].valid


def test_a_case_opened_just_before_the_proposer_read_does_not_overtake_it() -> None:
    story = told()
    story.register("other")
    finding = story.settle(story.report("root"))
    story.report("other")
    opened_at = story.row("Run", "run")["last_case_offset"]
    assert opened_at == len(story.records) - 1
    assert story.propose("leaf", [finding], as_of=len(story.records) - 1)[1].reason == "overtaken"
    assert story.propose("leaf", [finding], as_of=len(story.records) - 1)[1].valid  # the last case's offset plus one


def test_other_events_do_not_overtake_a_proposal() -> None:
    story = told()
    finding = story.settle(story.report("root"))
    as_of = len(story.records)
    story.tell(story.event(events.GoalSet, text="on"))
    reported(story, "root")
    assert story.propose("leaf", [finding], as_of=as_of)[1].valid


def test_of_two_proposals_decided_on_at_one_offset_the_first_wins() -> None:
    story = told()
    story.register("other", requires=["way"])
    finding = story.settle(story.report("root"))
    as_of = len(story.records)
    assert story.propose("leaf", [finding], as_of=as_of)[1].valid
    second = story.propose("other", [finding], as_of=as_of)[1]
    assert (second.kind, second.reason, second.detail) == ("void", "overtaken", story.row("Run", "run")["last_case"])


def test_a_case_whose_runner_lost_its_key_can_be_retried_and_one_that_runs_can_not() -> None:
    story = Story()
    case_id = running(story)
    test_id = str(story.row("Case", case_id)["test"])
    assert story.retry(case_id).reason == "not_inconclusive"
    assert story.revoke(RUNNER).valid
    assert story.retry(case_id).valid
    again = story.report(test_id)
    assert story.row("Case", again)["status"] == "proposed"
