"""What the fold reads and writes: rows by key, and the changes that one or many events make.

The fold never asks a query. It names keys, gets rows, and returns changes; where the rows lie is the graph's affair.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sized
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

if TYPE_CHECKING:  # tables are made of this module's types
    from forktrail_projectors.graph.declared_tables import Tables

Value = str | int | float | bool | tuple[str, ...] | None
NodeId = str | int
Row = Mapping[str, Value]
End = Literal["source", "target"]


class NodeKey(NamedTuple):
    """A node: its table and its primary key."""

    table: str
    id: NodeId


class EdgeKey(NamedTuple):
    """A relation: its table and both ends; at most one relation of a table joins two nodes."""

    table: str
    source: NodeKey
    target: NodeKey


class EdgesKey(NamedTuple):
    """All relations of one table that have `node` at the given end."""

    table: str
    end: End
    node: NodeKey


Key = NodeKey | EdgesKey


class NodeChange(NamedTuple):
    """A node's row before (None: it is new) and after; both are whole rows."""

    before: Row | None
    after: Row


EdgeTables = tuple[str, str, str]
Ends = tuple[NodeId, NodeId]


@dataclass
class Changes:
    """What a batch of events does to the graph, coalesced per key, table by table.

    Attributes:
        created: whole rows of new nodes, by table and id.
        changed: rows of nodes that were there before the batch, before and after it, by table and id.
        joined: rows of new relations, by their table with the tables of both ends, and then by the ids of both ends.
            Relations are never changed.
        parted: rows of relations that were there before the batch and no longer are, in the same order of keys; one
            that was made anew since is also in `joined`.
    """

    created: dict[str, dict[NodeId, Row]] = field(default_factory=dict)
    changed: dict[str, dict[NodeId, NodeChange]] = field(default_factory=dict)
    joined: dict[EdgeTables, dict[Ends, Row]] = field(default_factory=dict)
    parted: dict[EdgeTables, dict[Ends, Row]] = field(default_factory=dict)

    @classmethod
    def of(cls, nodes: Mapping[NodeKey, NodeChange], edges: Mapping[EdgeKey, Row]) -> Changes:
        """The changes that these are."""
        made = cls()
        for key, change in nodes.items():
            made.put_node(key, change.before, change.after)
        for edge, row in edges.items():
            made.put_edge(*edge, row)
        return made

    def __bool__(self) -> bool:
        return bool(self.created or self.changed or self.joined or self.parted)

    def __len__(self) -> int:
        """How many nodes and relations are in it."""
        tables: Iterable[Sized] = chain(
            self.created.values(), self.changed.values(), self.joined.values(), self.parted.values()
        )
        return sum(map(len, tables))

    @property
    def nodes(self) -> dict[NodeKey, NodeChange]:
        """All nodes by key: first the new ones."""
        made = {
            NodeKey(table, id): NodeChange(None, row)
            for table, rows in self.created.items()
            for id, row in rows.items()
        }
        return made | {
            NodeKey(table, id): change for table, rows in self.changed.items() for id, change in rows.items()
        }

    @property
    def edges(self) -> dict[EdgeKey, Row]:
        """All new relations by key."""
        return {
            EdgeKey(table, NodeKey(source, source_id), NodeKey(target, target_id)): row
            for (table, source, target), rows in self.joined.items()
            for (source_id, target_id), row in rows.items()
        }

    def put_new_node(self, table: str, id: NodeId, row: Row) -> None:
        """Set the row of a node that is new."""
        try:
            self.created[table][id] = row
        except KeyError:
            self.created[table] = {id: row}

    def put_node(self, key: NodeKey, before: Row | None, row: Row) -> None:
        """Set a node's whole row; `before` is what it was until now, here or before the batch."""
        table, id = key
        if before is None or id in self.created.get(table, ()):
            self.put_new_node(table, id, row)
            return
        changed = self.changed.setdefault(table, {})
        first = changed.get(id)
        changed[id] = NodeChange(before if first is None else first.before, row)

    def put_edge(self, table: str, source: NodeKey, target: NodeKey, row: Row) -> bool:
        """Add a relation; False where it was added before, which changes nothing."""
        tables, ends = (table, source[0], target[0]), (source[1], target[1])
        rows = self.joined.get(tables)
        if rows is None:
            self.joined[tables] = {ends: row}
        elif ends in rows:
            return False
        else:
            rows[ends] = row
        return True

    def remove_edge(self, table: str, source: NodeKey, target: NodeKey, row: Row) -> None:
        """Remove a relation that is there; `row` is what it was. One that the batch made leaves no trace."""
        tables, ends = (table, source[0], target[0]), (source[1], target[1])
        made = self.joined.get(tables, {})
        if ends not in made:
            self.parted.setdefault(tables, {})[ends] = row
            return
        del made[ends]
        if not made:
            del self.joined[tables]

    def add(self, later: Changes) -> None:
        """Take in the changes of a later batch, so that these are those of both."""
        for table, created in later.created.items():
            for id, row in created.items():
                self.put_new_node(table, id, row)
        for table, changed in later.changed.items():
            for id, change in changed.items():
                self.put_node(NodeKey(table, id), change.before, change.after)
        for (table, source, target), parted in later.parted.items():
            for (one, other), row in parted.items():
                self.remove_edge(table, NodeKey(source, one), NodeKey(target, other), row)
        for (table, source, target), joined in later.joined.items():
            for (one, other), row in joined.items():
                self.put_edge(table, NodeKey(source, one), NodeKey(target, other), row)


