"""A run's graph on disk: opened by its one owner, checked against the log, folded to the log's end, or rebuilt.

    with open_projection(settings, run) as projection:
        projection.graph.query("MATCH (f:Finding) RETURN f.id")

A graph that doesn't open, is ahead of its log, was folded by another version or disagrees with the log about the last
record is set aside under another name and rebuilt, with a line that says so. One of another topic is `graph_mismatch`
until a rebuild is asked for.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from forktrail_projectors import merkle
from forktrail_projectors.fold import FOLD_VERSION
from forktrail_projectors.graph.cypher import CypherGraph
from forktrail_projectors.graph.engine import database_files
from forktrail_projectors.graph.memory import MemoryGraph
from forktrail_projectors.graph.protocol import Cursor
from forktrail_projectors.lock import WAIT_SECONDS, owned
from forktrail_projectors.projector import Projector, verdict_of_row
from forktrail_projectors.reader import LogReader
from forktrail_projectors.record import Verdict
from forktrail_projectors.state import NodeKey
from forktrail_schemas.errors import Corruption, GraphBehind, GraphMismatch, GraphUnavailable
from forktrail_schemas.settings import Settings

Say = Callable[[str], None]


@dataclass(frozen=True)
class Position:
    """Where a projection stands against its log."""

    next_offset: int
    end: int
    state_digest: str
    log_root: str


class Projection:
    """A run's graph with its log; valid inside the `with` block that opened it."""

    def __init__(self, run: str, graph: CypherGraph, reader: LogReader) -> None:
        self.run = run
        self.graph = graph
        self.reader = reader
        self.projector = Projector(graph, reader.topic_id)

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

    def position(self) -> Position:
        """Where it stands now."""
        cursor = self.projector.cursor
        return Position(
            cursor.next_offset, self.reader.end(), self.projector.state_digest, merkle.root(cursor.frontier)
        )


def graph_file(settings: Settings, run: str) -> Path:
    """Where a run's graph lies; each engine has a file of its own, since neither reads the other's."""
    return settings.graphs_dir / f"{run}.{settings.graph_engine}"


@contextmanager
def open_projection(
    settings: Settings,
    run: str,
    *,
    fold: bool = True,
    rebuild: bool = False,
    say: Say = lambda line: None,
    wait_seconds: float = WAIT_SECONDS,
) -> Iterator[Projection]:
    """Own a run's graph for the length of a `with` block, folded to the end the log has at its start.

    Args:
        fold: False answers from the graph as it stands, or not at all.
        rebuild: make it anew from the log.
        say: takes each line about what was set aside, and why.

    Raises:
        NotFound: no such run.
        LogUnavailable: Kafka doesn't answer.
        GraphBusy: another process held the graph for `wait_seconds`.
        GraphMismatch: the graph is of another topic, or ahead of the log and may not be rebuilt.
        GraphUnavailable: there is no graph, or it doesn't open, and it may not be folded.
        GraphBehind: the graph lacks records, and they may not be folded.
    """
    path = graph_file(settings, run)
    with LogReader(settings.bootstrap_servers, run) as reader, owned(path.with_suffix(".lock"), wait_seconds):
        opener = _Opener(path, settings.graph_engine, run, reader, say)
        graph = opener.rebuilt("asked for") if rebuild else opener.opened(fold=fold)
        try:
            projection = Projection(run, graph, reader)
            if fold:
                projection.catch_up()
            yield projection
        finally:
            graph.close()


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


class _Opener:
    """Opens or makes the graph file of one run."""

    def __init__(self, path: Path, engine: str, run: str, reader: LogReader, say: Say) -> None:
        self._path = path
        self._engine = engine
        self._run = run
        self._reader = reader
        self._say = say

    def opened(self, *, fold: bool) -> CypherGraph:
        if not self._path.exists():
            if not fold:
                raise GraphUnavailable(
                    f"there is no graph of {self._run}", hint=f"forktrail project {self._run}", run=self._run
                )
            return self.rebuilt("its file is gone") if database_files(self._path) else self._open()
        try:
            graph = self._open()
        except GraphUnavailable as error:
            if not fold:
                raise
            return self.rebuilt(f"it doesn't open ({error.message})")
        try:
            fault = self._fault(graph, fold=fold)
        except BaseException:
            graph.close()
            raise
        if fault is None:
            return graph
        graph.close()
        return self.rebuilt(fault)

    def rebuilt(self, reason: str) -> CypherGraph:
        """Fold the whole log into a new file, check its digest, and only then put it in the old one's place."""
        temporary = self._path.with_suffix(".rebuilding")
        try:
            self._build(temporary)
        except BaseException:
            _remove(temporary)
            raise
        aside = self._set_aside()
        _rename(temporary, self._path)
        self._say(
            f"the graph of {self._run} was rebuilt from the log: {reason}"
            + (f"; the old one is kept as {aside.name}" if aside else "")
        )
        return self._open()

    def _build(self, temporary: Path) -> None:
        _remove(temporary)
        graph = CypherGraph.open(temporary, self._engine)
        try:
            projector = Projector(graph, self._reader.topic_id)
            with _no_garbage_collection():
                for batch in self._reader.read(0, self._reader.end()):
                    projector.apply(batch)
            if projector.recomputed_digest() != projector.state_digest:
                raise Corruption(f"the rebuilt graph of {self._run} doesn't match its digest", run=self._run)
        finally:
            graph.close()

    def _open(self) -> CypherGraph:
        return CypherGraph.open(self._path, self._engine)

    def _fault(self, graph: CypherGraph, *, fold: bool) -> str | None:
        """Why an opened graph must be rebuilt, or None; raises where that isn't ours to do."""
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
        fault = self._disagreement(cursor, end)
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


def _remove(path: Path) -> None:
    for file in database_files(path):
        file.unlink(missing_ok=True)


@contextmanager
def _no_garbage_collection() -> Iterator[None]:
    """A bulk fold makes many objects and no cycles; the collector would take half its time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
