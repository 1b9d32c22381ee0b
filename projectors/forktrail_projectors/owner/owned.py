"""The graph that this process owns, as the thread that folds it and those that answer questions share it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from forktrail_projectors.owner.gate import Gate
from forktrail_projectors.owner.messages import OwnerGone
from forktrail_projectors.projection import Projection
from forktrail_schemas.errors import ForktrailError, GraphBehind, GraphBusy

_LOOK_SECONDS = 0.25


class Owned:
    """Where the fold has come, and the projection to ask; every method may be called from any thread.

    Attributes:
        gate: whoever writes the graph, or asks several questions about one state of it, goes through here.
        let_go: set where another process, which means to stay, asks for the graph.
    """

    def __init__(self, run: str, end: Callable[[], int]) -> None:
        """Begin without a graph.

        Args:
            end: the log's end now.
        """
        self.run = run
        self.end = end
        self.gate = Gate()
        self.let_go = threading.Event()
        self._changed = threading.Condition()
        self._projection: Projection | None = None
        self._failure: ForktrailError | None = None
        self._rebuilds = 0
        self._rebuild_wanted = False
        self._closed = False

    def opened(self, projection: Projection, *, rebuilt: bool = False) -> None:
        """Here is the graph, from now on."""
        with self._changed:
            self._projection = projection
            if rebuilt:
                self._rebuilds += 1
                self._rebuild_wanted = False
            self._changed.notify_all()

    def closed(self, failure: ForktrailError | None = None, *, for_good: bool = False) -> None:
        """The graph is closed: to be opened anew, or for good, because of a failure maybe."""
        with self._changed:
            self._projection = None
            self._failure = self._failure or failure
            self._closed = self._closed or for_good or failure is not None
            self._changed.notify_all()

    def folded(self) -> None:
        """Something was folded."""
        with self._changed:
            self._changed.notify_all()

    def projection(self) -> Projection:
        """The projection to ask.

        Raises:
            GraphBusy: it is being opened anew.
            ForktrailError: why it was closed for good.
            OwnerGone: this process stops owning it.
        """
        with self._changed:
            return self._checked()

    @property
    def rebuild_wanted(self) -> bool:
        """Whether somebody asked for a rebuild."""
        return self._rebuild_wanted

    def wait_for(self, next_offset: int, wait_seconds: float, cancelled: Callable[[], bool]) -> Projection:
        """The projection, once it is folded up to there.

        Raises:
            GraphBehind: it wasn't in time, or nobody waits any more.
            ForktrailError: why it was closed for good.
            OwnerGone: this process stops owning it.
        """
        deadline = time.monotonic() + wait_seconds
        with self._changed:
            while not self._closed:
                projection = self._projection
                if projection is not None and projection.next_offset >= next_offset:
                    return projection
                if time.monotonic() >= deadline or cancelled():
                    if projection is None:
                        raise self._busy()
                    raise GraphBehind(
                        f"synchronization is in progress: the graph of {self.run} is at offset "
                        f"{projection.next_offset} of {next_offset}",
                        hint="the process that owns it is folding: ask again",
                        run=self.run,
                        offset=projection.next_offset,
                    )
                self._changed.wait(min(_LOOK_SECONDS, max(0.0, deadline - time.monotonic())))
            return self._checked()

    def wait_closed(self) -> None:
        """Wait until the graph is closed for good.

        Raises:
            ForktrailError: why, where that was a failure.
        """
        with self._changed:
            while not self._closed:
                self._changed.wait(_LOOK_SECONDS)
            if self._failure is not None:
                raise self._failure

    def rebuild(self, cancelled: Callable[[], bool]) -> Projection:
        """Have the graph made anew; returns once it is there.

        Raises:
            ForktrailError: it wasn't.
        """
        with self._changed:
            before = self._rebuilds
            self._rebuild_wanted = True
            while self._rebuilds == before and not self._closed and not cancelled():
                self._changed.wait(_LOOK_SECONDS)
            return self._checked()

    def _checked(self) -> Projection:
        if self._failure is not None:
            raise self._failure
        if self._closed:
            raise OwnerGone
        if self._projection is None:
            raise self._busy()
        return self._projection

    def _busy(self) -> GraphBusy:
        return GraphBusy(f"the graph of {self.run} is being opened anew", hint="ask again in a moment", run=self.run)
