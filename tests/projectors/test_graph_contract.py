"""What every graph does: one suite, run on the graph in memory and on the engine, on disk and in memory.

FORKTRAIL_GRAPH_ENGINE=kuzu runs the engine's share on Kùzu; the two engines can't be loaded in one process.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from forktrail_projectors.graph import writes
from forktrail_projectors.graph.checks import check_rows
from forktrail_projectors.graph.cypher import CypherGraph
from forktrail_projectors.graph.declared_tables import BUILT_IN
from forktrail_projectors.graph.protocol import Graph
from forktrail_projectors.state import Changes, EdgeKey, EdgesKey, End, NodeKey, Overlay, Row, Value, edge_order
from forktrail_schemas.errors import GraphError, GraphUnavailable
from support.rows import ENGINE, GRAPHS, changes, content, cursor, edge, make_graph, node, rows_of_every_value


@pytest.fixture(params=GRAPHS)
def graph(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Graph]:
    graph = make_graph(request.param, tmp_path)
    yield graph
    graph.close()


def test_a_new_graph_is_empty_and_has_no_cursor(graph: Graph) -> None:
    assert graph.cursor() is None
    assert content(graph) == {}


def test_absent_nodes_are_absent_and_absent_relations_are_empty(graph: Graph) -> None:
    event, row = node("Event", 3)
    graph.commit(changes((event, row)), cursor(4))
    absent = [NodeKey("Event", 4), NodeKey("Case", "none"), NodeKey("Case", ""), NodeKey("Key", "none")]
    assert graph.nodes([]) == {}
    assert graph.nodes(absent) == {}
    assert graph.nodes([*absent, event, event]) == {event: row}
    asked = [
        EdgesKey("CAUSED", "source", event),
        EdgesKey("PRODUCED", "source", event),
        EdgesKey("PRODUCED", "target", NodeKey("Case", "none")),
        EdgesKey("CAUSED", "target", NodeKey("Case", "a table that it never joins")),
    ]
    assert graph.edges([]) == {}
    assert graph.edges(asked) == dict.fromkeys(asked, ())


@pytest.mark.parametrize("values_for_arrow", [1, 10**9])
def test_rows_come_back_as_they_went_in_when_committed_together(
    graph: Graph, values_for_arrow: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writes, "VALUES_FOR_ARROW", values_for_arrow)
    rows = rows_of_every_value()
    graph.commit(changes(*rows), cursor(1))
    assert graph.nodes([key for key, _ in rows]) == dict(rows)
    assert content(graph) == dict(rows)


def test_rows_come_back_as_they_went_in_when_committed_one_by_one(graph: Graph) -> None:
    rows = rows_of_every_value()
    for number, (key, row) in enumerate(rows):
        graph.commit(changes((key, row)), cursor(number))
        assert graph.nodes([key]) == {key: row}
    assert content(graph) == dict(rows)


def test_a_list_column_comes_back_as_a_tuple(graph: Graph) -> None:
    key, row = node("Key", "k", roles=("admin", "reviewer"))
    graph.commit(changes((key, row)), cursor(1))
    assert type(graph.nodes([key])[key]["roles"]) is tuple


@pytest.mark.parametrize("together", [True, False])
def test_columns_change_and_the_others_stay(graph: Graph, together: bool) -> None:
    made = [node("Key", f"k-{n}", holder=f"h{n}", public_key="p", roles=("a",), revoked=False) for n in range(4)]
    graph.commit(changes(*made), cursor(1))
    new_values: list[dict[str, Value]] = [
        {"revoked": True, "changed_offset": 2**40},
        {"revoked": None, "holder": None},
        {"roles": (), "holder": "it's"},
        {"roles": ("b", "[c]"), "public_key": None},
    ]
    updates: list[tuple[NodeKey, Row, Row]] = [
        (key, row, {**row, **values}) for (key, row), values in zip(made, new_values, strict=True)
    ]
    for group in [updates] if together else [[update] for update in updates]:
        graph.commit(changes(updates=tuple(group)), cursor(2))
    assert content(graph) == {key: after for key, _, after in updates}

    back: list[tuple[NodeKey, Row, Row]] = [(key, after, before) for key, before, after in updates]
    for group in [back] if together else [[update] for update in back]:
        graph.commit(changes(updates=tuple(group)), cursor(3))
    assert content(graph) == dict(made)


@pytest.mark.parametrize("count", [1, 3])
def test_a_list_column_can_become_null(graph: Graph, count: int) -> None:
    made = [node("Key", f"k-{n}", roles=("a",)) for n in range(count)]
    graph.commit(changes(*made), cursor(1))
    updates = tuple((key, row, {**row, "roles": None}) for key, row in made)
    graph.commit(changes(updates=updates), cursor(2))
    assert content(graph) == {key: after for key, _, after in updates}


def test_a_change_that_changes_nothing_is_fine(graph: Graph) -> None:
    key, row = node("Goal", "g", text="t")
    graph.commit(changes((key, row)), cursor(1))
    graph.commit(changes(updates=((key, row, dict(row)),)), cursor(2))
    assert content(graph) == {key: row}
    assert graph.cursor() == cursor(2)


def test_a_node_made_and_changed_in_one_batch_has_its_last_row(graph: Graph) -> None:
    key, row = node("Case", "c", status="open")
    report, report_row = node("Report", "r")
    joined, joined_row = edge("OPENED", report, key, created_offset=1)
    overlay = Overlay(graph)
    overlay.prefetch([key, report])
    overlay.put_node(key, row)
    overlay.put_node(report, report_row)
    overlay.put_edge(*joined, joined_row)
    overlay.put_node(key, {**row, "status": "closed", "depth": 1})
    graph.commit(overlay.changes, cursor(2))
    assert content(graph) == {
        key: {**row, "status": "closed", "depth": 1},
        report: report_row,
        joined: joined_row,
    }


def test_relations_are_found_from_both_ends_in_order(graph: Graph) -> None:
    events = [node("Event", offset) for offset in (1, 2, 10, 100)]
    (one, _), (two, _), (ten, _), (hundred, _) = events
    case, report, run = node("Case", "c"), node("Report", "r"), node("Run", "r")
    joined = [
        edge("CAUSED", one, hundred),
        edge("CAUSED", one, ten),
        edge("CAUSED", one, two),
        edge("CAUSED", two, ten),
        edge("CAUSED", ten, ten),
        edge("PRODUCED", ten, report[0]),
        edge("PRODUCED", ten, case[0]),
        edge("PRODUCED", ten, run[0]),
        edge("PRODUCED", two, case[0]),
        edge("OPENED", report[0], case[0], created_event="e", created_offset=10),
    ]
    graph.commit(changes(*events, case, report, run, edges=tuple(joined)), cursor(101))

    def joins(table: str, end: End, at: NodeKey) -> list[NodeKey]:
        (found,) = graph.edges([EdgesKey(table, end, at)]).values()
        assert list(found) == sorted(found, key=edge_order)
        assert all((found_edge.source if end == "source" else found_edge.target) == at for found_edge in found)
        return [found_edge.target if end == "source" else found_edge.source for found_edge in found]

    assert joins("CAUSED", "source", one) == [two, ten, hundred]
    assert joins("CAUSED", "target", ten) == [one, two, ten]
    assert joins("CAUSED", "source", ten) == [ten]
    assert joins("PRODUCED", "source", ten) == [case[0], report[0], run[0]]
    assert joins("PRODUCED", "target", case[0]) == [two, ten]
    assert joins("PRODUCED", "target", report[0]) == [ten]
    assert joins("OPENED", "source", report[0]) == [case[0]]
    assert joins("OPENED", "target", case[0]) == [report[0]]
    assert {key: row for key, row in content(graph).items() if isinstance(key, EdgeKey)} == dict(joined)


def test_relations_of_many_nodes_are_found_at_once(graph: Graph) -> None:
    events = [node("Event", offset) for offset in range(40)]
    cases = [node("Case", f"c{n}") for n in range(40)]
    caused = [edge("CAUSED", NodeKey("Event", n // 3), NodeKey("Event", n)) for n in range(1, 40)]
    produced = [edge("PRODUCED", NodeKey("Event", n), NodeKey("Case", f"c{n}")) for n in range(0, 40, 2)]
    graph.commit(changes(*events, *cases, edges=(*caused, *produced)), cursor(40))
    ends: tuple[End, End] = ("source", "target")
    asked = [
        EdgesKey(table, end, NodeKey("Event", n)) for n in range(45) for table in ("CAUSED", "PRODUCED") for end in ends
    ]
    asked += [EdgesKey("PRODUCED", end, NodeKey("Case", f"c{n}")) for n in range(45) for end in ends]
    asked += asked[:50]
    found = graph.edges(asked)
    assert found.keys() == set(asked)
    for key, edges in found.items():
        expected = [
            made
            for made, _ in (*caused, *produced)
            if made.table == key.table and (made.source if key.end == "source" else made.target) == key.node
        ]
        assert list(edges) == sorted(expected, key=edge_order)


def test_a_relation_can_join_nodes_of_earlier_commits(graph: Graph) -> None:
    cases = [node("Case", f"c{n}") for n in range(3)]
    finding = node("Finding", "f", impact=5)
    graph.commit(changes(*cases, finding), cursor(1))
    one = edge("RESTS_ON", cases[0][0], finding[0], created_offset=1)
    more = [edge("RESTS_ON", case[0], finding[0], created_offset=None) for case in cases[1:]]
    graph.commit(changes(edges=(one,)), cursor(2))
    graph.commit(changes(edges=tuple(more)), cursor(3))
    asked = EdgesKey("RESTS_ON", "target", finding[0])
    assert graph.edges([asked])[asked] == tuple(key for key, _ in (one, *more))


GOOD = node("Goal", "good", text="t")
CASE, FINDING = node("Case", "old"), node("Finding", "old")
OLD_EDGE = edge("RESTS_ON", CASE[0], FINDING[0])
BROKEN = {
    "source missing": changes(GOOD, edges=(edge("RESTS_ON", NodeKey("Case", "none"), FINDING[0]),)),
    "target missing": changes(GOOD, edges=(edge("RESTS_ON", CASE[0], NodeKey("Finding", "none")),)),
    "one end of many missing": changes(
        GOOD,
        node("Case", "new"),
        edges=(
            edge("RESTS_ON", NodeKey("Case", "new"), FINDING[0]),
            edge("RESTS_ON", CASE[0], NodeKey("Finding", "none")),
        ),
    ),
    "relation exists": changes(GOOD, edges=(OLD_EDGE,)),
    "node exists": changes(GOOD, CASE),
    "one node of many exists": changes(GOOD, node("Case", "new"), CASE),
    "changed node missing": changes(GOOD, updates=((*node("Case", "none"), node("Case", "none", status="open")[1]),)),
    "one changed node of many missing": changes(
        GOOD,
        updates=(
            (*CASE, {**CASE[1], "status": "open"}),
            (*node("Case", "none"), node("Case", "none", status="open")[1]),
        ),
    ),
    "a row that breaks its table": changes(GOOD, node("Goal", "g", text=1)),
}
MISSHAPEN = {
    "column missing": changes(GOOD, (NodeKey("Goal", "g"), {"id": "g"})),
    "column unknown": changes(GOOD, (NodeKey("Asset", "a"), {**node("Asset", "a")[1], "colour": "red"})),
    "key differs from row": changes(GOOD, (NodeKey("Asset", "a"), node("Asset", "b")[1])),
    "key null": changes(GOOD, (NodeKey("Asset", "a"), {**node("Asset", "a")[1], "id": None})),
    "number for text": changes(GOOD, node("Goal", "g", text=1)),
    "text for number": changes(GOOD, node("Budget", "b", limit="1")),
    "truth for number": changes(GOOD, node("Budget", "b", limit=True)),
    "number for truth": changes(GOOD, node("Finding", "f", withdrawn=1)),
    "text for list": changes(GOOD, node("Key", "k", roles="admin")),
    "number in list": changes(GOOD, node("Key", "k", roles=(1,))),  # type: ignore[arg-type]  # the fault tested
    "number too large": changes(GOOD, node("Budget", "b", limit=2**63)),
    "number too small": changes(GOOD, node("Budget", "b", limit=-(2**63) - 1)),
    "table unknown": changes(GOOD, (NodeKey("Colour", "red"), {"id": "red"})),
    "relation table unknown": changes(GOOD, edges=((EdgeKey("LIKES", CASE[0], FINDING[0]), {}),)),
    "ends of other tables": changes(GOOD, edges=((EdgeKey("RESTS_ON", FINDING[0], CASE[0]), OLD_EDGE[1]),)),
    "relation lacks a column": changes(GOOD, edges=((EdgeKey("RESTS_ON", GOOD[0], FINDING[0]), {}),)),
}


@pytest.mark.parametrize("as_table", [False, True])
@pytest.mark.parametrize("fault", BROKEN)
def test_a_faulty_batch_writes_nothing_and_the_next_one_is_fine(
    graph: Graph, fault: str, as_table: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if as_table:
        monkeypatch.setattr(writes, "VALUES_FOR_ARROW", 1)
    graph.commit(changes(CASE, FINDING, edges=(OLD_EDGE,)), cursor(7))
    before = content(graph)
    with pytest.raises(GraphError):
        graph.commit(BROKEN[fault], cursor(8))
    if isinstance(graph, CypherGraph) and ENGINE == "kuzu":
        return  # kuzu must be opened anew after a rollback
    assert graph.cursor() == cursor(7)
    assert content(graph) == before
    graph.commit(changes(GOOD), cursor(8))
    assert graph.cursor() == cursor(8)
    assert content(graph) == before | {GOOD[0]: GOOD[1]}


@pytest.mark.parametrize("fault", MISSHAPEN)
def test_a_row_that_breaks_its_table_is_refused(fault: str) -> None:
    with pytest.raises(GraphError):
        check_rows(MISSHAPEN[fault], BUILT_IN)


def test_rows_that_fit_their_tables_are_let_through() -> None:
    check_rows(changes(*rows_of_every_value(), edges=(OLD_EDGE,)), BUILT_IN)


def test_a_faulty_batch_leaves_nothing_in_the_file(tmp_path: Path) -> None:
    graph = CypherGraph.open(tmp_path / "run.graph", ENGINE)
    graph.commit(changes(CASE, FINDING, edges=(OLD_EDGE,)), cursor(7))
    before = content(graph)
    with pytest.raises(GraphError):
        graph.commit(BROKEN["one end of many missing"], cursor(8))
    graph.close()
    again = CypherGraph.open(tmp_path / "run.graph", ENGINE)
    assert again.cursor() == cursor(7)
    assert content(again) == before
    again.close()


def test_a_commit_without_changes_moves_the_cursor(graph: Graph) -> None:
    graph.commit(Changes(), cursor(0))
    assert graph.cursor() == cursor(0)
    graph.commit(Changes(), cursor(5))
    assert graph.cursor() == cursor(5)
    assert content(graph) == {}


def test_the_same_cursor_can_be_committed_twice(graph: Graph) -> None:
    graph.commit(changes(node("Event", 0)), cursor(1))
    graph.commit(changes(node("Goal", "g")), cursor(1))
    assert graph.cursor() == cursor(1)
    assert len(content(graph)) == 2


def test_a_batch_of_thousands_is_written_whole(graph: Graph) -> None:
    count = 5_000 if ENGINE == "ladybug" else 300
    events = [node("Event", offset, type="T", verdict=None if offset % 3 else "valid") for offset in range(count)]
    caused = [edge("CAUSED", NodeKey("Event", offset // 2), NodeKey("Event", offset)) for offset in range(1, count)]
    graph.commit(changes(*events, edges=tuple(caused)), cursor(count))
    assert content(graph) == dict(events) | dict(caused)
    assert graph.nodes([key for key, _ in events]) == dict(events)


def test_a_closed_graph_refuses_everything(graph: Graph) -> None:
    graph.commit(changes(GOOD), cursor(1))
    graph.close()
    graph.close()
    with pytest.raises(GraphUnavailable):
        graph.cursor()
    with pytest.raises(GraphUnavailable):
        graph.nodes([GOOD[0]])
    with pytest.raises(GraphUnavailable):
        graph.edges([])
    with pytest.raises(GraphUnavailable):
        graph.commit(Changes(), cursor(2))
    with pytest.raises(GraphUnavailable):
        list(graph.rows())
