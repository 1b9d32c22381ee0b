"""A story's graph served on a socket by this process, without a log behind it: the test folds when it wants to."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import cast

from forktrail_projectors.graph.cypher import CypherGraph
from forktrail_projectors.owner.address import listening
from forktrail_projectors.owner.client import Connection, OwnerView, dial
from forktrail_projectors.owner.owned import Owned
from forktrail_projectors.owner.server import Server
from forktrail_projectors.projection import Projection
from forktrail_projectors.reader import LogReader
from forktrail_projectors.record import LogRecord
from support.packets import StoryReader
from support.story import Story

WAIT_S = 20.0


@dataclass(frozen=True)
class Served:
    """A graph and its server."""

    story: Story
    owned: Owned
    projection: Projection
    server: Server
    path: Path

    def fold(self, *records: LogRecord) -> None:
        """Append records to the log and fold them, as an owner does."""
        self.story.records.extend(records)
        self.fold_missing()

    def fold_missing(self) -> None:
        """Fold what the log has."""
        with self.owned.gate.writing():
            self.projection.projector.apply(self.story.records[self.projection.next_offset :])
        self.owned.folded()

    def view(self, *, live: bool = False, wait_seconds: float = WAIT_S) -> OwnerView:
        """A view over the socket."""
        return OwnerView(partial(dial, self.path), self.story.run, "", live=live, wait_seconds=wait_seconds)

    def connect(self) -> Connection:
        """A connection to it."""
        return Connection(dial(self.path), self.story.run)

    def raw(self) -> socket.socket:
        """A connection on which nothing was read yet."""
        return dial(self.path)


@contextmanager
def serving(story: Story, folder: Path, graph: CypherGraph | None = None) -> Iterator[Served]:
    """Fold a story into a graph that answers Cypher, and serve it for the length of a `with` block."""
    graph = graph or CypherGraph.in_memory()
    projection = Projection(story.run, graph, cast(LogReader, StoryReader(story)))
    owned = Owned(story.run, lambda: len(story.records))
    with listening(folder / "sockets", "story") as (listener, path):
        server = Server(owned, listener)
        served = Served(story, owned, projection, server, path)
        try:
            owned.opened(projection)
            served.fold_missing()
            yield served
        finally:
            owned.closed(for_good=True)
            server.close()
            graph.close()
