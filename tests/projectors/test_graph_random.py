"""Random commits leave every graph equal. A failure prints its seed; FORKTRAIL_TEST_SEED runs it again."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from forktrail_projectors.graph import cursor_table, cypher, session, writes
from forktrail_projectors.graph.cypher import CypherGraph
from forktrail_projectors.graph.memory import MemoryGraph
from forktrail_projectors.graph.protocol import Graph
from forktrail_projectors.graph.schema import ColumnType, NodeTable
from forktrail_projectors.state import Changes, EdgeKey, EdgesKey, End, NodeId, NodeKey, Row, Value
from support.declared import declarations
from support.rows import DOUBLES, ENGINE, GRAPHS, INTEGERS, LISTS, SEED, TEXTS, content, cursor, make_graph


@pytest.fixture(params=GRAPHS)
def graph(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Graph]:
    graph = make_graph(request.param, tmp_path)
    yield graph
    graph.close()


def test_a_graph_opened_again_has_the_same_rows_and_cursor(tmp_path: Path) -> None:
    expected = MemoryGraph()
    dice = random.Random(SEED)
    next_offset = 0
    for opened in range(6):
        graph = CypherGraph.open(tmp_path / "run.graph", ENGINE)
        assert graph.cursor() == expected.cursor(), f"seed {SEED}"
        assert graph.tables == expected.tables
        assert content(graph) == content(expected), f"seed {SEED}"
        for commit in range(4):
            next_offset += 1
            # Types are declared in the midst, with rows of theirs in the same commit or without.
            made = random_changes(dice, expected, declare=(opened, commit) == (1, 2))
            graph.commit(made, cursor(next_offset))
            expected.commit(made, cursor(next_offset))
            if dice.random() < 0.5:
                graph.checkpoint()
        graph.close()
    graph = CypherGraph.open(tmp_path / "run.graph", ENGINE, read_only=True)
    assert graph.cursor() == cursor(next_offset)
    assert content(graph) == content(expected), f"seed {SEED}"
    graph.close()


@pytest.mark.parametrize("narrow", [False, True])
def test_random_commits_leave_every_graph_equal(graph: Graph, narrow: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if narrow:  # everything that happens only now and then happens all the time
        monkeypatch.setattr(writes, "ROWS_PER_STATEMENT", 3)
        monkeypatch.setattr(cypher, "ROWS_PER_STATEMENT", 3)
        monkeypatch.setattr(writes, "VALUES_FOR_ARROW", 12)
        monkeypatch.setattr(cypher, "KEYS_AT_ONCE_MIN", 2)
        monkeypatch.setattr(cypher, "OLD_VERSIONS_MAX", 20)
        monkeypatch.setattr(cursor_table, "COMMITS_PER_PRUNING", 4)
        monkeypatch.setattr(session, "PLANS_MAX", 20)
        monkeypatch.setattr(session, "ROWS_PER_FETCH", 7)
    dice = random.Random(SEED)
    expected = MemoryGraph()
    commits = 12 if narrow else 25
    for number in range(1, commits + 1):
        made = random_changes(dice, expected, declare=number == 2)
        graph.commit(made, cursor(number))
        expected.commit(made, cursor(number))
        keys = [*made.nodes, NodeKey("Case", f"never-{number}")]
        ends: tuple[End, End] = ("source", "target")
        edges = [
            EdgesKey(key.table, end, key.source if end == "source" else key.target)
            for key in made.edges
            for end in ends
        ]
        assert graph.nodes(keys) == expected.nodes(keys), f"seed {SEED}, commit {number}"
        assert graph.edges(edges) == expected.edges(edges), f"seed {SEED}, commit {number}"
        for key in [*made.edges, *parted(made)]:
            assert graph.edge(key) == expected.edge(key), f"seed {SEED}, commit {number}"
    assert content(graph) == content(expected), f"seed {SEED}"
    assert graph.cursor() == cursor(commits)


def random_value(dice: random.Random, kind: ColumnType) -> Value:
    if dice.random() < 0.3:
        return None
    if kind is ColumnType.STRING:
        return dice.choice(TEXTS[:-1]) + dice.choice(("", str(dice.random())))
    if kind is ColumnType.INT64:
        return dice.choice(INTEGERS) if dice.random() < 0.5 else dice.randrange(1000)
    if kind is ColumnType.DOUBLE:
        return dice.choice(DOUBLES) if dice.random() < 0.5 else dice.uniform(-1e6, 1e6)
    return dice.random() < 0.5 if kind is ColumnType.BOOL else dice.choice(LISTS)


def parted(changes: Changes) -> list[EdgeKey]:
    """The relations that are gone, or were and are back."""
    return [
        EdgeKey(table, NodeKey(source, one), NodeKey(target, other))
        for (table, source, target), rows in changes.parted.items()
        for one, other in rows
    ]


def random_changes(dice: random.Random, graph: MemoryGraph, *, declare: bool = False) -> Changes:
    """A batch that fits the graph: new nodes, changed ones, relations between any of them, and ends of relations."""
    there = content(graph)
    made = declarations() if declare else Changes()
    tables = graph.tables.with_types(made.created.get("Type", {}).values())
    # Rows of Type mean tables, so they aren't random; the declared ones come more often than their share.
    names = [name for name in tables.nodes if name != "Type"] + 8 * list(tables.objects)
    for _ in range(dice.choice((0, 1, 2, 12))):
        table = tables.nodes[dice.choice(names)]
        id: NodeId = dice.randrange(10**6) if table.columns[table.key] is ColumnType.INT64 else str(dice.random())
        key = NodeKey(table.name, id)
        made.put_node(key, None, random_row(dice, table, id))
    old = [key for key in there if isinstance(key, NodeKey) and key.table != "Type"]
    for key in dice.sample(old, min(len(old), dice.choice((0, 1, 1, 8)))):
        columns = tables.nodes[key.table].columns
        after = dict(there[key])
        for name in dice.sample(list(columns), dice.randrange(len(columns))):
            if name != tables.nodes[key.table].key:
                after[name] = random_value(dice, columns[name])
        made.put_node(key, there[key], after)
    by_table: dict[str, list[NodeKey]] = {}
    for key in [*old, *made.nodes]:
        by_table.setdefault(key.table, []).append(key)
    for edge in [key for key in there if isinstance(key, EdgeKey) and tables.edges[key.table].removable]:
        if dice.random() < 0.3 and ENGINE != "kuzu":  # 0.11.3 may crash after a CHECKPOINT that took removed relations
            made.remove_edge(*edge, there[edge])
    for table_name, joins in tables.edges.items():
        for source, target in joins.pairs:
            for _ in range(dice.choice((0, 0, 1, 4))):
                if source in by_table and target in by_table:
                    ends = (dice.choice(by_table[source]), dice.choice(by_table[target]))
                    new = EdgeKey(table_name, *ends)
                    if new not in there or new in parted(made):
                        row = {name: random_value(dice, kind) for name, kind in joins.columns.items()}
                        made.put_edge(*new, row)
    return made


def random_row(dice: random.Random, table: NodeTable, id: NodeId) -> Row:
    row = {name: random_value(dice, kind) for name, kind in table.columns.items()}
    return row | {table.key: id}
