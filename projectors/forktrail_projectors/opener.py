"""Opens or makes the graph file of one run: checked against its log, and rebuilt where it doesn't fit."""

from __future__ import annotations

import time
from pathlib import Path

from forktrail_projectors import merkle, opening
from forktrail_projectors.fold import FOLD_VERSION
from forktrail_projectors.graph.cypher import CypherGraph
from forktrail_projectors.graph.engine import database_files
from forktrail_projectors.graph.protocol import Cursor
from forktrail_projectors.reader import LogReader
from forktrail_projectors.rebuild import pays, rebuild, remove
from forktrail_projectors.view import Say, behind
from forktrail_schemas.errors import GraphError, GraphMismatch, GraphUnavailable


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
                raise behind(self._run, 0, self._reader.end())
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
            raise behind(self._run, cursor.next_offset, end)
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


def _rename(old: Path, new: Path) -> None:
    """Give a database another name. What stands beside it goes first: without its file, it is no database."""
    for file in reversed(database_files(old)):
        file.rename(new.with_name(new.name + file.name.removeprefix(old.name)))
