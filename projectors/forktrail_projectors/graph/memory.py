"""A graph in Python's memory: no file and no Cypher; for rules, rebuilds, diffs and unit tests.

Rows lie as tuples in column order, and relations once per pair of tables with both ends indexed, so that a relation
between known nodes repeats no key and no column name.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

from forktrail_projectors.graph.checks import check_rows, edge_table, node_table
from forktrail_projectors.graph.protocol import Cursor
from forktrail_projectors.graph.schema import EDGE_TABLES, NODE_TABLES
from forktrail_projectors.state import Changes, EdgeKey, EdgesKey, NodeId, NodeKey, Row, Value, edge_order
from forktrail_schemas.errors import GraphError, GraphUnavailable

_Values = tuple[Value, ...]


@dataclass
class _Relations:
    """The relations of one table between one pair of node tables."""

    rows: dict[tuple[NodeId, NodeId], _Values] = field(default_factory=dict)
    targets: dict[NodeId, list[NodeId]] = field(default_factory=dict)
    sources: dict[NodeId, list[NodeId]] = field(default_factory=dict)

    def add(self, source: NodeId, target: NodeId, values: _Values) -> None:
        self.rows[source, target] = values
        self.targets.setdefault(source, []).append(target)
        self.sources.setdefault(target, []).append(source)


class MemoryGraph:
    """Implements `Graph`. A commit that raises leaves the graph as it was and usable."""

    def __init__(self) -> None:
        self._cursor: Cursor | None = None
        self._closed = False
        self._nodes: dict[str, dict[NodeId, _Values]] = {name: {} for name in NODE_TABLES}
        self._relations = {(name, pair): _Relations() for name, table in EDGE_TABLES.items() for pair in table.pairs}

    def cursor(self) -> Cursor | None:
        """Where the graph stands; None before the first commit."""
        self._refuse_if_closed()
        return self._cursor

    def nodes(self, keys: Collection[NodeKey]) -> dict[NodeKey, Row]:
        """Whole rows of the nodes that exist; a row is a copy."""
        self._refuse_if_closed()
        found: dict[NodeKey, Row] = {}
        for key in keys:
            table = node_table(key.table)
            values = self._nodes[key.table].get(key.id)
            if values is not None:
                found[key] = dict(zip(table.columns, values, strict=True))
        return found

    def edges(self, keys: Collection[EdgesKey]) -> dict[EdgesKey, tuple[EdgeKey, ...]]:
        """The relations at each node's given end, sorted by `edge_order`."""
        self._refuse_if_closed()
        return {key: tuple(sorted(self._edges_at(key), key=edge_order)) for key in keys}

    def commit(self, changes: Changes, cursor: Cursor) -> None:
        """Apply the changes and move the cursor, or raise and do neither.

        Raises:
            GraphError: a row breaks its table, a new node or relation exists, or a changed node or an end doesn't.
        """
        self._refuse_if_closed()
        check_rows(changes)
        self._check_existence(changes)
        for key, change in changes.nodes.items():
            row = change.after
            self._nodes[key.table][key.id] = tuple([row[name] for name in NODE_TABLES[key.table].columns])
        for edge, row in changes.edges.items():
            values = tuple([row[name] for name in EDGE_TABLES[edge.table].columns])
            self._relations_of(edge).add(edge.source.id, edge.target.id, values)
        self._cursor = cursor

    def rows(self) -> Iterator[tuple[NodeKey | EdgeKey, Row]]:
        """Every node, then every relation, with whole rows; don't commit while reading on."""
        self._refuse_if_closed()
        for name, table in NODE_TABLES.items():
            for id, values in self._nodes[name].items():
                yield NodeKey(name, id), dict(zip(table.columns, values, strict=True))
        for (name, (source_table, target_table)), relations in self._relations.items():
            columns = EDGE_TABLES[name].columns
            for (source, target), values in relations.rows.items():
                edge = EdgeKey(name, NodeKey(source_table, source), NodeKey(target_table, target))
                yield edge, dict(zip(columns, values, strict=True))

    def close(self) -> None:
        """Forget everything; further calls fail."""
        self._closed = True
        self._nodes.clear()
        self._relations.clear()

    def _edges_at(self, key: EdgesKey) -> Iterator[EdgeKey]:
        for pair in edge_table(key.table).pairs:
            relations = self._relations[key.table, pair]
            source_table, target_table = pair
            if key.end == "source" and source_table == key.node.table:
                for target in relations.targets.get(key.node.id, ()):
                    yield EdgeKey(key.table, key.node, NodeKey(target_table, target))
            elif key.end == "target" and target_table == key.node.table:
                for source in relations.sources.get(key.node.id, ()):
                    yield EdgeKey(key.table, NodeKey(source_table, source), key.node)

    def _check_existence(self, changes: Changes) -> None:
        for key, change in changes.nodes.items():
            if (change.before is None) == (key.id in self._nodes[key.table]):
                raise GraphError(f"{key} {'exists' if change.before is None else 'does not exist'}")
        for edge in changes.edges:
            for end in (edge.source, edge.target):
                if end.id not in self._nodes[end.table] and end not in changes.nodes:
                    raise GraphError(f"{edge} has an end that does not exist")
            if (edge.source.id, edge.target.id) in self._relations_of(edge).rows:
                raise GraphError(f"{edge} exists")

    def _relations_of(self, edge: EdgeKey) -> _Relations:
        return self._relations[edge.table, (edge.source.table, edge.target.table)]

    def _refuse_if_closed(self) -> None:
        if self._closed:
            raise GraphUnavailable("the graph is closed")
