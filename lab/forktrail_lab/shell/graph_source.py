"""A run's graph as the shell's source: through the process that folds it live, or folded here while it is asked.

A shell must not keep a projector from starting, nor from starting again. So where nobody else folds the run, it owns
the graph only while it is asked and a little longer; where a projector ends, it first gives another time to come.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import TypeVar

from forktrail_lab.shell.source import UNOWNED, Standing
from forktrail_projectors.graph.protocol import Table
from forktrail_projectors.lock import WAIT_SECONDS, holder
from forktrail_projectors.owner.client import OwnerView
from forktrail_projectors.owner.live import own
from forktrail_projectors.owner.log import LogEnd
from forktrail_projectors.owner.messages import OwnerGone
from forktrail_projectors.owner.turn import owner_of
from forktrail_projectors.projection import lock_file
from forktrail_projectors.state import Value
from forktrail_projectors.view import Say
from forktrail_schemas.errors import GraphBusy, GraphError, GraphUnavailable
from forktrail_schemas.settings import Settings

T = TypeVar("T")

# How long this process owns the graph after the last question, and how long another projector may take to come.
LINGER_SECONDS = 5.0
GRACE_SECONDS = 4.0
_LOOK_SECONDS = 0.05
# Owners that end one after the other, each while it is asked the same question, are no accident.
_OWNERS_MAX = 5


class _Ask:
    """A question under way."""

    def __init__(self) -> None:
        self.cancelled = threading.Event()


class GraphSource:
    """Implements `Source`."""

    def __init__(self, settings: Settings, run: str, say: Say) -> None:
        """Name the run; nothing is opened yet.

        Args:
            say: takes each line about who folds the graph, what is set aside and how the fold fares; from any thread.
        """
        self.run = run
        self._settings = settings
        self._say = say
        self._end = LogEnd(settings.bootstrap_servers, run)
        self._turn = threading.Lock()  # whoever changes the view
        self._asks_lock = threading.Lock()
        self._asks: set[_Ask] = set()
        self._owning = ExitStack()
        self._view: OwnerView | None = None
        self._next_offset: int | None = None
        self._asked_at = 0.0
        # The projector that was seen last, while no other has taken its place, and when it was found gone.
        self._projector: int | None = None
        self._lost_at: float | None = None

    def query(self, cypher: str, parameters: Mapping[str, Value], timeout_ms: int | None) -> Table:
        """See `Source`."""

        def ask(view: OwnerView) -> Table:
            view.catch_up()
            table = view.query(cypher, parameters, timeout_ms=timeout_ms)
            self._next_offset = view.next_offset
            return table

        return self._answered(ask)

    def standing(self) -> Standing:
        """See `Source`. Where nobody folds the run, it isn't folded for this, but for the first time."""
        with self._turn:
            self._let_go_if_idle()
            if self._view is None:
                self._view = self._projectors()
            view = self._view
        if self._next_offset is None:
            self._next_offset = self._answered(lambda view: view.position()).next_offset
        elif view is not None:
            try:
                position = view.position()
                self._next_offset = position.next_offset
                return Standing(position.next_offset, position.end, self._owner())
            except OwnerGone:
                self._lost(view)
        return Standing(self._next_offset, self._end(), UNOWNED if self._view is None else self._owner())

    def cancel(self) -> None:
        """See `Source`."""
        with self._asks_lock:
            for ask in self._asks:
                ask.cancelled.set()
        if (view := self._view) is not None:
            view.cancel()

    def close(self) -> None:
        """See `Source`."""
        with self._turn:
            self._drop()
        self._end.close()

    def _answered(self, question: Callable[[OwnerView], T]) -> T:
        with self._asking() as ask:
            for _ in range(_OWNERS_MAX):
                view = self._had(ask)
                try:
                    return question(view)
                except OwnerGone:
                    self._lost(view)
        raise GraphUnavailable("whoever folds the graph ends before it answers", hint="see why, then try again")

    @contextmanager
    def _asking(self) -> Iterator[_Ask]:
        ask = _Ask()
        with self._asks_lock:
            self._asks.add(ask)
        try:
            yield ask
        finally:
            with self._asks_lock:
                self._asks.discard(ask)
            self._asked_at = time.monotonic()

    def _had(self, ask: _Ask) -> OwnerView:
        """The view to ask: that of a projector, or else of this process, once a projector had time to come."""
        with self._turn:
            deadline = time.monotonic() + WAIT_SECONDS
            while self._view is None:
                self._view = self._projectors() or self._own(deadline)
                if self._view is None and ask.cancelled.wait(_LOOK_SECONDS):
                    raise GraphError("the query was cancelled", code="query_cancelled", run=self.run)
            return self._view

    def _projectors(self) -> OwnerView | None:
        """The run as the process shows it that folds it live; None where there is none."""
        lock = lock_file(self._settings, self.run)
        found = holder(lock)
        if found is not None and found.process == os.getpid():
            return None
        servers = self._settings.bootstrap_servers
        view = owner_of(lock, self.run, servers, live=True, wait_seconds=WAIT_SECONDS)
        if view is not None:
            self._found(view.process)
        return view

    def _own(self, deadline: float) -> OwnerView | None:
        """The run as this process folds it; None while another one holds it or may still come."""
        if self._lost_at is not None and time.monotonic() < self._lost_at + GRACE_SECONDS:
            return None
        try:
            with ExitStack() as stack:
                view = stack.enter_context(own(self._settings, self.run, stays=False, say=self._say)).view()
                self._owning = stack.pop_all()
        except GraphBusy:
            if time.monotonic() >= deadline:
                raise
            return None
        self._found(None)
        return view

    def _found(self, process: int | None) -> None:
        """Say so where another process folds the run than before; None is this one."""
        before, self._projector, self._lost_at = self._projector, process, None
        if before is not None and before != process:
            now = "this shell folds it now" if process is None else f"process {process} folds it now"
            self._say(f"process {before} let go of the graph; {now}")

    def _lost(self, view: OwnerView) -> None:
        """The owner closed the connection: for good, or to open its graph anew."""
        with self._turn:
            if self._view is view:
                self._drop()
                self._lost_at = None if self._projector is None else time.monotonic()

    def _let_go_if_idle(self) -> None:
        owns = self._view is not None and self._view.process == os.getpid()
        if owns and not self._asks and time.monotonic() - self._asked_at > LINGER_SECONDS:
            self._drop()

    def _drop(self) -> None:
        view, self._view = self._view, None
        if view is not None:
            view.close()
        self._owning.close()

    def _owner(self) -> str:
        return UNOWNED if self._projector is None else f"folded by process {self._projector}"