class RowSource(Protocol):
    """Where rows are read from: a graph, or an overlay on one."""

    @property
    def tables(self) -> Tables:
        """The tables that there are."""
        ...

    def node(self, table: str, id: NodeId) -> Row | None:
        """The row of a node, or None where there is none."""
        ...

    def nodes(self, keys: Collection[NodeKey]) -> dict[NodeKey, Row]:
        """Rows of the nodes that exist; the others are absent from the answer."""
        ...

    def edges(self, keys: Collection[EdgesKey]) -> dict[EdgesKey, tuple[EdgeKey, ...]]:
        """The relations at each node's given end, sorted; every key asked for is in the answer."""
        ...

    def edge(self, key: EdgeKey) -> Row | None:
        """The row of a relation, or None where there is none."""
        ...


class Overlay:
    """Rows read from a source, with the changes of the events folded since on top.

    A row is read from the source once, when it is first asked for; `prefetch` reads many at once, where that is cheaper
    than one by one. A change is visible to the next read.
    """

    def __init__(self, source: RowSource) -> None:
        self._source = source
        self._nodes: defaultdict[str, dict[NodeId, Row | None]] = defaultdict(dict)
        self._edges: defaultdict[str, dict[tuple[End, NodeKey], _Members]] = defaultdict(dict)
        self._declared: Tables | None = None
        self.changes = Changes()

    @property
    def tables(self) -> Tables:
        """The tables that there are, with those that the changes declare."""
        return self._source.tables if self._declared is None else self._declared

    def declare(self, tables: Tables) -> None:
        """Have these tables from now on."""
        self._declared = tables

    def prefetch(self, keys: Iterable[Key]) -> None:
        """Bring rows in from the source; keys already here are left as they are."""
        nodes: dict[NodeKey, None] = {}
        edges: dict[EdgesKey, None] = {}
        for key in keys:
            if isinstance(key, NodeKey):
                if key.id not in self._nodes[key.table]:
                    nodes[key] = None
            elif (key.end, key.node) not in self._edges[key.table]:
                edges[key] = None
        if nodes:
            found = self._source.nodes([node for node in nodes if self._in_source(node)])
            for node in nodes:
                self._nodes[node.table][node.id] = found.get(node)
        if edges:
            known = [at for at in edges if at.table in self._source.tables.edges and self._in_source(at.node)]
            for at, members in (dict.fromkeys(edges, ()) | dict(self._source.edges(known))).items():
                others = (edge.target if at.end == "source" else edge.source for edge in members)
                gone = set(self._others(at, self.changes.parted))
                there = (other for other in others if other not in gone) if gone else others
                self._edges[at.table][at.end, at.node] = _Members(there, self._others(at, self.changes.joined))

    def node(self, table: str, id: NodeId) -> Row | None:
        """The row of a node, or None where there is none."""
        here = self._nodes[table]
        row = here.get(id)
        if row is None and id not in here:
            row = here[id] = self._source.node(table, id) if table in self._source.tables.nodes else None
        return row

    def _in_source(self, node: NodeKey) -> bool:
        """Whether the source has the node's table; one that was declared since is in the changes alone."""
        return node.table in self._source.tables.nodes

    def neighbours(self, table: str, end: End, node: NodeKey) -> tuple[NodeKey, ...]:
        """The nodes at the other end of a node's relations, in a fixed order."""
        members = self._edges[table].get((end, node))
        if members is None:
            self.prefetch((EdgesKey(table, end, node),))
            members = self._edges[table][end, node]
        return members.sorted()

    def edge(self, key: EdgeKey) -> Row | None:
        """The row of a relation, or None where there is none."""
        tables, ends = (key.table, key.source.table, key.target.table), (key.source.id, key.target.id)
        row = self.changes.joined.get(tables, {}).get(ends)
        if row is not None or ends in self.changes.parted.get(tables, ()):
            return row
        table = self._source.tables.edges.get(key.table)
        return self._source.edge(key) if table and tables[1:] in table.pairs else None

    def put_node(self, key: NodeKey, row: Row) -> None:
        """Set a node's whole row."""
        before = self.node(*key)
        self._nodes[key.table][key.id] = row
        self.changes.put_node(key, before, row)

    def put_new_node(self, table: str, id: NodeId, row: Row) -> None:
        """Set the row of a node that is known to be new."""
        self._nodes[table][id] = row
        self.changes.put_new_node(table, id, row)

    def put_edge(self, table: str, source: NodeKey, target: NodeKey, row: Row) -> None:
        """Add a relation; adding one that this overlay added before changes nothing."""
        here = self._edges.get(table)
        if not self.changes.put_edge(table, source, target, row) or not here:
            return
        if members := here.get(("source", source)):
            members.add(target)
        if members := here.get(("target", target)):
            members.add(source)

    def remove_edge(self, key: EdgeKey, row: Row) -> None:
        """Remove a relation that is there; `row` is what it was."""
        self.changes.remove_edge(*key, row)
        here = self._edges.get(key.table, {})
        if members := here.get(("source", key.source)):
            members.remove(key.target)
        if members := here.get(("target", key.target)):
            members.remove(key.source)

    def flushed(self) -> None:
        """Forget the changes, once the source holds them; what was read and changed stays readable."""
        self.changes = Changes()
        self._declared = None

    @staticmethod
    def _others(at: EdgesKey, changed: Mapping[EdgeTables, Mapping[Ends, Row]]) -> Iterator[NodeKey]:
        """The other ends of a node's relations, of those that were made or removed since the source was read."""
        for (table, source, target), rows in changed.items():
            if table != at.table:
                continue
            for source_id, target_id in rows:
                ends = NodeKey(source, source_id), NodeKey(target, target_id)
                if ends[at.end == "target"] == at.node:
                    yield ends[at.end == "source"]

    def __len__(self) -> int:
        """How many keys are here."""
        return sum(map(len, self._edges.values())) + sum(map(len, self._nodes.values()))


class _Members:
    """The nodes that a node's relations of one table lead to; sorted when they are asked for."""

    __slots__ = ("_all", "_sorted")

    def __init__(self, *others: Iterable[NodeKey]) -> None:
        self._all = dict.fromkeys(chain(*others))
        self._sorted: tuple[NodeKey, ...] | None = None

    def add(self, other: NodeKey) -> None:
        self._all[other] = None
        self._sorted = None

    def remove(self, other: NodeKey) -> None:
        self._all.pop(other, None)
        self._sorted = None

    def sorted(self) -> tuple[NodeKey, ...]:
        if self._sorted is None:
            self._sorted = tuple(sorted(self._all, key=lambda key: (key.table, _sortable(key.id))))
        return self._sorted


def edge_order(edge: EdgeKey) -> tuple[str, str, str, str, str]:
    """A total order of relations, the same in every process and for ids of either type."""
    return (edge.table, edge.source.table, _sortable(edge.source.id), edge.target.table, _sortable(edge.target.id))


def _sortable(id: NodeId) -> str:
    return f"{id:020d}" if isinstance(id, int) else id
