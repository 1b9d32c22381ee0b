"""The graph around a change: the one view that patterns are matched on."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable
from typing import Protocol

from forktrail_projectors.graph.declared_tables import Tables
from forktrail_projectors.state import Changes, EdgeKey, End, NodeId, NodeKey, Row

_Parted = dict[tuple[str, End, NodeKey], list[NodeKey]]


class PatternGraph(Protocol):
    """What matching asks of a graph; each answer costs no more than what it holds."""

    @property
    def tables(self) -> Tables:
        """The tables that it has now; asking for another's relations is an error."""
        ...

    def node(self, table: str, id: NodeId) -> Row | None:
        """The row of a node, or None where there is none."""
        ...

    def neighbours(self, table: str, end: End, node: NodeKey) -> Collection[NodeKey]:
        """The nodes at the other end of the relations of a table that have `node` at this end, each once."""
        ...

    def edge(self, key: EdgeKey) -> Row | None:
        """The row of a relation, or None where there is none."""
        ...


class Surroundings:
    """A graph after a change, together with the change.

    Attributes:
        changes: what led to the graph.
        parted: whether relations that the change ended still count.
    """

    def __init__(self, graph: PatternGraph, changes: Changes, *, parted: bool = False) -> None:
        self.changes = changes
        self.parted = parted
        self._graph = graph
        self._tables = graph.tables.edges
        self._ended: _Parted | None = None

    def with_parted(self) -> Surroundings:
        """The same, with the relations that the change ended."""
        if self.parted or not self.changes.parted:
            return self
        return Surroundings(self._graph, self.changes, parted=True)

    def row(self, node: NodeKey) -> Row | None:
        """The row of a node that can match: one that is there and isn't retired."""
        row = self._graph.node(*node)
        return None if row is None or row.get("retired") is True else row

    def neighbours(self, types: Iterable[str], end: End, node: NodeKey) -> Iterable[NodeKey]:
        """The nodes at the other end of relations of some types; one may come several times."""
        for table in types:
            if table in self._tables:
                yield from self._graph.neighbours(table, end, node)
            if self.parted:
                yield from self._ended_at().get((table, end, node), ())

    def edge(self, key: EdgeKey) -> Row | None:
        """The row of a relation, or None where there is none."""
        if key.table not in self._tables:
            return None
        tables, ends = (key.table, key.source.table, key.target.table), (key.source.id, key.target.id)
        # What the change made is the commonest question, and the one that needn't be asked of the graph.
        row = self.changes.joined.get(tables, {}).get(ends)
        if row is None and self.parted:
            row = self.changes.parted.get(tables, {}).get(ends)
        return self._graph.edge(key) if row is None else row

    def reached(self, types: Iterable[str], end: End, node: NodeKey, low: int, high: int) -> list[set[NodeKey]]:
        """The nodes that walks of `low` to `high` relations lead to, by their length; a walk may come back."""
        levels = [{node}]
        for _ in range(high):
            levels.append({other for one in levels[-1] for other in self.neighbours(types, end, one)})
        return levels[low:]

    def _ended_at(self) -> _Parted:
        if self._ended is None:
            self._ended = defaultdict(list)
            for (table, source_table, target_table), rows in self.changes.parted.items():
                for source_id, target_id in rows:
                    source, target = NodeKey(source_table, source_id), NodeKey(target_table, target_id)
                    self._ended[table, "source", source].append(target)
                    self._ended[table, "target", target].append(source)
        return self._ended
