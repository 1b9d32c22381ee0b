"""A graph in Python's memory: no file and no Cypher; for rules, rebuilds, diffs and unit tests.

Rows lie as tuples in column order. Relations lie as parallel lists, one set for each pair of node tables, and are
indexed by their ends only once somebody asks for those of an end: most are never asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import ClassVar

from forktrail_projectors.graph.checks import check_rows, edge_table, node_table
from forktrail_projectors.graph.protocol import Cursor
from forktrail_projectors.graph.schema import EDGE_TABLES, NODE_TABLES
from forktrail_projectors.state import Changes, EdgeKey, EdgesKey, End, NodeId, NodeKey, Row, Value, edge_order
from forktrail_schemas.errors import GraphError, GraphUnavailable

_Values = tuple[Value, ...]


@dataclass(slots=True)
class _Relations:
    """The relations of one table between one pair of node tables, in the order they came."""

    sources: list[NodeId] = field(default_factory=list)
    targets: list[NodeId] = field(default_factory=list)
    values: list[_Values] = field(default_factory=list)
    # By end and node, the nodes at the other end; None until the first question.
    index: dict[End, dict[NodeId, list[NodeId]]] | None = None

    def add(self, source: NodeId, target: NodeId, values: _Values) -> None:
        self.sources.append(source)
        self.targets.append(target)
        self.values.append(values)
        if self.index is not None:
            self.index["source"].setdefault(source, []).append(target)
            self.index["target"].setdefault(target, []).append(source)

    def others(self, end: End, node: NodeId) -> list[NodeId]:
        """The nodes at the other end of the relations that have `node` at this one."""
        if self.index is None:
            self.index = {"source": {}, "target": {}}
            for source, target in zip(self.sources, self.targets, strict=True):
                self.index["source"].setdefault(source, []).append(target)
                self.index["target"].setdefault(target, []).append(source)
        return self.index[end].get(node, [])


class _Rows:
    """The rows of one table by id. Those whose ids are the numbers from 0 on lie in a list, which takes less memory."""

    __slots__ = ("_by_id", "_by_number")

    def __init__(self) -> None:
        self._by_number: list[_Values] = []
        self._by_id: dict[NodeId, _Values] = {}

    def __contains__(self, id: NodeId) -> bool:
        return self.get(id) is not None

    def get(self, id: NodeId) -> _Values | None:
        if isinstance(id, int) and 0 <= id < len(self._by_number):
            return self._by_number[id]
        return self._by_id.get(id)

    def put(self, id: NodeId, values: _Values) -> None:
        if id == len(self._by_number) and id not in self._by_id:
            self._by_number.append(values)
        elif isinstance(id, int) and 0 <= id < len(self._by_number):
            self._by_number[id] = values
        else:
            self._by_id[id] = values

    def __iter__(self) -> Iterator[tuple[NodeId, _Values]]:
        yield from enumerate(self._by_number)
        yield from self._by_id.items()

    def values(self) -> list[_Values]:
        """All of them, those with numbers first."""
        return [*self._by_number, *self._by_id.values()]


class MemoryGraph:
    """Implements `Graph`. A commit that raises leaves the graph as it was and usable."""

    prefetch_pays: ClassVar = False

    def __init__(self) -> None:
        self._cursor: Cursor | None = None
        self._closed = False
        self._nodes = {name: _Rows() for name in NODE_TABLES}
        self._relations = {(name, pair): _Relations() for name, table in EDGE_TABLES.items() for pair in table.pairs}

    def cursor(self) -> Cursor | None:
        """Where the graph stands; None before the first commit."""
        self._refuse_if_closed()
        return self._cursor

    def node(self, table: str, id: NodeId) -> Row | None:
        """The whole row of a node, a copy, or None where there is none."""
        self._refuse_if_closed()
        columns = node_table(table).columns
        values = self._nodes[table].get(id)
        return None if values is None else dict(zip(columns, values, strict=True))

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
        for (table, id), change in changes.nodes.items():
            self._nodes[table].put(id, _VALUES[table](change.after))
        for (name, source, target), row in changes.edges.items():
            values = _VALUES[name](row)
            self._relations[name, (source.table, target.table)].add(source.id, target.id, values)
        self._cursor = cursor

    def rows(self) -> Iterator[tuple[NodeKey | EdgeKey, Row]]:
        """Every node, then every relation, with whole rows; don't commit while reading on."""
        self._refuse_if_closed()
        for name, table in NODE_TABLES.items():
            for id, values in self._nodes[name]:
                yield NodeKey(name, id), dict(zip(table.columns, values, strict=True))
        for (name, (source_table, target_table)), relations in self._relations.items():
            columns = EDGE_TABLES[name].columns
            for source, target, values in zip(relations.sources, relations.targets, relations.values, strict=True):
                edge = EdgeKey(name, NodeKey(source_table, source), NodeKey(target_table, target))
                yield edge, dict(zip(columns, values, strict=True))

    def node_values(self, table: str) -> Sequence[_Values]:
        """The rows of a node table as tuples in column order; the same order as long as nothing is committed."""
        return self._nodes[table].values()

    def edge_values(
        self, table: str, pair: tuple[str, str]
    ) -> tuple[Sequence[NodeId], Sequence[NodeId], Sequence[_Values]]:
        """The relations of a table between a pair of node tables, in the order they came: both ends, and the rows."""
        relations = self._relations[table, pair]
        return relations.sources, relations.targets, relations.values

    def close(self) -> None:
        """Forget everything; further calls fail."""
        self._closed = True
        self._nodes.clear()
        self._relations.clear()

    def _edges_at(self, key: EdgesKey) -> Iterator[EdgeKey]:
        for pair in edge_table(key.table).pairs:
            source_table, target_table = pair
            relations = self._relations[key.table, pair]
            if key.end == "source" and source_table == key.node.table:
                for target in relations.others("source", key.node.id):
                    yield EdgeKey(key.table, key.node, NodeKey(target_table, target))
            elif key.end == "target" and target_table == key.node.table:
                for source in relations.others("target", key.node.id):
                    yield EdgeKey(key.table, NodeKey(source_table, source), key.node)

    def _check_existence(self, changes: Changes) -> None:
        nodes = changes.nodes
        for key, change in nodes.items():
            if (change.before is None) == (key.id in self._nodes[key.table]):
                raise GraphError(f"{key} {'exists' if change.before is None else 'does not exist'}")
        for edge in changes.edges:
            _, source, target = edge
            if self._is_old(source, changes) and self._is_old(target, changes):
                relations = self._relations[edge.table, (source.table, target.table)]
                if target.id in relations.others("source", source.id):
                    raise GraphError(f"{edge} exists")

    def _is_old(self, node: NodeKey, changes: Changes) -> bool:
        """Whether a node was there before the changes; raises where it isn't even after them."""
        change = changes.nodes.get(node)
        if change is not None:
            return change.before is not None
        if node.id not in self._nodes[node.table]:
            raise GraphError(f"{node}, an end of a relation, does not exist")
        return True

    def _refuse_if_closed(self) -> None:
        if self._closed:
            raise GraphUnavailable("the graph is closed")


def _values_of(columns: Collection[str]) -> Callable[[Row], _Values]:
    names = tuple(columns)
    # itemgetter gives a bare value for one name and takes no fewer.
    return itemgetter(*names) if len(names) > 1 else lambda row: tuple(row[name] for name in names)


_VALUES = {name: _values_of(table.columns) for name, table in (NODE_TABLES | EDGE_TABLES).items()}
