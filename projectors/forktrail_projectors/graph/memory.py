"""A graph in Python's memory: no file and no Cypher; for rules, rebuilds, diffs and unit tests.

Rows lie as tuples in column order. Relations lie as parallel lists, one set for each pair of node tables, and are
indexed by their ends only once somebody asks for those of an end: most are never asked for. Those that may be removed
lie in dictionaries instead.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, KeysView, Sequence
from dataclasses import dataclass, field
from itertools import count
from operator import eq
from typing import ClassVar

from forktrail_projectors.graph.checks import check_rows, edge_table, node_table
from forktrail_projectors.graph.declared_tables import BUILT_IN, Tables
from forktrail_projectors.graph.protocol import Cursor
from forktrail_projectors.state import Changes, EdgeKey, EdgesKey, End, Ends, NodeId, NodeKey, Row, Value, edge_order
from forktrail_schemas.errors import GraphError, GraphUnavailable

_Values = tuple[Value, ...]
_Index = dict[End, dict[NodeId, list[NodeId]]]


@dataclass(slots=True)
class _Relations:
    """The relations of one table between one pair of node tables, in the order they came; none is ever removed."""

    sources: list[NodeId] = field(default_factory=list)
    targets: list[NodeId] = field(default_factory=list)
    values: list[_Values] = field(default_factory=list)
    # By end and node, the nodes at the other end; None until the first question.
    index: _Index | None = None
    # Where in the lists the relation between two nodes lies, of those that came before the last question for one.
    places: dict[Ends, int] = field(default_factory=dict)

    def add(self, ends: Collection[Ends], values: Iterable[_Values]) -> None:
        self.sources.extend(source for source, _ in ends)
        self.targets.extend(target for _, target in ends)
        self.values.extend(values)
        if self.index is not None:
            self._put_into(self.index, ends)

    def find(self, source: NodeId, target: NodeId) -> _Values | None:
        """The row of a relation."""
        for place in range(len(self.places), len(self.sources)):
            self.places[self.sources[place], self.targets[place]] = place
        place_of = self.places.get((source, target))
        return None if place_of is None else self.values[place_of]

    def all(self) -> tuple[Sequence[NodeId], Sequence[NodeId], Sequence[_Values]]:
        """Both ends and the rows."""
        return self.sources, self.targets, self.values

    def others(self, end: End, node: NodeId) -> Collection[NodeId]:
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


class _RemovableRelations:
    """The relations of one table between one pair of node tables, each found and removed at once."""

    __slots__ = ("_from", "_rows", "_to")

    def __init__(self) -> None:
        self._rows: dict[Ends, _Values] = {}
        # The nodes at the other end, by the one at this end; their values mean nothing, dictionaries keep the order.
        self._from: dict[NodeId, dict[NodeId, None]] = {}
        self._to: dict[NodeId, dict[NodeId, None]] = {}

    def add(self, ends: Collection[Ends], values: Iterable[_Values]) -> None:
        self._rows.update(zip(ends, values, strict=True))
        for source, target in ends:
            self._from.setdefault(source, {})[target] = None
            self._to.setdefault(target, {})[source] = None

    def remove(self, ends: Ends) -> None:
        source, target = ends
        del self._rows[ends]
        for index, here, there in ((self._from, source, target), (self._to, target, source)):
            del index[here][there]
            if not index[here]:
                del index[here]

    def find(self, source: NodeId, target: NodeId) -> _Values | None:
        return self._rows.get((source, target))

    def all(self) -> tuple[Sequence[NodeId], Sequence[NodeId], Sequence[_Values]]:
        return [one for one, _ in self._rows], [other for _, other in self._rows], list(self._rows.values())

    def others(self, end: End, node: NodeId) -> Collection[NodeId]:
        return (self._from if end == "source" else self._to).get(node, ())


class _Neighbours(Collection[NodeKey]):
    """Nodes, given by their ids and tables."""

    __slots__ = ("_by_table",)

    def __init__(self, by_table: Sequence[tuple[str, Collection[NodeId]]]) -> None:
        self._by_table = by_table

    def __contains__(self, key: object) -> bool:
        return isinstance(key, NodeKey) and any(key.table == table and key.id in ids for table, ids in self._by_table)

    def __iter__(self) -> Iterator[NodeKey]:
        return (NodeKey(table, id) for table, ids in self._by_table for id in ids)

    def __len__(self) -> int:
        return sum(len(ids) for _, ids in self._by_table)


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
        self._nodes: dict[str, _Rows] = {}
        self._relations: dict[tuple[str, tuple[str, str]], _Relations | _RemovableRelations] = {}
        self.tables = BUILT_IN
        self._make_room(BUILT_IN)

    def cursor(self) -> Cursor | None:
        """Where the graph stands; None before the first commit."""
        self._refuse_if_closed()
        return self._cursor

    def node(self, table: str, id: NodeId) -> Row | None:
        """The whole row of a node, a copy, or None where there is none."""
        rows = self._nodes.get(table)
        if rows is None:
            self._refuse_if_closed()
            node_table(self.tables, table)  # refuses
            return None
        values = rows.get(id)
        return None if values is None else dict(zip(self.tables.nodes[table].columns, values, strict=True))

    def edge(self, key: EdgeKey) -> Row | None:
        """The row of a relation, a copy, or None where there is none."""
        self._refuse_if_closed()
        table, pair = edge_table(self.tables, key.table), (key.source.table, key.target.table)
        relations = self._relations.get((key.table, pair))
        values = None if relations is None else relations.find(key.source.id, key.target.id)
        return None if values is None else dict(zip(table.columns, values, strict=True))

    def neighbours(self, table: str, end: End, node: NodeKey) -> Collection[NodeKey]:
        """The nodes at the other end of a node's relations, unsorted; a view, which costs nothing until it is read.

        Don't commit while reading it.
        """
        self._refuse_if_closed()
        found = []
        for pair in edge_table(self.tables, table).pairs:
            here, there = pair if end == "source" else (pair[1], pair[0])
            if here == node.table and (others := self._relations[table, pair].others(end, node.id)):
                found.append((there, others))
        return _Neighbours(found)

    def nodes(self, keys: Collection[NodeKey]) -> dict[NodeKey, Row]:
        """Whole rows of the nodes that exist; a row is a copy."""
        self._refuse_if_closed()
        found: dict[NodeKey, Row] = {}
        for key in keys:
            table = node_table(self.tables, key.table)
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
        tables = self.tables.with_types(changes.created["Type"].values()) if "Type" in changes.created else self.tables
        check_rows(changes, tables)
        before = self._nodes, self._relations
        if tables is not self.tables:
            self._make_room(tables)
        try:
            self._check_existence(changes)
        except GraphError:
            self._nodes, self._relations = before
            raise
        self.tables = tables
        for table, created in changes.created.items():
            self._nodes[table].add(created.keys(), map(tables.nodes[table].values, created.values()))
        for table, changed in changes.changed.items():
            for id, change in changed.items():
                self._nodes[table].set(id, tables.nodes[table].values(change.after))
        for (table, *pair), parted in changes.parted.items():
            relations = self._relations[table, (pair[0], pair[1])]
            assert isinstance(relations, _RemovableRelations), "what is checked"
            for ends in parted:
                relations.remove(ends)
        for (table, *pair), joined in changes.joined.items():
            self._relations[table, (pair[0], pair[1])].add(
                joined.keys(), map(tables.edges[table].values, joined.values())
            )
        self._cursor = cursor

    def rows(self) -> Iterator[tuple[NodeKey | EdgeKey, Row]]:
        """Every node, then every relation, with whole rows; don't commit while reading on."""
        self._refuse_if_closed()
        for name, table in self.tables.nodes.items():
            for id, values in self._nodes[name]:
                yield NodeKey(name, id), dict(zip(table.columns, values, strict=True))
        for name, joins in self.tables.edges.items():
            for pair in joins.pairs:
                for source, target, values in zip(*self._relations[name, pair].all(), strict=True):
                    edge = EdgeKey(name, NodeKey(pair[0], source), NodeKey(pair[1], target))
                    yield edge, dict(zip(joins.columns, values, strict=True))

    def node_values(self, table: str) -> Sequence[_Values]:
        """The rows of a node table as tuples in column order; the same order as long as nothing is committed."""
        return self._nodes[table].values()

    def edge_values(
        self, table: str, pair: tuple[str, str]
    ) -> tuple[Sequence[NodeId], Sequence[NodeId], Sequence[_Values]]:
        """The relations of a table between a pair of node tables, in the order they came: both ends, and the rows."""
        return self._relations[table, pair].all()

    def close(self) -> None:
        """Forget everything; further calls fail."""
        self._closed = True
        self._nodes.clear()
        self._relations.clear()

    def _edges_at(self, key: EdgesKey) -> Iterator[EdgeKey]:
        for pair in edge_table(self.tables, key.table).pairs:
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
        for (table, source, target), parted in changes.parted.items():
            there = self._relations[table, (source, target)]
            for one, other in parted:
                if there.find(one, other) is None:
                    raise GraphError(f"{EdgeKey(table, NodeKey(source, one), NodeKey(target, other))} does not exist")
        for (table, source, target), joined in changes.joined.items():
            gone = changes.parted.get((table, source, target), {})
            old_sources = self._old_ends(source, {one for one, _ in joined}, changes)
            old_targets = self._old_ends(target, {other for _, other in joined}, changes)
            relations = self._relations[table, (source, target)]
            for one, other in joined:
                if (one, other) in gone or one not in old_sources or other not in old_targets:
                    continue
                if other in relations.others("source", one):
                    raise GraphError(f"{EdgeKey(table, NodeKey(source, one), NodeKey(target, other))} exists")

    def _old_ends(self, table: str, ids: set[NodeId], changes: Changes) -> set[NodeId]:
        """Those of the nodes that were there before the changes; raises where one isn't there even after them."""
        old = ids.difference(changes.created.get(table, ()))
        for id in old:
            if id not in self._nodes[table]:
                raise GraphError(f"{NodeKey(table, id)}, an end of a relation, does not exist")
        return old

    def _make_room(self, tables: Tables) -> None:
        """Have a place for the rows of every table and pair, in dictionaries of their own."""
        self._nodes, self._relations = dict(self._nodes), dict(self._relations)
        for name in tables.nodes:
            self._nodes.setdefault(name, _Rows())
        for name, table in tables.edges.items():
            for pair in table.pairs:
                if (name, pair) not in self._relations:
                    self._relations[name, pair] = _RemovableRelations() if table.removable else _Relations()

    def _refuse_if_closed(self) -> None:
        if self._closed:
            raise GraphUnavailable("the graph is closed")
