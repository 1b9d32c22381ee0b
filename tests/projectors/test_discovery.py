"""Discovery, why-not and withdrawal on the real query engine, with answers worked out by hand or by search."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from benchmarks.eligible import eligible_by_search
from forktrail_projectors import discovery
from forktrail_projectors.discovery import (
    Candidate,
    Support,
    all_eligible_tests,
    eligible_tests,
    missing_support,
    run_state,
)
from forktrail_projectors.graph.bulk import build_graph
from forktrail_projectors.graph.cypher import CypherGraph
from forktrail_projectors.graph.memory import MemoryGraph
from forktrail_projectors.graph.protocol import Table
from forktrail_projectors.state import EdgeKey, Row, Value
from forktrail_projectors.why_not import Spent, Standing, why_not
from forktrail_projectors.withdrawal import loss_of
from forktrail_schemas import events
from forktrail_schemas.errors import GraphUnavailable, NotFound
from support.rows import ENGINE, SEED, changes, cursor, edge, node
from support.story import OPERATOR, RUNNER, Story


@pytest.fixture
def graph() -> Iterator[CypherGraph]:
    graph = CypherGraph.in_memory(ENGINE)
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


def test_after_a_withdrawal_why_not_names_it_and_what_has_to_wait_for_the_next_revision(
    graph: CypherGraph, story: Story
) -> None:
    case = story.report("root")
    root = story.settle(case)
    story.signed(events.FindingWithdrawn, OPERATOR, finding_id=root, reason="")
    assert why_not(graph, "root").reasons() == [
        f"attempted in r1: {case} was observed reproduced, accepted by ravi; its finding was withdrawn by olga; "
        "it can be tested again in the next revision"
    ]
    answer = why_not(graph, "mid")
    assert answer.gaps[0].spent == (Spent("root", "accepted", "olga"),)
    assert answer.outlook() == [
        "  the finding of root was withdrawn by olga; it can be tested again in the next revision"
    ]


def test_a_source_that_can_still_be_tried_is_not_said_to_be_spent(graph: CypherGraph, story: Story) -> None:
    assert why_not(graph, "mid").outlook() == []
    root = story.report("root")
    assert why_not(graph, "mid").outlook() == []
    story.settle(root, "inconclusive")
    assert why_not(graph, "mid").outlook() == []
    story.decide(story.report("side"), "deny")
    assert why_not(graph, "mid").outlook() == ["  side was denied; it can be tested again in the next revision"]
    story.signed(events.RevisionAdvanced, OPERATOR, from_revision="r1", to_revision="r2", reason="")
    assert why_not(graph, "mid").outlook() == []


def test_a_case_whose_support_is_gone_is_told_and_named_by_the_withdrawal(graph: CypherGraph, story: Story) -> None:
    root = story.settle(story.report("root"))
    mid, _ = story.propose("mid", [root])
    twin, _ = story.propose("twin", [root])
    story.decide(mid)
    assert missing_support(graph, "r1", ["mid", "twin", "top", "root"]) == {"top": ("b",)}
    assert loss_of(graph, root).cases == ((mid, "mid", "approved"), (twin, "twin", "proposed"))
    story.signed(events.FindingWithdrawn, OPERATOR, finding_id=root, reason="")
    assert missing_support(graph, "r1", ["mid", "twin", "top", "root"]) == {
        "mid": ("a",), "top": ("a", "b"), "twin": ("a",),
    }  # fmt: skip
    assert why_not(graph, "mid").reasons()[-1] == (
        f"attempted in r1: {mid} is approved, but its support is gone: it can't run now"
    )
    assert "it can't be approved now" in why_not(graph, "twin").reasons()[-1]
    story.settle(story.report("side"))
    assert why_not(graph, "mid").reasons() == [f"attempted in r1: {mid} is approved and waits for a runner"]
    assert missing_support(graph, "r1", ["mid", "twin"]) == {}


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


def random_graph(dice: random.Random) -> MemoryGraph:
    """Tests, findings and attempts in three revisions, with relations between them as chance has it."""
    count = 60
    capabilities = [node("Capability", f"c{n}") for n in range(dice.choice((3, 10, 40)))]
    tests = [node("TestCase", f"t{n}", asset="a", impact=dice.randrange(4), requests_max=1) for n in range(count)]
    findings, cases = [], []
    for n in range(count):
        revision, fallen = f"r{dice.randrange(3)}", dice.random() < 0.3
        findings.append(node("Finding", f"f{n}", revision=revision, withdrawn=fallen, depth=dice.randrange(5)))
        cases.append(node("Case", f"case{n}", revision=f"r{dice.randrange(3)}", retried=dice.random() < 0.4))
    edges: dict[EdgeKey, Row] = {}
    for test, _ in tests:
        for capability, _ in dice.sample(capabilities, min(len(capabilities), dice.choice((0, 1, 1, 2, 3)))):
            edges.update([edge("REQUIRES", test, capability)])
    for finding, _ in findings:
        for capability, _ in dice.sample(capabilities, min(len(capabilities), dice.choice((0, 1, 2)))):
            edges.update([edge("ENABLES", finding, capability)])
    for case, _ in dice.sample(cases, count // 2):
        edges.update([edge("ATTEMPTS", case, dice.choice(tests)[0])])
    graph = MemoryGraph()
    graph.commit(changes(*capabilities, *tests, *findings, *cases, edges=tuple(edges.items())), cursor(1))
    return graph


@pytest.mark.parametrize("chosen", [None, *range(5)])
def test_the_eligible_tests_are_those_that_a_search_through_all_rows_finds(
    tmp_path: Path, chosen: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    seed = SEED if chosen is None else chosen
    monkeypatch.setattr(discovery, "TESTS_PER_QUERY", 3)
    told = random_graph(random.Random(seed))
    build_graph(tmp_path / "run.graph", ENGINE, told)
    graph = CypherGraph.open(tmp_path / "run.graph", ENGINE)
    for revision in ("r0", "r1", "r2", "r3"):
        found = all_eligible_tests(graph, revision)
        assert [in_short(candidate) for candidate in found] == eligible_by_search(told.rows(), revision), f"seed {seed}"
        pages = [eligible_tests(graph, revision, skip=skip, limit=4) for skip in range(0, len(found) + 1, 4)]
        assert [candidate for page in pages for candidate in page.candidates] == found
        assert {page.total for page in pages} == {len(found)}
    graph.close()


def test_random_graphs_have_eligible_tests_and_others() -> None:
    graphs = [random_graph(random.Random(seed)) for seed in range(5)]
    eligible = [len(eligible_by_search(graph.rows(), f"r{n}")) for graph in graphs for n in range(3)]
    assert sum(0 < count < 60 for count in eligible) > 10


def in_short(candidate: Candidate) -> tuple[str, int, list[tuple[str, str]]]:
    pairs = [(pair.finding_id, pair.capability) for pair in candidate.support]
    return candidate.test_id, candidate.depth, pairs


class Withdrawing:
    """A graph in which a finding is withdrawn after the first query."""

    def __init__(self, story: Story, graph: CypherGraph, finding: str) -> None:
        self._story, self._graph, self._finding = story, graph, finding
        self._asked = False

    def query(self, cypher: str, parameters: Mapping[str, Value] | None = None) -> Table:
        table = self._graph.query(cypher, parameters)
        if not self._asked:
            self._asked = True
            self._story.withdraw(self._finding)
        return table


def test_a_test_whose_support_goes_while_it_is_looked_at_is_left_out(graph: CypherGraph, story: Story) -> None:
    finding = story.settle(story.report("root"))
    page = eligible_tests(Withdrawing(story, graph, finding), "r1")
    assert page.candidates == ()
