"""The planner as a behavior: a new finding has the next test proposed where the run's setting says so, and no more."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from forktrail_behaviors.replay import replay
from forktrail_behaviors.testing import FixtureModel, Kit
from forktrail_lab.planner import PACK
from forktrail_projectors.rules.log import ON_FINDING, PLANNER_MODEL, PROPOSE_TESTS, WHEN_ASKED
from forktrail_schemas.events import BehaviorFailed, ModelResponded, TestProposed
from support.story import Story


def told(setting: str | None, *models: FixtureModel) -> Kit:
    """A run in which `root` was confirmed: `high`, `low` and `far` follow from it, `far` from something else too."""
    story = Story(run="test-run")
    story.open()
    story.register("root", enables=("inside",), impact=10)
    story.register("low", requires=("inside",), impact=20)
    story.register("high", requires=("inside",), impact=70)
    story.register("far", requires=("inside", "beyond"), impact=90)
    if setting is not None:
        story.set(PROPOSE_TESTS, setting)
    for model in models:
        story.set(PLANNER_MODEL, model.name)
    kit = Kit(replace(PACK, models=models), register=False)
    kit.log.records = story.records
    kit.register()
    story.records = kit.log.records
    for record in kit.log.records[story.projector.cursor.next_offset :]:
        story.projector.apply([record])
    story.settle(story.report("root"))
    kit.log.records = story.records
    kit.run()
    return kit


def test_a_new_finding_has_the_test_of_highest_impact_proposed() -> None:
    kit = told(ON_FINDING)
    (proposed,) = kit.events(TestProposed)
    assert (proposed.test_id, proposed.rationale) == ("high", "highest impact (70) of 2 eligible tests")
    assert proposed.meta.actor.kind == "behavior"
    graph, _ = kit.folded()
    (case,) = [row for key, row in graph.rows() if key.table == "Case" and row.get("test") == "high"]
    assert (case["status"], case["approver"]) == ("proposed", None)
    reactor = kit.reactor()
    replayed = replay("test-run", kit.log, reactor, kit.log.end())
    reactor.close()
    assert (replayed.divergences, replayed.queries) == ([], 3)


@pytest.mark.parametrize("setting", [None, WHEN_ASKED])
def test_it_proposes_nothing_unless_it_is_told_to(setting: str | None) -> None:
    assert told(setting).events(TestProposed) == []


def choosing(test: str | None, confidence: float = 0.9) -> FixtureModel:
    return FixtureModel("analyst", lambda request: {"test_id": test, "confidence": confidence, "why": "it is near"})


def test_a_model_chooses_among_the_graphs_candidates() -> None:
    model = choosing("low")
    kit = told(ON_FINDING, model)
    (proposed,) = kit.events(TestProposed)
    assert (proposed.test_id, proposed.rationale) == ("low", "analyst chose it (0.9): it is near")
    request: Mapping[str, Any] = model.asked[0]
    offered = json.loads(request["messages"][1]["content"])["candidates"]
    assert offered == [{"test_id": "high", "impact": 70}, {"test_id": "low", "impact": 20}]


@pytest.mark.parametrize("test", ["far", "root", "no-such-test"])
def test_a_choice_outside_the_candidates_is_refused_and_recorded(test: str) -> None:
    kit = told(ON_FINDING, choosing(test))
    assert kit.events(TestProposed) == []
    (failed,) = kit.events(BehaviorFailed)
    assert failed.error_type == "NotACandidate"
    assert f"analyst chose '{test}', which is not among 2 candidates" in failed.message
    (responded,) = kit.events(ModelResponded)
    assert test in (responded.answer or "")


def test_a_model_that_is_not_sure_abstains_and_one_that_wants_none_proposes_none() -> None:
    unsure = told(ON_FINDING, choosing("low", 0.4))
    assert unsure.events(TestProposed) == []
    (responded,) = unsure.events(ModelResponded)
    assert responded.outcome == "abstained"
    assert told(ON_FINDING, choosing(None)).events(TestProposed) == []
