"""Matches born of a change, worked out by hand."""

from __future__ import annotations

from collections.abc import Collection

import pytest

from forktrail_behaviors.pattern.match import matches_born
from forktrail_behaviors.pattern.syntax import parse
from forktrail_projectors.graph.declared_tables import Tables
from forktrail_projectors.state import Changes, EdgeKey, End, NodeId, NodeKey, Row
from support.patterns import World

CLAIM, OTHER = NodeKey("Claim", "claim-1"), NodeKey("Claim", "claim-2")
TOPIC, SECOND = NodeKey("Topic", "topic-1"), NodeKey("Topic", "topic-2")
ABOUT = "MATCH (c:Claim)-[:ABOUT]->(t:Topic)"


@pytest.fixture
def world() -> World:
    world = World()
    for key in (CLAIM, OTHER, TOPIC, SECOND):
        world.add(key, n=1)
    return world


def born(world: World, changes: Changes, text: str) -> list[tuple[str, ...]]:
    return [tuple(str(key.id) for key in match) for match in matches_born(parse(text), world.graph, changes)]


def test_a_relation_makes_a_match_and_another_change_doesn_t(world: World) -> None:
    assert born(world, world.join("ABOUT", CLAIM, TOPIC), ABOUT) == [("claim-1", "topic-1")]
    assert born(world, world.join("ABOUT", OTHER, TOPIC), ABOUT) == [("claim-2", "topic-1")]
    assert born(world, world.join("REFUTES", OTHER, CLAIM), ABOUT) == []
    assert born(world, world.patch(SECOND, n=2), ABOUT) == []


def test_a_property_makes_a_match(world: World) -> None:
    world.join("ABOUT", CLAIM, TOPIC)
    text = f"{ABOUT} WHERE t.open = true AND c.n < t.weight"
    assert born(world, world.patch(TOPIC, weight=1.5), text) == []
    assert born(world, world.patch(TOPIC, open=True), text) == [("claim-1", "topic-1")]
    assert born(world, world.patch(CLAIM, n=2), text) == []
    assert born(world, world.patch(CLAIM, n=0), text) == [("claim-1", "topic-1")]


def test_a_relation_that_ends_makes_a_match_of_not_exists(world: World) -> None:
    text = "MATCH (c:Claim) WHERE NOT EXISTS { MATCH (c)<-[:REFUTES]-(:Claim) }"
    assert born(world, world.join("REFUTES", OTHER, CLAIM), text) == []
    assert born(world, world.part("REFUTES", OTHER, CLAIM), text) == [("claim-1",)]


def test_a_match_of_not_exists_is_found_from_afar(world: World) -> None:
    """What ends, or changes, lies two relations away from the only node of the match."""
    text = (
        "MATCH (t:Topic) WHERE NOT EXISTS { MATCH (t)<-[:ABOUT]-(c:Claim)<-[:REFUTES]-(d:Claim) WHERE d.open = true }"
    )
    world.join("ABOUT", CLAIM, TOPIC)
    world.join("REFUTES", OTHER, CLAIM)
    assert born(world, world.patch(OTHER, open=True), text) == []
    assert born(world, world.patch(OTHER, open=False), text) == [("topic-1",)]
    world.patch(OTHER, open=True)
    assert born(world, world.part("REFUTES", OTHER, CLAIM), text) == [("topic-1",)]


def test_both_relations_of_an_exists_may_end_at_once(world: World) -> None:
    text = "MATCH (t:Topic) WHERE NOT EXISTS { MATCH (t)<-[:ABOUT]-(c:Claim)<-[:REFUTES]-(:Claim) }"
    world.join("ABOUT", CLAIM, TOPIC)
    world.join("REFUTES", OTHER, CLAIM)
    overlay = world.overlay()
    for edge in (EdgeKey("ABOUT", CLAIM, TOPIC), EdgeKey("REFUTES", OTHER, CLAIM)):
        row = overlay.edge(edge)
        assert row is not None
        overlay.remove_edge(edge, row)
    assert born(world, world.commit(overlay.changes), text) == [("topic-1",)]


def test_exists_in_exists_is_found_too(world: World) -> None:
    """Every refutation of the claim is itself refuted."""
    text = (
        "MATCH (c:Claim) WHERE NOT EXISTS { MATCH (c)<-[:REFUTES]-(d:Claim)"
        " WHERE NOT EXISTS { MATCH (d)<-[:LEADS]-(:Topic) } }"
    )
    world.join("REFUTES", OTHER, CLAIM)
    assert ("claim-1",) in born(world, world.join("LEADS", TOPIC, OTHER), text)
    assert ("claim-1",) not in born(world, world.part("LEADS", TOPIC, OTHER), text)


def test_a_condition_in_exists_may_name_nodes_around_it(world: World) -> None:
    text = f"{ABOUT} WHERE EXISTS {{ MATCH (c)<-[:REFUTES]-(d:Claim) WHERE d.n = t.n OR d.text = t.text }}"
    world.join("ABOUT", CLAIM, TOPIC)
    assert born(world, world.join("REFUTES", OTHER, CLAIM), text) == [("claim-1", "topic-1")]
    assert born(world, world.patch(TOPIC, n=2), text) == []
    assert born(world, world.patch(OTHER, n=2), text) == [("claim-1", "topic-1")]


