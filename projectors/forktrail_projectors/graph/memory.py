"""A graph in Python's memory: no file and no Cypher; for rules, rebuilds, diffs and unit tests.

Rows lie as tuples in column order. Relations lie as parallel lists, one set for each pair of node tables, and are
indexed by their ends only once somebody asks for those of an end: most are never asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, KeysView, Sequence
from dataclasses import dataclass, field
from itertools import count
from operator import eq, itemgetter
from typing import ClassVar

from forktrail_projectors.graph.checks import check_rows, edge_table, node_table
from forktrail_projectors.graph.protocol import Cursor
from forktrail_projectors.graph.schema import EDGE_TABLES, NODE_TABLES
from forktrail_projectors.state import Changes, EdgeKey, EdgesKey, End, Ends, NodeId, NodeKey, Row, Value, edge_order
from forktrail_schemas.errors import GraphError, GraphUnavailable

_Values = tuple[Value, ...]
_Index = dict[End, dict[NodeId, list[NodeId]]]


@dataclass(slots=True)
class _Relations:
    """The relations of one table between one pair of node tables, in the order they came."""

    sources: list[NodeId] = field(default_factory=list)
    targets: list[NodeId] = field(default_factory=list)
    values: list[_Values] = field(default_factory=list)
    # By end and node, the nodes at the other end; None until the first question.
    index: _Index | None = None

    def add(self, ends: Collection[Ends], values: Iterable[_Values]) -> None:
        self.sources.extend(source for source, _ in ends)
        self.targets.extend(target for _, target in ends)
        self.values.extend(values)
        if self.index is not None:
            self._put_into(self.index, ends)

    def others(self, end: End, node: NodeId) -> list[NodeId]:
        """The nodes at the other end of the relations that have `node` at this one."""
        if self.index is None:
            self.index = {"source": {}, "target": {}}
            self._put_into(self.index, zip(self.sources, self.targets, strict=True))
        return self.index[end].get(node, [])

    @staticmethod
    def _put_into(index: _Index, ends: Iterable[Ends]) -> None:
        from_source, from_target = index["source"], index["target"]
        for source, target in ends:
            from_source.setdefault(source, []).append(target)
            from_target.setdefault(target, []).append(source)


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

    def taken(self, ids: KeysView[NodeId]) -> set[NodeId]:
        """Those of the ids that have a row."""
        taken = self._by_id.keys() & ids
        return taken | {id for id in ids if id in self} if self._by_number else taken

    def add(self, ids: Collection[NodeId], rows: Iterable[_Values]) -> None:
        """Add rows that aren't there."""
        numbered = len(self._by_number)
        if all(map(eq, ids, count(numbered))) and self._by_id.keys().isdisjoint(ids):
            self._by_number.extend(rows)
        else:
            self._by_id.update(zip(ids, rows, strict=True))

    def set(self, id: NodeId, values: _Values) -> None:
        """Set a row that is there."""
        if isinstance(id, int) and 0 <= id < len(self._by_number):
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
        rows = self._nodes.get(table)
        if rows is None:
            self._refuse_if_closed()
            node_table(table)  # refuses
            return None
        values = rows.get(id)
        return None if values is None else dict(zip(NODE_TABLES[table].columns, values, strict=True))

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
        for table, created in changes.created.items():
            self._nodes[table].add(created.keys(), map(_VALUES[table], created.values()))
        for table, changed in changes.changed.items():
            for id, change in changed.items():
                self._nodes[table].set(id, _VALUES[table](change.after))
        for (table, *pair), joined in changes.joined.items():
            self._relations[table, (pair[0], pair[1])].add(joined.keys(), map(_VALUES[table], joined.values()))
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
        for table, created in changes.created.items():
            for id in self._nodes[table].taken(created.keys()):
                raise GraphError(f"{NodeKey(table, id)} exists")
        for table, changed in changes.changed.items():
            for id in changed:
                if id not in self._nodes[table]:
                    raise GraphError(f"{NodeKey(table, id)} does not exist")
        for (table, source, target), joined in changes.joined.items():
            old_sources = self._old_ends(source, {one for one, _ in joined}, changes)
            old_targets = self._old_ends(target, {other for _, other in joined}, changes)
            relations = self._relations[table, (source, target)]
            for one, other in joined:
                if one in old_sources and other in old_targets and other in relations.others("source", one):
                    raise GraphError(f"{EdgeKey(table, NodeKey(source, one), NodeKey(target, other))} exists")

    def _old_ends(self, table: str, ids: set[NodeId], changes: Changes) -> set[NodeId]:
        """Those of the nodes that were there before the changes; raises where one isn't there even after them."""
        old = ids.difference(changes.created.get(table, ()))
        for id in old:
            if id not in self._nodes[table]:
                raise GraphError(f"{NodeKey(table, id)}, an end of a relation, does not exist")
        return old

    def _refuse_if_closed(self) -> None:
        if self._closed:
            raise GraphUnavailable("the graph is closed")


def _values_of(columns: Collection[str]) -> Callable[[Row], _Values]:
    names = tuple(columns)
    # itemgetter gives a bare value for one name and takes no fewer.
    return itemgetter(*names) if len(names) > 1 else lambda row: tuple(row[name] for name in names)


_VALUES = {name: _values_of(table.columns) for name, table in (NODE_TABLES | EDGE_TABLES).items()}
