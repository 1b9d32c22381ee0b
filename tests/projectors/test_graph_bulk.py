"""A graph loaded at once equals the one in memory row for row, and a file that doesn't is never taken for it."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import pytest

from forktrail_projectors.graph import bulk
from forktrail_projectors.graph.bulk import build_graph
from forktrail_projectors.graph.cypher import CypherGraph
from forktrail_projectors.graph.engine import database_files
from forktrail_projectors.graph.memory import MemoryGraph
from forktrail_projectors.graph.schema import ColumnType
from forktrail_projectors.graph.session import Session
from forktrail_projectors.state import Changes, EdgesKey, End, NodeId, NodeKey, Row, Value
from forktrail_schemas.errors import Corruption, GraphError
from support.declared import declarations, declared_tables
from support.rows import (
    DOUBLES,
    ENGINE,
    INTEGERS,
    LISTS,
    SEED,
    TEXTS,
    changes,
    content,
    cursor,
    edge,
    node,
    rows_of_every_value,
)

ENDS: tuple[End, End] = ("source", "target")
TABLES = declared_tables()


@pytest.fixture(params=["copied", "copied or committed"], autouse=True)
def by_copy(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every table by COPY, with a CHECKPOINT now and then; and as it comes, small tables in one commit."""
    if request.param == "copied":
        monkeypatch.setattr(bulk, "ROWS_TO_COPY", 1)
        monkeypatch.setattr(bulk, "ROWS_PER_CHECKPOINT", 100)


def loaded(tmp_path: Path, graph: MemoryGraph) -> CypherGraph:
    """The graph built into a file, which is then opened."""
    path = tmp_path / "run.graph"
    build_graph(path, ENGINE, graph)
    assert database_files(path) == (path,)
    return CypherGraph.open(path, ENGINE)


def id_of(table: str, number: int) -> NodeId:
    columns = TABLES.nodes[table].columns
    return number if columns[TABLES.nodes[table].key] is ColumnType.INT64 else f"{table}-{number}"


def full_row(columns: dict[str, ColumnType], number: int) -> dict[str, Value]:
    """A row whose values are among those that go wrong; some are null."""
    values: dict[ColumnType, Sequence[Value]] = {
        ColumnType.STRING: (*TEXTS[:-1], None),
        ColumnType.INT64: (*INTEGERS, None),
        ColumnType.DOUBLE: (*DOUBLES, None),
        ColumnType.BOOL: (True, False, None),
        ColumnType.STRINGS: (*LISTS, None),
    }
    return {
        name: values[kind][(number + place) % len(values[kind])] for place, (name, kind) in enumerate(columns.items())
    }


def graph_of_everything() -> MemoryGraph:
    """Rows in every node table and relations between every pair that a table joins, with odd values in all columns."""
    made = declarations()
    nodes: dict[str, list[NodeKey]] = {"Type": list(made.nodes) * 10}
    for name, table in TABLES.nodes.items():
        for number in range(30 if name != "Type" else 0):  # rows of Type mean tables
            key = NodeKey(name, id_of(name, number))
            nodes.setdefault(name, []).append(key)
            made.put_node(key, None, full_row(table.columns, number) | {table.key: key.id})
    for name, joins in TABLES.edges.items():
        for source, target in joins.pairs:
            for number in range(40):
                ends = nodes[source][number * 7 % 30], nodes[target][number * number % 30]
                made.put_edge(name, *ends, full_row(joins.columns, number))
    graph = MemoryGraph()
    graph.commit(made, cursor(30))
    return graph


def test_every_table_and_every_pair_comes_back_as_it_was(tmp_path: Path) -> None:
    expected = graph_of_everything()
    graph = loaded(tmp_path, expected)
    assert content(graph) == content(expected)
    assert graph.cursor() == expected.cursor()
    graph.close()


def test_every_odd_value_comes_back_as_it_was(tmp_path: Path) -> None:
    expected = MemoryGraph()
    expected.commit(changes(*rows_of_every_value()), cursor(3))
    graph = loaded(tmp_path, expected)
    assert content(graph) == dict(rows_of_every_value())
    graph.close()


def test_a_loaded_graph_answers_and_takes_commits_like_one_that_was_committed(tmp_path: Path) -> None:
    expected = graph_of_everything()
    graph = loaded(tmp_path, expected)
    keys = [key for key in content(expected) if isinstance(key, NodeKey)]
    at_ends = [
        EdgesKey(name, end, NodeKey(pair[place], id_of(pair[place], number)))
        for name, joins in TABLES.edges.items()
        for pair in joins.pairs
        for place, end in enumerate(ENDS)
        for number in range(30)
    ]
    for both in (0, 1):
        assert graph.nodes(keys) == expected.nodes(keys)
        assert graph.edges(at_ends) == expected.edges(at_ends)
        if both == 0:
            more = later_changes(expected)
            graph.commit(more, cursor(31))
            expected.commit(more, cursor(31))
    assert content(graph) == content(expected)
    graph.close()