def test_a_retired_object_never_matches(world: World) -> None:
    text = "MATCH (c:Claim) WHERE c.n = 1"
    assert born(world, world.patch(CLAIM, text="x"), text) == [("claim-1",)]
    assert born(world, world.patch(CLAIM, retired=True), text) == []
    assert born(world, world.patch(CLAIM, text="y"), text) == []


def test_a_walk_is_found_from_each_of_its_relations(world: World) -> None:
    text = "MATCH (c:Claim)-[:LEADS*2..3]->(t:Topic)"
    assert born(world, world.join("LEADS", CLAIM, OTHER), text) == []
    assert born(world, world.join("LEADS", TOPIC, SECOND), text) == []
    assert born(world, world.join("LEADS", OTHER, TOPIC), text) == [
        ("claim-1", "topic-1"),
        ("claim-1", "topic-2"),
        ("claim-2", "topic-2"),
    ]


def test_two_variables_may_stand_for_one_node(world: World) -> None:
    text = "MATCH (a:Claim)-[:REFUTES]->(b:Claim)"
    assert born(world, world.join("REFUTES", CLAIM, CLAIM), text) == [("claim-1", "claim-1")]
    assert born(world, world.join("REFUTES", CLAIM, OTHER), "MATCH (a:Claim)-[:REFUTES]->(a)") == []


def test_the_data_of_a_relation_counts(world: World) -> None:
    text = "MATCH (c:Claim)-[r:ABOUT]->(t:Topic) WHERE r.n > 1"
    assert born(world, world.join("ABOUT", CLAIM, TOPIC, n=1), text) == []
    assert born(world, world.join("ABOUT", OTHER, TOPIC, n=2), text) == [("claim-2", "topic-1")]
    text = "MATCH (c:Claim)-[r:ABOUT]->(t:Topic) WHERE r.n <> 0"
    assert born(world, world.join("ABOUT", CLAIM, SECOND), text) == []  # null is neither


def test_built_in_tables_match_and_types_that_aren_t_declared_match_nothing(world: World) -> None:
    changes = world.add(NodeKey("Topic", "topic-3"))
    assert born(world, changes, "MATCH (t:Topic)-[:NEVER_DECLARED]->(u:Topic)") == []
    assert born(world, changes, "MATCH (t:Topic) WHERE NOT EXISTS { MATCH (t)-[:NEVER]->(:Unheard) }") == [("topic-3",)]
    assert born(world, changes, "MATCH (t:Topic) WHERE t.unheard = 1") == []
    goal = world.overlay()
    goal.put_node(NodeKey("Goal", "goal-1"), dict.fromkeys(world.graph.tables.nodes["Goal"].columns) | {"id": "goal-1"})
    assert born(world, world.commit(goal.changes), "MATCH (g:Goal)") == [("goal-1",)]


class Counted:
    """A graph that counts what it is asked, and how much it answers."""

    def __init__(self, world: World) -> None:
        self._graph = world.graph
        self.asked = 0

    @property
    def tables(self) -> Tables:
        return self._graph.tables

    def node(self, table: str, id: NodeId) -> Row | None:
        self.asked += 1
        return self._graph.node(table, id)

    def neighbours(self, table: str, end: End, node: NodeKey) -> Collection[NodeKey]:
        found = self._graph.neighbours(table, end, node)
        self.asked += 1 + len(found)
        return found

    def edge(self, key: EdgeKey) -> Row | None:
        self.asked += 1
        return self._graph.edge(key)


@pytest.mark.parametrize(
    "text",
    [
        f"{ABOUT} WHERE t.open = true",
        f"{ABOUT} WHERE NOT EXISTS {{ MATCH (c)<-[:REFUTES]-(:Claim) }}",
        "MATCH (c:Claim)-[:ABOUT]->(:Topic) WHERE c.n = 1",
    ],
)
def test_one_hop_costs_the_same_however_large_the_graph_is(text: str) -> None:
    """All claims are about one topic, which is the worst that a graph can be."""
    costs = []
    for size in (100, 10_000):
        world = World()
        world.add(TOPIC, open=True)
        overlay = world.overlay()
        for number in range(size):
            key = NodeKey("Claim", f"claim-{number}")
            overlay.put_node(key, world.row(key, n=1))
            overlay.put_edge("ABOUT", key, TOPIC, world.edge_row("ABOUT"))
        world.commit(overlay.changes)
        overlay = world.overlay()
        key = NodeKey("Claim", "claim-new")
        overlay.put_node(key, world.row(key, n=1))
        overlay.put_edge("ABOUT", key, TOPIC, world.edge_row("ABOUT"))
        changes = world.commit(overlay.changes)
        counted = Counted(world)
        assert len(matches_born(parse(text), counted, changes)) == 1
        costs.append(counted.asked)
    assert costs[0] == costs[1] <= 8
