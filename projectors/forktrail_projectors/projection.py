"""A run's graph on disk: opened by its one owner, checked against the log, folded to the log's end, or rebuilt.

    with open_projection(settings, run) as projection:
        projection.graph.query("MATCH (f:Finding) RETURN f.id")

Where another process owns the graph and serves it (`owner/`), that one is asked, and nothing else changes.

A graph that doesn't open, is ahead of its log, was folded by another version or disagrees with the log about the last
record is set aside under another name and rebuilt, with a line that says so. One of another topic is `graph_mismatch`
until a rebuild is asked for.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from forktrail_projectors import digest, merkle, opening
from forktrail_projectors.fold import FOLD_VERSION
from forktrail_projectors.graph.cypher import CypherGraph
from forktrail_projectors.graph.engine import database_files
from forktrail_projectors.graph.memory import MemoryGraph
from forktrail_projectors.graph.protocol import Cursor
from forktrail_projectors.lock import WAIT_SECONDS, holder, owned
from forktrail_projectors.owner.client import OwnerView, dial
from forktrail_projectors.owner.handover import Handover
from forktrail_projectors.owner.messages import OwnerGone
from forktrail_projectors.projector import Projector, verdict_of_row
from forktrail_projectors.reader import LogReader
from forktrail_projectors.rebuild import pays, rebuild, remove
from forktrail_projectors.record import Verdict
from forktrail_projectors.state import NodeKey
from forktrail_projectors.view import Position, RunView, Say
from forktrail_schemas.errors import GraphBehind, GraphError, GraphMismatch, GraphUnavailable
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
            raise _behind(self.run, self.projector.cursor.next_offset, offset + 1)
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
            yield self._asked(stack, rebuild) or self._owned(stack, rebuild)

    def _asked(self, stack: ExitStack, rebuild: bool) -> OwnerView | None:
        """The graph as its owner shows it, or None where none answers."""
        found = holder(lock_file(self.settings, self.run))
        if found is None or found.socket is None:
            return None
        try:
            view = OwnerView(
                partial(dial, found.socket),
                self.run,
                self.settings.bootstrap_servers,
                live=not self.steady,
                wait_seconds=self.wait_seconds,
            )
            stack.callback(view.close)
            if rebuild:
                view.rebuild()
                self.say(f"{view.owner}, which owns the graph of {self.run}, has rebuilt it from the log")
            view.catch_up(self.at_least, fold=self.fold)
        except OwnerGone:
            return None
        return view

    def _owned(self, stack: ExitStack, rebuild: bool) -> Projection | OwnerView:
        """The graph opened and folded here, once nobody else holds it, unless that one begins to answer."""

        def ask() -> None:
            if view := self._asked(stack, rebuild):
                raise _Answered(view)

        path, lock = graph_file(self.settings, self.run), lock_file(self.settings, self.run)
        reader = stack.enter_context(LogReader(self.settings.bootstrap_servers, self.run))
        try:
            stack.enter_context(owned(lock, self.wait_seconds, while_waiting=ask))
        except _Answered as answered:
            return answered.view
        opener = Opener(path, self.settings.graph_engine, self.run, reader, self.say)
        graph = opener.rebuilt("asked for") if rebuild else opener.opened(fold=self.fold)
        stack.callback(graph.close)
        projection = Projection(self.run, graph, reader)
        return self._caught_up(stack, projection, opener) if self.fold else projection

    def _caught_up(self, stack: ExitStack, projection: Projection, opener: Opener) -> Projection:
        """The graph folded to the log's end: this one, or one made anew, where the engine fails over a damaged file."""
        try:
            projection.catch_up()
        except GraphError as error:
            with suppress(GraphError):
                projection.graph.close()
            graph = opener.rebuilt(cannot_be_folded_on(error))
            stack.callback(graph.close)
            projection = Projection(self.run, graph, projection.reader)
            projection.catch_up()
        return projection


class _Answered(Exception):
    """Whoever holds the graph answers, so that it isn't waited for any more."""

    def __init__(self, view: OwnerView) -> None:
        super().__init__()
        self.view = view


def fold_in_memory(settings: Settings, run: str, end: int | None = None) -> tuple[MemoryGraph, Projector]:
    """Fold a run's log into memory; nothing on disk is read or written.

    Raises:
        NotFound: no such run.
        LogUnavailable: Kafka doesn't answer.
    """
    with LogReader(settings.bootstrap_servers, run) as reader:
        graph = MemoryGraph()
        projector = Projector(graph, reader.topic_id)
        for batch in reader.read(0, reader.end() if end is None else end):
            projector.apply(batch)
    return graph, projector


