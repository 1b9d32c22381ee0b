"""What the fold reads and writes: rows by key, and the changes that one or many events make.

The fold never asks a query. It names keys, gets rows, and returns changes; where the rows lie is the graph's affair.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, Protocol

Value = str | int | bool | tuple[str, ...] | None
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

    def nodes(self, keys: Collection[NodeKey]) -> dict[NodeKey, Row]:
        """Rows of the nodes that exist; the others are absent from the answer."""
        ...

    def edges(self, keys: Collection[EdgesKey]) -> dict[EdgesKey, tuple[EdgeKey, ...]]:
        """The relations at each node's given end, sorted; every key asked for is in the answer."""
        ...


class KeyNotPrefetched(LookupError):
    """A rule read a key it had not named; the fold asks for it and runs the rule again."""

    def __init__(self, key: Key) -> None:
        super().__init__(f"key was not prefetched: {key}")
        self.key = key


class Overlay:
    """Rows prefetched from a source, with the changes of the events folded since on top.

    Reading an unknown key raises KeyNotPrefetched; `prefetch` brings it in. A change is visible to the next read.
    """

    def __init__(self, source: RowSource) -> None:
        self._source = source
        self._nodes: dict[NodeKey, Row | None] = {}
        self._edges: dict[EdgesKey, dict[EdgeKey, None]] = {}
        self.changes = Changes()

    def prefetch(self, keys: Collection[Key]) -> None:
        """Bring rows in from the source; keys already here are left as they are."""
        nodes = [key for key in dict.fromkeys(keys) if isinstance(key, NodeKey) and key not in self._nodes]
        edges = [key for key in dict.fromkeys(keys) if isinstance(key, EdgesKey) and key not in self._edges]
        if nodes:
            found = self._source.nodes(nodes)
            for node in nodes:
                self._nodes[node] = found.get(node)
        if edges:
            for key, members in self._source.edges(edges).items():
                self._edges[key] = dict.fromkeys(members)
                for edge in self.changes.edges:
                    self._join(key, edge)

    def node(self, table: str, id: NodeId) -> Row | None:
        """The row of a node, or None where there is none.

        Raises:
            KeyNotPrefetched: the key was not brought in.
        """
        key = NodeKey(table, id)
        try:
            return self._nodes[key]
        except KeyError:
            raise KeyNotPrefetched(key) from None

    def edges(self, table: str, end: End, node: NodeKey) -> tuple[EdgeKey, ...]:
        """The relations of a table at a node's given end, sorted by key.

        Raises:
            KeyNotPrefetched: the key was not brought in.
        """
        key = EdgesKey(table, end, node)
        try:
            members = self._edges[key]
        except KeyError:
            raise KeyNotPrefetched(key) from None
        return tuple(sorted(members, key=edge_order))

    def put_node(self, key: NodeKey, row: Row) -> None:
        """Set a node's whole row; its key must have been prefetched."""
        before = self.node(*key)
        self._nodes[key] = row
        earlier = self.changes.nodes.get(key)
        self.changes.nodes[key] = NodeChange(before if earlier is None else earlier.before, row)

    def put_edge(self, key: EdgeKey, row: Row) -> None:
        """Add a relation; adding one that this overlay added before changes nothing."""
        if key in self.changes.edges:
            return
        self.changes.edges[key] = row
        for end, node in (("source", key.source), ("target", key.target)):
            members = self._edges.get(EdgesKey(key.table, end, node))  # type: ignore[arg-type]  # a tuple of literals
            if members is not None:
                members[key] = None

    def flushed(self) -> None:
        """Forget the changes, once the source holds them; what was read and changed stays readable."""
        self.changes = Changes()

    def _join(self, key: EdgesKey, edge: EdgeKey) -> None:
        if edge.table == key.table and (edge.source if key.end == "source" else edge.target) == key.node:
            self._edges[key][edge] = None


def edge_order(edge: EdgeKey) -> tuple[str, str, str, str, str]:
    """A total order of relations, the same in every process and for ids of either type."""
    return (edge.table, edge.source.table, _sortable(edge.source.id), edge.target.table, _sortable(edge.target.id))


def _sortable(id: NodeId) -> str:
    return f"{id:020d}" if isinstance(id, int) else id
