"""A run's graph on disk: opened by its one owner, checked against the log, folded to the log's end, or rebuilt.

    with open_projection(settings, run) as projection:
        projection.graph.query("MATCH (f:Finding) RETURN f.id")

Where another process owns the graph and serves it (`owner/`), that one is asked, and nothing else changes.

A graph that doesn't open, is ahead of its log, was folded by another version or disagrees with the log about the last
record is set aside under another name and rebuilt, with a line that says so. One of another topic is `graph_mismatch`
until a rebuild is asked for.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from forktrail_projectors import digest, merkle
from forktrail_projectors.graph.cypher import CypherGraph
from forktrail_projectors.graph.memory import MemoryGraph
from forktrail_projectors.lock import WAIT_SECONDS
from forktrail_projectors.opener import Opener, cannot_be_folded_on
from forktrail_projectors.owner.client import OwnerView
from forktrail_projectors.owner.handover import Handover
from forktrail_projectors.owner.messages import OwnerGone
from forktrail_projectors.owner.turn import answered_or_locked, owner_of
from forktrail_projectors.projector import Projector, verdict_of_row
from forktrail_projectors.reader import LogReader
from forktrail_projectors.rebuild import fold_log
from forktrail_projectors.record import Verdict
from forktrail_projectors.state import NodeKey
from forktrail_projectors.view import Position, RunView, Say, behind
from forktrail_schemas.errors import GraphDiskFull, GraphError, GraphUnavailable
from forktrail_schemas.settings import Settings


class Projection:
    """A run's graph with its log, owned by this process. Implements `RunView`."""

    owner = "this process"

    def __init__(self, run: str, graph: CypherGraph, reader: LogReader) -> None:
        self.run = run
        self.graph = graph
        self.reader = reader
        self.projector = Projector(graph, reader.topic_id)

    @property
    def next_offset(self) -> int:
        """The offset that is folded next."""
        return self.projector.cursor.next_offset

    def catch_up(self, end: int | None = None) -> None:
        """Fold up to `end`, or to the end that the log has now."""
        target = self.reader.end() if end is None else end
        for batch in self.reader.read(self.projector.cursor.next_offset, target):
            self.projector.apply(batch)

    def verdict(self, offset: int) -> Verdict:
        """The verdict on a folded offset.

        Raises:
            GraphBehind: it isn't folded yet.
        """
        key = NodeKey("Event", offset)
        row = self.graph.nodes([key]).get(key)
        if row is None:
            raise behind(self.run, self.projector.cursor.next_offset, offset + 1)
        return verdict_of_row(row)

    def position(self, end: int | None = None) -> Position:
        """Where it stands now.

        Args:
            end: the log's end, where that is known already.
        """
        cursor = self.projector.cursor
        return Position(
            next_offset=cursor.next_offset,
            end=self.reader.end() if end is None else end,
            state_digest=digest.state_digest(cursor.accumulator),
            log_root=merkle.root(cursor.frontier),
        )

    def sound(self) -> bool:
        """Whether the digest that is kept is the one that all rows give; rows that the engine can't read give none.

        Raises:
            GraphUnavailable: the graph is closed.
        """
        try:
            return self.projector.recomputed_digest() == self.projector.state_digest
        except GraphUnavailable:
            raise
        except GraphError:
            return False


def graph_file(settings: Settings, run: str) -> Path:
    """Where a run's graph lies; each engine has a file of its own, since neither reads the other's."""
    return settings.graphs_dir / f"{run}.{settings.graph_engine}"


def lock_file(settings: Settings, run: str) -> Path:
    """What the owner of a run's graph holds, and names itself in."""
    return graph_file(settings, run).with_suffix(".lock")