class Opener:
    """Opens or makes the graph file of one run, for whoever holds its lock."""

    def __init__(self, path: Path, engine: str, run: str, reader: LogReader, say: Say) -> None:
        self._path = path
        self._engine = engine
        self._run = run
        self._reader = reader
        self._say = say

    def opened(self, *, fold: bool = True) -> CypherGraph:
        """The graph, made anew where it doesn't open or doesn't fit its log.

        Raises:
            GraphError: as `open_projection`.
        """
        if not self._path.exists():
            if not fold:
                raise GraphUnavailable(
                    f"there is no graph of {self._run}", hint=f"forktrail project {self._run}", run=self._run
                )
            if database_files(self._path):
                return self.rebuilt("its file is gone")
            if pays(self._engine, self._reader.end()):
                self._replace()
            return self._open()
        deaths = opening.deaths(self._path)
        if fold and deaths >= opening.DEATHS_MAX:
            return self.rebuilt(f"it doesn't open ({deaths} processes in a row died over it)")
        with opening.noted(self._path):
            graph = self._checked(fold=fold)
        return self.rebuilt(graph) if isinstance(graph, str) else graph

    def _checked(self, *, fold: bool) -> CypherGraph | str:
        """The graph, opened and compared with its log, or why it must be rebuilt."""
        try:
            graph = self._open()
        except GraphUnavailable as error:
            if not fold:
                raise
            return f"it doesn't open ({error.message})"
        try:
            fault = self.fault(graph, fold=fold)
        except BaseException:
            graph.close()
            raise
        if fault is None:
            return graph
        graph.close()
        return fault

    def rebuilt(self, reason: str) -> CypherGraph:
        """Fold the whole log into a new file, check every row of it, and only then put it in the old one's place."""
        aside = self._replace()
        self._say(
            f"the graph of {self._run} was rebuilt from the log: {reason}"
            + (f"; the old one is kept as {aside.name}" if aside else "")
        )
        return self._open()

    def _replace(self) -> Path | None:
        """Put a new file in the place of what is there; returns what that is kept as."""
        temporary = self._path.with_suffix(".rebuilding")
        try:
            rebuild(temporary, self._engine, self._reader)
        except BaseException:
            remove(temporary)
            raise
        aside = self._set_aside()
        _rename(temporary, self._path)
        opening.forget(self._path)
        return aside

    def _open(self) -> CypherGraph:
        return CypherGraph.open(self._path, self._engine)

    def fault(self, graph: CypherGraph, *, fold: bool = True) -> str | None:
        """Why an opened graph must be rebuilt, or None.

        Raises:
            GraphMismatch: it is of another topic, or doesn't fit its log and may not be rebuilt.
            GraphBehind: it lacks records, which may not be folded.
        """
        cursor = graph.cursor()
        if cursor is None:
            if not fold:
                raise _behind(self._run, 0, self._reader.end())
            return None
        if cursor.topic_id != self._reader.topic_id:
            raise GraphMismatch(
                f"the graph of {self._run} was folded from another topic of that name",
                hint=f"forktrail project {self._run} --rebuild",
                run=self._run,
            )
        end = self._reader.end()
        fault = self._disagreement(cursor, end) or _gap(graph, cursor)
        if fault is not None and not fold:
            raise GraphMismatch(
                f"the graph of {self._run} doesn't fit its log: {fault}",
                hint=f"forktrail project {self._run}",
                run=self._run,
            )
        if not fold and cursor.next_offset < end:
            raise _behind(self._run, cursor.next_offset, end)
        return fault

    def _disagreement(self, cursor: Cursor, end: int) -> str | None:
        if cursor.fold_version != FOLD_VERSION:
            return f"it was made by fold version {cursor.fold_version}, this is {FOLD_VERSION}"
        if cursor.next_offset > end:
            return f"it is at offset {cursor.next_offset}, ahead of its log, which ends at {end}"
        if cursor.next_offset == 0:
            return None
        last = self._reader.record_at(cursor.next_offset - 1)
        if merkle.record_hash(last) != cursor.record_hash:
            return f"the log holds another record at offset {last.offset} than the graph was folded from"
        return None

    def _set_aside(self) -> Path | None:
        if not database_files(self._path):
            return None
        aside = self._path.with_suffix(f".aside-{time.time_ns()}")
        _rename(self._path, aside)
        return aside


def cannot_be_folded_on(error: GraphError) -> str:
    """Why a graph is rebuilt over which the engine failed in the midst of a fold."""
    return f"it can't be folded on ({error.message})"


def _gap(graph: CypherGraph, cursor: Cursor) -> str | None:
    """What is missing below a cursor that is right, as where an older file was put beside a newer write-ahead log."""
    try:
        events = graph.query("MATCH (e:Event) RETURN count(*)").rows[0][0]
    except GraphError as error:
        return f"its events can't be counted ({error.message})"
    if events == cursor.next_offset:
        return None
    return f"it holds {events} events and stands at offset {cursor.next_offset}"


def _behind(run: str, next_offset: int, end: int) -> GraphBehind:
    return GraphBehind(
        f"synchronization is in progress: the graph of {run} is at offset {next_offset} of {end}",
        hint=f"forktrail project {run}",
        run=run,
        offset=next_offset,
    )


def _rename(old: Path, new: Path) -> None:
    """Give a database another name. What stands beside it goes first: without its file, it is no database."""
    for file in reversed(database_files(old)):
        file.rename(new.with_name(new.name + file.name.removeprefix(old.name)))
