"""The planner as a behavior: a new finding has the next test proposed where the run's setting says so, and no more."""

from __future__ import annotations

import pytest

from forktrail_behaviors.replay import replay
from forktrail_behaviors.testing import Kit
from forktrail_lab.planner import PACK
from forktrail_projectors.rules.log import ON_FINDING, PROPOSE_TESTS, WHEN_ASKED
from forktrail_schemas.events import TestProposed
from support.story import Story


def told(setting: str | None) -> Kit:
    """A run in which `root` was confirmed: `high`, `low` and `far` follow from it, `far` from something else too."""
    story = Story(run="test-run")
    story.open()
    story.register("root", enables=("inside",), impact=10)
    story.register("low", requires=("inside",), impact=20)
    story.register("high", requires=("inside",), impact=70)
    story.register("far", requires=("inside", "beyond"), impact=90)
    if setting is not None:
        story.set(PROPOSE_TESTS, setting)
    kit = Kit(PACK, register=False)
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
