"""The thread of an owner that folds: record by record as they come, through Kafka's absences, until it is stopped."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress

from forktrail_producers.kafka import Topics, require_listening
from forktrail_projectors.graph.cypher import CypherGraph
from forktrail_projectors.graph.engine import LOG_BYTES_REPLAYED_MAX
from forktrail_projectors.opener import Opener, cannot_be_folded_on
from forktrail_projectors.owner.log import StoppableReader, Stopped
from forktrail_projectors.owner.owned import Owned
from forktrail_projectors.owner.progress import Progress
from forktrail_projectors.projection import Projection
from forktrail_projectors.reader import LogReader
from forktrail_projectors.record import LogRecord, Verdict
from forktrail_projectors.view import Say
from forktrail_schemas.errors import ForktrailError, GraphBusy, GraphDiskFull, GraphError, LogUnavailable, NotFound
from forktrail_schemas.events import RunClosed
from forktrail_schemas.topics import run_topic

LOOK_SECONDS = 1.0
RETRY_SECONDS = 0.5
# A broker that has just started may not know its topics yet.
GONE_SECONDS = 5.0
# How long a stop waits for what Kafka was asked.
STOP_SECONDS = 1.0
# After so long without a record, a write-ahead log goes into the file that a kill would leave to be replayed.
IDLE_SECONDS = 10.0
# Kafka's absence is said once in so long.
AWAY_SECONDS = 30.0

Folded = Callable[[list[Verdict]], None]


class Follower:
    """Folds one run live, from a graph that it opens, and closes at the end.

    What it can't go on from (a topic made anew, a damaged log) ends it, and is the failure that `owned` tells.
    """

    def __init__(
        self,
        bootstrap_servers: str,
        run: str,
        opener_of: Callable[[LogReader], Opener],
        owned: Owned,
        say: Say,
        folded: Folded,
    ) -> None:
        """Connect to the log.

        Args:
            opener_of: how to open the graph, given the log.
            folded: called after each commit, with what was folded.

        Raises:
            NotFound: no such run.
            LogUnavailable: Kafka doesn't answer.
        """
        self._bootstrap_servers = bootstrap_servers
        self._run = run
        self._opener_of = opener_of
        self._owned = owned
        self._say = say
        self._folded = folded
        self._progress = Progress()
        self._stopping = threading.Event()
        self._opening = threading.Lock()
        self._reader = self._connected()
        self._topics: Topics | None = None
        self._graph: CypherGraph | None = None
        self._looked_at = self._said_away_at = self._failed_at = float("-inf")
        self._seen = 0
        self._moved_at = time.monotonic()
        self._rebuilt_after_failure = False
        self._thread = threading.Thread(target=self._work, name="forktrail-fold", daemon=True)

    def start(self, *, rebuild: bool) -> None:
        """Open the graph, or make it anew, and begin to fold.

        Raises:
            GraphError: as `open_projection`.
        """
        self._open("asked for" if rebuild else "")
        self._thread.start()

    def stop(self) -> None:
        """Stop between two batches, and close the graph.

        Raises:
            GraphHung: a client's query runs on, whatever the engine is told.
        """
        self._stopping.set()
        self._owned.gate.clear()
        if self._thread.ident is not None:
            self._thread.join(STOP_SECONDS)
        # A thread that waits for Kafka touches nothing more when it wakes. One that opens or rebuilds is waited for.
        with self._opening:
            if self._graph is not None:
                self._graph.close()
        if not self._thread.is_alive():
            self._reader.close()

    def _work(self) -> None:
        failure: ForktrailError | None = None
        try:
            while not self._stopping.is_set():
                reason = self._fold()
                if reason is not None:
                    self._open_anew(reason)
        except Stopped:
            pass
        except ForktrailError as error:
            failure = None if self._stopping.is_set() else error
        except BaseException as error:
            failure = GraphError(
                f"the fold broke off: {type(error).__name__}: {error}", code="fold_broken", run=self._run
            )
            raise
        finally:
            self._owned.closed(failure, for_good=True)

    def _fold(self) -> str | None:
        """Fold until the graph must be opened anew; returns why it must be rebuilt first, "" where it needn't be."""
        assert self._graph is not None
        projection = Projection(self._run, self._graph, self._reader)
        self._owned.opened(projection)
        try:
            return self._fold_live(projection)
        except (LogUnavailable, NotFound) as error:
            return self._reconnected(error)
        except GraphError as error:
            return self._failed(error, projection.next_offset)

    def _failed(self, error: GraphError, next_offset: int) -> str:
        """What to do about a graph over which the engine failed: open it anew, if that doesn't help rebuild it, once.

        Raises:
            GraphError: that didn't help either, or the disk is full.
        """
        if self._stopping.is_set() or self._rebuilt_after_failure or isinstance(error, GraphDiskFull):
            raise error
        if next_offset == self._failed_at:
            self._rebuilt_after_failure = True
            return cannot_be_folded_on(error)
        self._failed_at = next_offset
        self._say(f"{error}; opening the graph of {self._run} anew")
        return ""

    def _fold_live(self, projection: Projection) -> str | None:
        for batch in self._batches(projection):
            if batch:
                with self._owned.gate.writing():
                    verdicts = projection.projector.apply(batch)
                self._owned.folded()
                self._report(verdicts)
                self._folded(verdicts)
            if self._stopping.is_set():
                return None
            if self._owned.rebuild_wanted:
                return "asked for"
            if time.monotonic() - self._looked_at >= LOOK_SECONDS:
                self._look(projection)
        return None

    def _batches(self, projection: Projection) -> Iterator[list[LogRecord]]:
        """What is on the log already, in large batches, then what comes."""
        yield from self._reader.read(projection.next_offset, self._reader.end())
        yield from self._reader.follow(projection.next_offset)

    def _look(self, projection: Projection) -> None:
        """See that the log is still there, the same, and no shorter than the graph; say how far the fold is.

        Raises:
            LogUnavailable, NotFound: it isn't; the graph is then checked against it.
        """
        if self._topics is None:
            self._topics = Topics(self._bootstrap_servers)
        require_listening(self._bootstrap_servers)
        end = self._reader.end()
        if self._topics.id_of(run_topic(self._run)) != self._reader.topic_id:
            raise NotFound(f"the topic of {self._run} is gone", run=self._run)
        if end < projection.next_offset:
            raise LogUnavailable(f"the log of {self._run} ends at {end} now", run=self._run)
        self._looked_at = time.monotonic()
        if projection.next_offset != self._seen:
            self._seen, self._moved_at = projection.next_offset, self._looked_at
        elif self._looked_at - self._moved_at >= IDLE_SECONDS:
            self._tidy(projection.graph)
        line = self._progress.line(self._looked_at, projection.next_offset, end)
        if line is not None:
            self._say(line)

    def _tidy(self, graph: CypherGraph) -> None:
        """Run CHECKPOINT if it is worth it, now that nobody waits for a record to be folded."""
        if graph.log_bytes() > LOG_BYTES_REPLAYED_MAX:
            with suppress(GraphBusy), self._owned.gate.writing():  # on kuzu, a query of a client stands in its way
                graph.checkpoint()
        self._moved_at = self._looked_at

    def _reconnected(self, error: LogUnavailable | NotFound) -> str | None:
        """Wait until the log answers, and check the graph against it; returns why it must be rebuilt, if it must.

        Raises:
            NotFound: the run's topic is gone, and doesn't come back.
            GraphMismatch: it was made anew.
        """
        assert self._graph is not None
        gone_at: float | None = None
        self._topics = None
        away = isinstance(error, LogUnavailable) and self._say_away(error)
        while not self._stopping.wait(RETRY_SECONDS):
            try:
                self._reader.close()
                self._reader = self._connected()
                reason = self._opener_of(self._reader).fault(self._graph)
            except LogUnavailable as again:
                gone_at = None
                away = self._say_away(again) or away
            except NotFound:
                gone_at = gone_at or time.monotonic()
                if time.monotonic() - gone_at > GONE_SECONDS:
                    raise
            else:
                if away:
                    self._say(
                        f"Kafka answers again: the graph of {self._run} goes on from offset {self._next_offset()}"
                    )
                return reason
        return None

    def _open_anew(self, reason: str) -> None:
        """Close the graph and open it again, through Kafka's absences."""
        self._owned.closed()
        while True:
            try:
                if self._graph is not None:
                    self._graph.close()
                    self._graph = None
                self._open(reason)
                return
            except LogUnavailable as error:
                self._say_away(error)
                if self._stopping.wait(RETRY_SECONDS):
                    raise Stopped from error
                with suppress(LogUnavailable):
                    self._reader = self._connected()

    def _open(self, reason: str) -> None:
        with self._opening:
            if self._stopping.is_set():
                raise Stopped
            opener = self._opener_of(self._reader)
            self._graph = opener.rebuilt(reason) if reason else opener.opened()
        self._owned.opened(Projection(self._run, self._graph, self._reader), rebuilt=bool(reason))

    def _connected(self) -> LogReader:
        return StoppableReader(self._bootstrap_servers, self._run, self._stopping.is_set)

    def _next_offset(self) -> int:
        cursor = None if self._graph is None else self._graph.cursor()
        return 0 if cursor is None else cursor.next_offset

    def _say_away(self, error: LogUnavailable) -> bool:
        """Say that Kafka is away, unless that was said a moment ago."""
        now = time.monotonic()
        if now - self._said_away_at > AWAY_SECONDS:
            self._said_away_at = now
            self._say(f"{error.message}; folding {self._run} goes on when it does")
        return True

    def _report(self, verdicts: list[Verdict]) -> None:
        for verdict in verdicts:
            if verdict.type == RunClosed.TYPE and verdict.kind == "valid":
                self._say(f"{self._run} was closed at offset {verdict.offset}; it is followed on, a seal may come")
