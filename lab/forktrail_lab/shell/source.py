"""Where a shell's answers come from: a run's graph, as of the log's end at each question."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from forktrail_projectors.graph.protocol import Table
from forktrail_projectors.state import Value

# Who folds a run that no projector follows: the shell itself, at each question. It is said so whether or not the shell
# happens to hold the graph, which changes by the second and nobody need care.
UNOWNED = "folded when asked"


@dataclass(frozen=True)
class Standing:
    """Where the graph stands against its log.

    Attributes:
        next_offset: the offset that is folded next.
        end: the offset after the log's last record.
        owner: who holds the graph, in a few words.
    """

    next_offset: int
    end: int
    owner: str

    @property
    def behind(self) -> int:
        """How many records of the log aren't folded yet."""
        return max(0, self.end - self.next_offset)


class Source(Protocol):
    """A run's graph. Calls may come from several threads; whoever holds the graph may end between any two of them.

    Attributes:
        run: its id.
    """

    run: str

    def query(self, cypher: str, parameters: Mapping[str, Value], timeout_ms: int | None) -> Table:
        """Answer one statement that only reads, as of the log's end now.

        Raises:
            InvalidInput: the statement is to blame.
            GraphError: the graph can't answer; the time ran out, or it was cancelled (code `query_timeout`).
            LogUnavailable: Kafka doesn't answer.
        """
        ...

    def standing(self) -> Standing:
        """Fold what is missing and say where the graph stands.

        Raises:
            GraphError, LogUnavailable: as for `query`.
        """
        ...

    def cancel(self) -> None:
        """End the queries that run now, in whatever thread."""
        ...

    def close(self) -> None:
        """Let go of the graph."""
        ...
