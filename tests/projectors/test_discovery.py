"""Discovery, why-not and withdrawal on the real query engine, with answers worked out by hand."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from forktrail_projectors.discovery import Candidate, Standing, Support, eligible_tests, run_state, why_not
from forktrail_projectors.graph.cypher import CypherGraph
from forktrail_projectors.withdrawal import loss_of
from forktrail_schemas import events
from forktrail_schemas.errors import GraphUnavailable, NotFound
from support.story import OPERATOR, RUNNER, Story


@pytest.fixture
def graph() -> Iterator[CypherGraph]:
    graph = CypherGraph.in_memory()
    yield graph
    graph.close()


@pytest.fixture
def story(graph: CypherGraph) -> Story:
    """root enables a; side enables a too; mid needs a, enables b; top needs a and b."""
    story = Story(graph=graph)
    story.open()
    story.register("root", enables=["a"], impact=10)
    story.register("side", enables=["a"], impact=20)
    story.register("mid", requires=["a"], enables=["b"], impact=50, asset="api")
    story.register("top", requires=["a", "b"], impact=90)
    story.register("twin", requires=["a"], impact=50, asset="api")
    return story


def names(graph: CypherGraph, revision: str = "r1") -> list[str]:
    return [candidate.test_id for candidate in eligible_tests(graph, revision).candidates]


def test_nothing_is_eligible_before_any_finding(graph: CypherGraph, story: Story) -> None:
    assert names(graph) == []
    story.report("root")
    assert names(graph) == []


def test_a_reviewed_finding_makes_tests_eligible_by_impact_and_then_id(graph: CypherGraph, story: Story) -> None:
    finding = story.settle(story.report("root"))
    page = eligible_tests(graph, "r1")
    assert page.total == 2
    assert page.candidates[0] == Candidate("mid", "api", "Test mid", 50, 2, "d" * 64, 1, (Support(finding, "a"),))
    assert names(graph) == ["mid", "twin"]


def test_every_required_capability_has_to_be_met(graph: CypherGraph, story: Story) -> None:
    root = story.settle(story.report("root"))
    mid_case, _ = story.propose("mid", [root])
    mid = story.settle(mid_case)
    page = eligible_tests(graph, "r1")
    assert [candidate.test_id for candidate in page.candidates] == ["top", "twin"]
    assert page.candidates[0].support == tuple(sorted([Support(root, "a"), Support(mid, "b")]))
    assert page.candidates[0].depth == 2


def test_an_unreviewed_rejected_or_negative_observation_supports_nothing(graph: CypherGraph, story: Story) -> None:
    case = story.report("root")
    story.decide(case)
    story.start(case)
    assert names(graph) == []
    story.tell(story.observation(case, "reproduced"), RUNNER)
    assert names(graph) == []
    story.review(case, "reject")
    assert names(graph) == []
    story.settle(story.report("side"), "not_reproduced")
    assert names(graph) == []


def test_an_attempt_suppresses_a_test_until_it_is_inconclusive_and_retried(graph: CypherGraph, story: Story) -> None:
    root = story.settle(story.report("root"))
    case, _ = story.propose("mid", [root])
    assert names(graph) == ["twin"]
    story.settle(case, "inconclusive")
    assert names(graph) == ["twin"]
    story.signed(events.RetryRequested, OPERATOR, case_id=case, reason="")
    assert names(graph) == ["mid", "twin"]


def test_pages_cover_everything_once_and_tell_the_total(graph: CypherGraph, story: Story) -> None:
    for number in range(7):
        story.register(f"extra-{number}", requires=["a"], impact=number)
    story.settle(story.report("root"))
    pages = [eligible_tests(graph, "r1", skip=skip, limit=4) for skip in (0, 4, 8)]
    assert [page.total for page in pages] == [9, 9, 9]
    seen = [candidate.test_id for page in pages for candidate in page.candidates]
    assert seen == ["mid", "twin", *(f"extra-{number}" for number in range(6, -1, -1))]


def test_a_finding_of_another_revision_is_history_and_why_not_says_support_missing(
    graph: CypherGraph, story: Story
) -> None:
    root = story.settle(story.report("root"))
    story.signed(events.RevisionAdvanced, OPERATOR, from_revision="r1", to_revision="r2", reason="")
    assert names(graph, "r2") == []
    answer = why_not(graph, "mid")
    assert not answer.eligible
    assert [(gap.capability, gap.would_provide, gap.historic) for gap in answer.gaps] == [
        ("a", ("root", "side"), (root,))
    ]
    assert answer.reasons()[0].startswith("support missing: a")
    assert "fixed" not in " ".join(answer.reasons())


def test_why_not_tells_attempts_reports_and_unknown_tests_apart(graph: CypherGraph, story: Story) -> None:
    assert why_not(graph, "root").needs_report
    case = story.report("root")
    assert why_not(graph, "root").standing == Standing(case, "proposed", None, None)
    root = story.settle(case)
    assert why_not(graph, "root").standing == Standing(case, "accepted", "reproduced", "ravi")
    assert why_not(graph, "mid").eligible
    story.signed(events.FindingWithdrawn, OPERATOR, finding_id=root, reason="")
    assert [gap.withdrawn for gap in why_not(graph, "mid").gaps] == [(root,)]
    with pytest.raises(NotFound):
        why_not(graph, "no-such-test")


def test_a_withdrawal_takes_only_what_nothing_else_provides(graph: CypherGraph, story: Story) -> None:
    root = story.settle(story.report("root"))
    loss = loss_of(graph, root)
    assert loss.tests == (("mid", ("a",)), ("twin", ("a",)))
    assert loss.short_already == ("top",)
    side = story.settle(story.report("side"))
    loss = loss_of(graph, root)
    assert (loss.tests, loss.kept) == ((), (("a", (side,)),))
    story.signed(events.FindingWithdrawn, OPERATOR, finding_id=root, reason="")
    assert names(graph) == ["mid", "twin"]
    assert not loss_of(graph, root).current
    assert [test for test, _ in loss_of(graph, side).tests] == ["mid", "twin"]


def test_a_withdrawal_names_the_findings_that_rested_on_it(graph: CypherGraph, story: Story) -> None:
    root = story.settle(story.report("root"))
    case, _ = story.propose("mid", [root])
    mid = story.settle(case)
    assert loss_of(graph, root).resting == (mid,)
    with pytest.raises(NotFound):
        loss_of(graph, "finding-00000000000000000000")


def test_a_graph_without_a_run_is_an_error_and_not_an_empty_answer(graph: CypherGraph) -> None:
    with pytest.raises(GraphUnavailable) as raised:
        run_state(graph)
    assert raised.value.code == "run_not_open"


def test_why_not_never_tells_an_observation_as_a_finding(graph: CypherGraph, story: Story) -> None:
    case = story.report("root")
    told = [why_not(graph, "root").reasons()]
    story.decide(case)
    told.append(why_not(graph, "root").reasons())
    story.start(case)
    story.tell(story.observation(case, "reproduced"), RUNNER)
    told.append(why_not(graph, "root").reasons())
    story.review(case, "reject")
    told.append(why_not(graph, "root").reasons())
    assert told == [
        [f"attempted in r1: {case} waits for a person's approval"],
        [f"attempted in r1: {case} is approved and waits for a runner"],
        [f"attempted in r1: {case} was observed reproduced and waits for review"],
        [
            f"attempted in r1: {case} was observed reproduced, and ravi rejected that; "
            "that stands until the next revision"
        ],
    ]
