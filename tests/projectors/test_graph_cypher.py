"""What only the graph in the engine does: readings of one moment, pruned cursors, lookups instead of scans."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from forktrail_projectors.graph import cursor_table, reads
from forktrail_projectors.graph.cypher import CypherGraph
from forktrail_projectors.graph.declared_tables import BUILT_IN
from forktrail_projectors.state import Changes, EdgesKey, NodeKey, Value
from forktrail_schemas.errors import GraphError
from support.rows import ENGINE, changes, content, cursor, edge, node


@pytest.fixture
def engine_graph(tmp_path: Path) -> Iterator[CypherGraph]:
    graph = CypherGraph.open(tmp_path / "run.graph", ENGINE)
    yield graph
    graph.close()


def test_all_rows_are_those_of_one_moment(engine_graph: CypherGraph) -> None:
    engine_graph.commit(changes(*(node("Event", offset) for offset in range(5))), cursor(5))
    reading = engine_graph.rows()
    first = next(reading)
    engine_graph.commit(changes(node("Event", 5), node("Goal", "g")), cursor(6))
    if ENGINE == "ladybug":  # kuzu's waits for readers
        engine_graph.checkpoint()
    assert len([first, *reading]) == 5
    assert len(content(engine_graph)) == 7


def test_a_reading_of_rows_ends_with_the_graph(engine_graph: CypherGraph) -> None:
    engine_graph.commit(changes(*(node("Event", offset) for offset in range(5))), cursor(5))
    reading = engine_graph.rows()
    next(reading)
    engine_graph.close()
    with pytest.raises(GraphError):
        list(reading)


def test_relations_are_found_in_a_graph_that_grew_since_they_were_first_asked_for(
    engine_graph: CypherGraph,
) -> None:
    keys = [EdgesKey("PRODUCED", "target", NodeKey("Goal", f"g{n}")) for n in range(1_500)]
    assert not any(engine_graph.edges(keys[:3]).values())
    goals = [node("Goal", key.node.id) for key in keys]
    events = [node("Event", offset) for offset in range(len(keys))]
    produced = [edge("PRODUCED", event[0], goal[0]) for event, goal in zip(events, goals, strict=True)]
    engine_graph.commit(changes(*goals, *events, edges=tuple(produced)), cursor(len(events)))
    found = engine_graph.edges(keys)
    assert [found[key] for key in keys] == [(key,) for key, _ in produced]


def test_only_the_last_cursor_is_kept_for_long(engine_graph: CypherGraph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cursor_table, "COMMITS_PER_PRUNING", 10)
    for number in range(1, 26):
        engine_graph.commit(Changes(), cursor(number))
    assert engine_graph.query("MATCH (c:Cursor) RETURN count(*)").rows == [(6,)]
    assert engine_graph.query("MATCH (c:Cursor) RETURN max(c.next_offset)").rows == [(25,)]


@pytest.mark.skipif(ENGINE != "ladybug", reason="kuzu scans")
def test_reads_by_key_scan_no_node_table(engine_graph: CypherGraph) -> None:
    def plan(statement: str, **parameters: Value) -> str:
        return str(engine_graph.query(f"EXPLAIN {statement}", parameters).rows[0][0])

    assert "PRIMARY_KEY_SCAN_NODE_TABLE" in plan(reads.select_node(BUILT_IN.nodes["Case"]), key="c")
    many = plan(reads.select_nodes(BUILT_IN.nodes["Case"]), keys=("a", "b"))
    assert "QUERY_PRIMARY_KEY_LOOKUP" in many
    assert "SCAN_NODE_TABLE" not in many
    for statement in reads.select_edges("CAUSED", (("Event", "Event"),), "source", "Event"):
        assert "PRIMARY_KEY_SCAN_NODE_TABLE" in plan(statement, key=1)
    for statement in reads.select_edges_of_many("PRODUCED", (("Event", "Case"),), "target", "Case"):
        assert "QUERY_PRIMARY_KEY_LOOKUP" in plan(statement, keys=("a", "b"))
