"""What the fold reads and writes: rows by key, and the changes that one or many events make.

The fold never asks a query. It names keys, gets rows, and returns changes; where the rows lie is the graph's affair.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, Protocol

Value = str | int | bool | tuple[str, ...] | None
NodeId = str | int
Row = Mapping[str, Value]
End = Literal["source", "target"]
_ENDS: tuple[End, End] = ("source", "target")


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


@dataclass
class Changes:
    """What a batch of events does to the graph, coalesced per key.

    Attributes:
        nodes: by key, in the order of first change.
        edges: new relations by key, in the order they were made. Relations are never changed.
    """

    nodes: dict[NodeKey, NodeChange] = field(default_factory=dict)
    edges: dict[EdgeKey, Row] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.nodes or self.edges)


class RowSource(Protocol):
    """Where rows are read from: a graph, or an overlay on one."""

    def node(self, table: str, id: NodeId) -> Row | None:
        """The row of a node, or None where there is none."""
        ...

    def nodes(self, keys: Collection[NodeKey]) -> dict[NodeKey, Row]:
        """Rows of the nodes that exist; the others are absent from the answer."""
        ...

    def edges(self, keys: Collection[EdgesKey]) -> dict[EdgesKey, tuple[EdgeKey, ...]]:
        """The relations at each node's given end, sorted; every key asked for is in the answer."""
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
        self._new_edges: defaultdict[str, list[EdgeKey]] = defaultdict(list)
        self.changes = Changes()

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
            found = self._source.nodes(nodes)
            for node in nodes:
                self._nodes[node.table][node.id] = found.get(node)
        if edges:
            for at, members in self._source.edges(edges).items():
                new = (edge for edge in self._new_edges[at.table] if _end(edge, at.end) == at.node)
                self._edges[at.table][at.end, at.node] = _Members(at.end, members, new)

    def node(self, table: str, id: NodeId) -> Row | None:
        """The row of a node, or None where there is none."""
        here = self._nodes[table]
        try:
            return here[id]
        except KeyError:
            row = here[id] = self._source.node(table, id)
            return row

    def edges(self, table: str, end: End, node: NodeKey) -> tuple[EdgeKey, ...]:
        """The relations of a table at a node's given end, sorted by `edge_order`."""
        return self._members(table, end, node).edges()

    def neighbours(self, table: str, end: End, node: NodeKey) -> tuple[NodeKey, ...]:
        """The nodes at the other end of a node's relations, in the order of `edges`."""
        return self._members(table, end, node).others()

    def put_node(self, key: NodeKey, row: Row) -> None:
        """Set a node's whole row."""
        before = self.node(*key)
        self._nodes[key.table][key.id] = row
        earlier = self.changes.nodes.get(key)
        self.changes.nodes[key] = NodeChange(before if earlier is None else earlier.before, row)

    def put_new_node(self, key: NodeKey, row: Row) -> None:
        """Set the row of a node that is known to be new."""
        self._nodes[key.table][key.id] = row
        self.changes.nodes[key] = NodeChange(None, row)

    def put_edge(self, key: EdgeKey, row: Row) -> None:
        """Add a relation; adding one that this overlay added before changes nothing."""
        if key in self.changes.edges:
            return
        self.changes.edges[key] = row
        self._new_edges[key.table].append(key)
        here = self._edges.get(key.table)
        if here:
            for end in _ENDS:
                members = here.get((end, _end(key, end)))
                if members is not None:
                    members.add(key)

    def flushed(self) -> None:
        """Forget the changes, once the source holds them; what was read and changed stays readable."""
        self.changes = Changes()
        self._new_edges.clear()

    def _members(self, table: str, end: End, node: NodeKey) -> _Members:
        here = self._edges[table]
        members = here.get((end, node))
        if members is None:
            self.prefetch((EdgesKey(table, end, node),))
            members = here[end, node]
        return members

    def __len__(self) -> int:
        """How many keys are here."""
        return sum(map(len, self._edges.values())) + sum(map(len, self._nodes.values()))


class _Members:
    """The relations at one end of a node; sorted when they are asked for."""

    __slots__ = ("_all", "_end", "_others", "_sorted")

    def __init__(self, end: End, edges: Iterable[EdgeKey], more: Iterable[EdgeKey]) -> None:
        self._end = end
        self._all = dict.fromkeys(edges)
        self._all.update(dict.fromkeys(more))
        self._sorted: tuple[EdgeKey, ...] | None = None
        self._others: tuple[NodeKey, ...] | None = None

    def add(self, edge: EdgeKey) -> None:
        self._all[edge] = None
        self._sorted = self._others = None

    def edges(self) -> tuple[EdgeKey, ...]:
        if self._sorted is None:
            self._sorted = tuple(sorted(self._all, key=edge_order))
        return self._sorted

    def others(self) -> tuple[NodeKey, ...]:
        if self._others is None:
            self._others = tuple(edge.target if self._end == "source" else edge.source for edge in self.edges())
        return self._others


def _end(edge: EdgeKey, end: End) -> NodeKey:
    return edge.source if end == "source" else edge.target


def edge_order(edge: EdgeKey) -> tuple[str, str, str, str, str]:
    """A total order of relations, the same in every process and for ids of either type."""
    return (edge.table, edge.source.table, _sortable(edge.source.id), edge.target.table, _sortable(edge.target.id))


def _sortable(id: NodeId) -> str:
    return f"{id:020d}" if isinstance(id, int) else id