@contextmanager
def open_projection(
    settings: Settings,
    run: str,
    *,
    fold: bool = True,
    rebuild: bool = False,
    steady: bool = True,
    at_least: int | None = None,
    say: Say = lambda line: None,
    wait_seconds: float = WAIT_SECONDS,
) -> Iterator[RunView]:
    """See a run's graph for the length of a `with` block, folded to the end the log has at its start.

    This process owns the graph meanwhile, or asks the one that does; should that one end, this one takes over.

    Args:
        fold: False answers from the graph as it stands, or not at all.
        rebuild: make it anew from the log.
        steady: False is for one question that may take long: an owner needn't wait for it.
        at_least: be content with a graph that is folded up to this offset.
        say: takes each line about what was set aside, and why.

    Raises:
        NotFound: no such run.
        LogUnavailable: Kafka doesn't answer.
        GraphBusy: another process held the graph for `wait_seconds`, without answering.
        GraphMismatch: the graph is of another topic, or ahead of the log and may not be rebuilt.
        GraphUnavailable: there is no graph, or it doesn't open, and it may not be folded.
        GraphBehind: the graph lacks records, and they may not be folded, or weren't in time.
        GraphDiskFull: there is no room to fold them.
    """
    way = _Way(settings, run, fold, steady, at_least, say, wait_seconds)
    with Handover(partial(way.view, rebuild=rebuild), way.view, live=not steady) as view:
        yield view


@dataclass(frozen=True)
class _Way:
    """How to get at a run's graph, for the arguments of `open_projection`: by its lock, or by asking who holds that."""

    settings: Settings
    run: str
    fold: bool
    steady: bool
    at_least: int | None
    say: Say
    wait_seconds: float

    @contextmanager
    def view(self, *, rebuild: bool = False) -> Iterator[RunView]:
        with ExitStack() as stack:
            yield self._asked(stack, rebuild) or self._opened(stack, rebuild)

    def _asked(self, stack: ExitStack, rebuild: bool) -> OwnerView | None:
        """The graph as its owner shows it, or None where none answers."""
        try:
            view = owner_of(
                lock_file(self.settings, self.run),
                self.run,
                self.settings.bootstrap_servers,
                live=not self.steady,
                wait_seconds=self.wait_seconds,
            )
            if view is None:
                return None
            stack.callback(view.close)
            if rebuild:
                view.rebuild()
                self.say(f"{view.owner}, which owns the graph of {self.run}, has rebuilt it from the log")
            view.catch_up(self.at_least, fold=self.fold)
        except OwnerGone:
            return None
        return view

    def _opened(self, stack: ExitStack, rebuild: bool) -> Projection | OwnerView:
        """The graph opened and folded here, once nobody else holds it, unless that one begins to answer."""
        reader = stack.enter_context(LogReader(self.settings.bootstrap_servers, self.run))
        ask = partial(self._asked, stack, rebuild)
        if view := answered_or_locked(stack, lock_file(self.settings, self.run), ask, self.wait_seconds, self.say):
            return view
        path = graph_file(self.settings, self.run)
        opener = Opener(path, self.settings.graph_engine, self.run, reader, self.say)
        graph = opener.rebuilt("asked for") if rebuild else opener.opened(fold=self.fold)
        stack.callback(graph.close)
        projection = Projection(self.run, graph, reader)
        return self._caught_up(stack, projection, opener) if self.fold else projection

    def _caught_up(self, stack: ExitStack, projection: Projection, opener: Opener) -> Projection:
        """The graph folded to the log's end: this one, or one made anew, where the engine fails over a damaged file."""
        try:
            projection.catch_up()
        except GraphDiskFull:
            raise
        except GraphError as error:
            with suppress(GraphError):
                projection.graph.close()
            graph = opener.rebuilt(cannot_be_folded_on(error))
            stack.callback(graph.close)
            projection = Projection(self.run, graph, projection.reader)
            projection.catch_up()
        return projection


def fold_in_memory(settings: Settings, run: str, end: int | None = None) -> tuple[MemoryGraph, Projector]:
    """Fold a run's log into memory; nothing on disk is read or written.

    Raises:
        NotFound: no such run.
        LogUnavailable: Kafka doesn't answer.
    """
    with LogReader(settings.bootstrap_servers, run) as reader:
        return fold_log(reader, reader.end() if end is None else end)
