"""Rows, changes and cursors for tests of the graph, and the values that are likely to go wrong."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path

from forktrail_projectors.graph.cypher import CypherGraph
from forktrail_projectors.graph.memory import MemoryGraph
from forktrail_projectors.graph.protocol import Cursor, Graph
from forktrail_projectors.state import Changes, EdgeKey, NodeChange, NodeId, NodeKey, Row, Value
from support.declared import declared_tables

# The tables of a graph that has committed `support.declared.declarations`.
TABLES = declared_tables()
ENGINE = os.environ.get("FORKTRAIL_GRAPH_ENGINE", "ladybug")
SEED = int(os.environ.get("FORKTRAIL_TEST_SEED") or random.randrange(2**32))
GRAPHS = ("memory", f"{ENGINE} on disk", f"{ENGINE} in memory")

TEXTS = (
    "",
    "plain",
    'it\'s "quoted" `so`',
    "back\\slash \\n \\u0041",
    "line\nbreak\r\ttab",
    "zero\0byte",
    "e\u0301 is not \u00e9",
    "\u4e16\u754c \U0001f600 \u2028 \ufeff",
    "[a, b]",
    "$id[i] RETURN 1; //",
    "x" * 300_000,
)
# kuzu 0.11.3 turns -2**63 into 0 at a CHECKPOINT.
LEAST = -(2**63) + 1 if ENGINE == "kuzu" else -(2**63)
INTEGERS = (0, 1, -1, 127, 128, -129, 2**31, -(2**31) - 1, 2**53 + 1, 2**63 - 1, LEAST)
DOUBLES = (0.0, 0.1, -1.5, 1e300, -1e-300, 5e-324, 1.7976931348623157e308, float(2**53), 1 / 3)
LISTS: tuple[tuple[str, ...], ...] = ((), ("",), ("a",), ("it's", "[x, y]", "1", "", "a,b", '"'), ("\u754c", "null"))


def node(table: str, id: NodeId, **values: Value) -> tuple[NodeKey, Row]:
    """A key and a whole row: the values given, null elsewhere."""
    columns = TABLES.nodes[table].columns
    assert values.keys() <= columns.keys()
    return NodeKey(table, id), dict.fromkeys(columns) | {TABLES.nodes[table].key: id} | values


def edge(table: str, source: NodeKey, target: NodeKey, **values: Value) -> tuple[EdgeKey, Row]:
    """A key and a whole row: the values given, null elsewhere."""
    return EdgeKey(table, source, target), dict.fromkeys(TABLES.edges[table].columns) | values


def changes(
    *made: tuple[NodeKey, Row],
    edges: tuple[tuple[EdgeKey, Row], ...] = (),
    updates: tuple[tuple[NodeKey, Row, Row], ...] = (),
) -> Changes:
    """New nodes and relations, and updates as (key, row before, row after)."""
    nodes = {key: NodeChange(None, row) for key, row in made}
    nodes.update({key: NodeChange(before, after) for key, before, after in updates})
    return Changes.of(nodes, dict(edges))


def cursor(next_offset: int) -> Cursor:
    """A cursor whose every field follows from its offset."""
    frontier = tuple(f"{next_offset + bit:064x}" for bit in range(next_offset.bit_count()))
    return Cursor("topic-1", next_offset, f"{next_offset:064x}", frontier, f"{next_offset:x}", 1)


def content(graph: Graph) -> dict[NodeKey | EdgeKey, Row]:
    """All rows by key; a key that comes twice is a failure."""
    found: dict[NodeKey | EdgeKey, Row] = {}
    for key, row in graph.rows():
        assert key not in found
        found[key] = row
    return found


def rows_of_every_value() -> list[tuple[NodeKey, Row]]:
    """A row for each of the values above, in a column of its type and, where it can be, in the key."""
    return [
        *(node("Goal", f"goal-{number}", text=text) for number, text in enumerate(TEXTS)),
        *(node("Goal", text, text=None) for text in TEXTS),
        *(node("Event", integer, occurred_at=integer, type="t") for integer in INTEGERS),
        *(node("Budget", f"b-{integer}", limit=integer, used=None) for integer in INTEGERS),
        *(node("Key", f"k-{number}", roles=roles, revoked=None) for number, roles in enumerate(LISTS)),
        *(node("Key", f"r-{revoked}", roles=None, revoked=revoked) for revoked in (True, False, None)),
        node("Asset", "only-a-key"),
    ]


def make_graph(kind: str, folder: Path) -> Graph:
    """A new graph of one of GRAPHS."""
    makers: dict[str, Callable[[], Graph]] = {
        "memory": MemoryGraph,
        f"{ENGINE} on disk": lambda: CypherGraph.open(folder / "run.graph", ENGINE),
        f"{ENGINE} in memory": lambda: CypherGraph.in_memory(ENGINE),
    }
    return makers[kind]()
