"""What every graph does: rows by key for the fold, one atomic commit per batch, and all rows for the digest."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

from forktrail_projectors.graph.declared_tables import Tables
from forktrail_projectors.state import Changes, EdgeKey, EdgesKey, NodeId, NodeKey, Row, Value


@dataclass(frozen=True)
class Cursor:
    """How far a graph has come; committed together with the rows.

    Attributes:
        topic_id: Kafka's id of the topic, which a deleted and recreated topic of the same name doesn't share.
        next_offset: the offset to read next.
        record_hash: hex RFC 6962 leaf hash of the last folded record, "" at offset 0.
        frontier: hex roots of the complete subtrees of the RFC 6962 tree over the records so far, largest first.
        accumulator: hex of the state digest's running sum (see digest.py).
        fold_version: version of the fold that made the rows.
    """

    topic_id: str
    next_offset: int
    record_hash: str
    frontier: tuple[str, ...]
    accumulator: str
    fold_version: int


@dataclass(frozen=True)
class Table:
    """A query's answer: column names, and rows with one value per column."""

    columns: tuple[str, ...]
    rows: Sequence[tuple[object, ...]]


class Graph(Protocol):
    """A projection's rows and its cursor.

    One writer at a time. `commit` is atomic: after a crash the graph holds all of it or none.

    Attributes:
        prefetch_pays: reading many rows at once is cheaper than one by one.
    """

    prefetch_pays: ClassVar[bool]

    @property
    def tables(self) -> Tables:
        """The tables that it has: the built-in ones, and those of the types that its run declared."""
        ...

    def cursor(self) -> Cursor | None:
        """Where the graph stands; None before the first commit."""
        ...

    def node(self, table: str, id: NodeId) -> Row | None:
        """The whole row of a node, or None where there is none."""
        ...

    def nodes(self, keys: Collection[NodeKey]) -> dict[NodeKey, Row]:
        """Whole rows (every column of the table, None for null) of the nodes that exist; others are absent."""
        ...

    def edges(self, keys: Collection[EdgesKey]) -> dict[EdgesKey, tuple[EdgeKey, ...]]:
        """The relations at each node's given end, sorted by `edge_order`; every key asked for is in the answer."""
        ...

    def edge(self, key: EdgeKey) -> Row | None:
        """The row of a relation, or None where there is none."""
        ...

    def commit(self, changes: Changes, cursor: Cursor) -> None:
        """Write the rows and the cursor in one transaction.

        A node that is changed and both ends of a relation must be there or in the batch; what is new must be new.

        Raises:
            GraphError: nothing was written.
        """
        ...

    def rows(self) -> Iterator[tuple[NodeKey | EdgeKey, Row]]:
        """Every node and relation with its whole row, in no particular order; the cursor is not among them."""
        ...

    def close(self) -> None:
        """Release the file; further calls fail."""
        ...


class Queryable(Protocol):
    """A graph that answers Cypher."""

    def query(self, cypher: str, parameters: Mapping[str, Value] | None = None) -> Table:
        """Run one read-only statement.

        Raises:
            InvalidInput: the statement doesn't parse, writes, touches files or settings, or is more than one.
            GraphError: the engine failed.
        """
        ...
