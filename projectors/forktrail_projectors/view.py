"""A run as whoever asks sees it: the same whether this process holds the graph or asks the one that does."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Protocol

from forktrail_projectors.graph.protocol import Table
from forktrail_projectors.reader import LogReader
from forktrail_projectors.record import Verdict
from forktrail_projectors.state import EdgeKey, EdgesKey, NodeKey, Row, Value
from forktrail_schemas.errors import GraphBehind

Say = Callable[[str], None]


@dataclass(frozen=True)
class Position:
    """Where a graph stands against its log.

    Attributes:
        end: the offset after the log's last record.
        state_digest: hex, of the rows at next_offset.
        log_root: hex, of the Merkle tree over the records before next_offset.
    """

    next_offset: int
    end: int
    state_digest: str
    log_root: str


class GraphView(Protocol):
    """What can be read of a graph."""

    def query(
        self, cypher: str, parameters: Mapping[str, Value] | None = None, *, timeout_ms: int | None = None
    ) -> Table:
        """Run one read-only statement; see `CypherGraph.query`.

        Raises:
            InvalidInput: the statement doesn't parse, or does more than read.
            GraphError: the engine failed, or the time ran out (code `query_timeout`).
        """
        ...

    def nodes(self, keys: Collection[NodeKey]) -> dict[NodeKey, Row]:
        """Whole rows of the nodes that exist; others are absent."""
        ...

    def edges(self, keys: Collection[EdgesKey]) -> dict[EdgesKey, tuple[EdgeKey, ...]]:
        """The relations at each node's given end, sorted; every key asked for is in the answer."""
        ...


class RunView(Protocol):
    """A run's graph and log.

    A steady view shows the graph as of one offset until `catch_up` is called; where its owner couldn't wait for that,
    asking raises GraphBusy with code `graph_moved`. A live one shows the newest that is folded.

    Attributes:
        run: its id.
        owner: who holds the graph: "this process", or "process 4711".
        next_offset: the offset that is folded next, as far as this view knows.
        graph: what can be read of the graph.
        reader: the log, for this thread alone.
    """

    @property
    def run(self) -> str: ...
    @property
    def owner(self) -> str: ...
    @property
    def next_offset(self) -> int: ...
    @property
    def graph(self) -> GraphView: ...
    @property
    def reader(self) -> LogReader: ...

    def catch_up(self, end: int | None = None) -> None:
        """Have everything folded up to `end`, or to the end that the log has now, and show that from here on.

        Raises:
            LogUnavailable: Kafka doesn't answer.
            GraphBehind: the owner wasn't there in time.
        """
        ...

    def verdict(self, offset: int) -> Verdict:
        """The verdict on a folded offset.

        Raises:
            GraphBehind: it isn't folded yet.
        """
        ...

    def position(self) -> Position:
        """Where it stands now.

        Raises:
            LogUnavailable: Kafka doesn't answer.
        """
        ...

    def sound(self) -> bool:
        """Whether the kept state digest is the one that all rows give; reads the whole graph."""
        ...


def behind(run: str, next_offset: int, end: int) -> GraphBehind:
    """The error of whoever asks for more than is folded, and may not be."""
    return GraphBehind(
        f"synchronization is in progress: the graph of {run} is at offset {next_offset} of {end}",
        hint=f"forktrail project {run}",
        run=run,
        offset=next_offset,
    )