def later_changes(graph: MemoryGraph) -> Changes:
    """A new case, a change of an old one, and relations of both."""
    old = NodeKey("Case", "Case-3")
    before = graph.nodes([old])[old]
    new, row = node("Case", "new", status="open")
    finding = NodeKey("Finding", "Finding-1")
    return changes(
        (new, row),
        updates=((old, before, {**before, "status": "closed"}),),
        edges=(edge("RESTS_ON", new, finding), edge("OPENED", NodeKey("Report", "Report-0"), new)),
    )


def test_a_graph_of_random_relations_comes_back_as_it_was(tmp_path: Path) -> None:
    dice = random.Random(SEED)
    expected = MemoryGraph()
    for number in range(3):  # later relations come from earlier nodes, too
        events = [node("Event", number * 1_000 + n, type="T") for n in range(1_000)]
        offsets = range((number + 1) * 1_000)
        pairs = {(dice.choice(offsets), dice.randrange(number * 1_000, (number + 1) * 1_000)) for _ in range(1_500)}
        caused = [edge("CAUSED", NodeKey("Event", a), NodeKey("Event", b)) for a, b in pairs]
        expected.commit(changes(*events, edges=tuple(caused)), cursor(number))
    graph = loaded(tmp_path, expected)
    assert content(graph) == content(expected), f"seed {SEED}"
    graph.close()


def test_a_graph_without_a_commit_is_loaded_without_a_cursor(tmp_path: Path) -> None:
    graph = loaded(tmp_path, MemoryGraph())
    assert graph.cursor() is None
    assert content(graph) == {}
    graph.close()


class Unsteady(MemoryGraph):
    """Says something else about a table the first time it is asked than later: as if the engine had lost it."""

    def __init__(self, table: str, last: Row | None) -> None:
        super().__init__()
        self._table = table
        self._last = last
        self._asked = False

    def node_values(self, table: str) -> Sequence[tuple[Value, ...]]:
        values = super().node_values(table)
        if table != self._table or self._asked:
            return values
        self._asked = True
        return [*values[:-1], *([tuple(self._last.values())] if self._last else [])]


CASE = NodeKey("Case", "Case-29")


@pytest.mark.parametrize(
    ("fault", "last"),
    [
        ("a row is lost", None),
        ("a value differs", node("Case", "Case-29", status="other")[1]),
        ("a text is empty instead of null", node("Case", "Case-29", status="open", outcome="")[1]),
        ("a key differs", node("Case", "Case-30", status="open")[1]),
    ],
)
def test_a_file_that_holds_something_else_is_corrupt(tmp_path: Path, fault: str, last: Row | None) -> None:
    graph = Unsteady("Case", last)
    graph.commit(changes(*(node("Case", f"Case-{n}", status="open") for n in range(30))), cursor(1))
    with pytest.raises(Corruption):
        build_graph(tmp_path / "run.graph", ENGINE, graph)


def test_a_relation_that_is_lost_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = graph_of_everything()
    whole = MemoryGraph.edge_values
    asked: list[str] = []

    def without_one(
        graph: MemoryGraph, table: str, pair: tuple[str, str]
    ) -> tuple[Sequence[NodeId], Sequence[NodeId], Sequence[tuple[Value, ...]]]:
        sources, targets, rows = whole(graph, table, pair)
        asked.append(table)
        if table == "RESTS_ON" and asked.count(table) == 1:
            return sources[1:], targets[1:], rows[1:]
        return sources, targets, rows

    monkeypatch.setattr(MemoryGraph, "edge_values", without_one)
    with pytest.raises(Corruption, match="RESTS_ON"):
        build_graph(tmp_path / "run.graph", ENGINE, expected)


def test_a_value_that_cannot_be_stored_is_an_error_and_the_file_can_be_made_anew(tmp_path: Path) -> None:
    broken = MemoryGraph()
    goals = [node("Goal", f"g-{n}", text="good") for n in range(600)]
    broken.commit(changes(*goals, node("Goal", "bad", text="half a pair: \ud800")), cursor(1))
    path = tmp_path / "run.graph"
    with pytest.raises(GraphError):
        build_graph(path, ENGINE, broken)
    for file in database_files(path):
        file.unlink()
    good = MemoryGraph()
    good.commit(changes(*goals), cursor(1))
    graph = loaded(tmp_path, good)
    assert content(graph) == dict(goals)
    graph.close()


def test_an_engine_that_fails_is_told_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise GraphError("no room left")

    monkeypatch.setattr(Session, "load", fail)
    graph = MemoryGraph()
    graph.commit(changes(*(node("Goal", f"g-{n}", text="t") for n in range(600))), cursor(1))
    with pytest.raises(GraphError, match="no room left"):
        build_graph(tmp_path / "run.graph", ENGINE, graph)
