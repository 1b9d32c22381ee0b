"""A view of a run that outlives the graph's owner: where that one ends, it opens itself again, and goes on."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager, ExitStack
from types import TracebackType
from typing import TypeVar

from forktrail_projectors.graph.protocol import Table
from forktrail_projectors.owner.messages import OwnerGone
from forktrail_projectors.reader import LogReader
from forktrail_projectors.record import Verdict
from forktrail_projectors.state import EdgeKey, EdgesKey, NodeKey, Row, Value
from forktrail_projectors.view import Position, RunView
from forktrail_schemas.errors import GraphBusy, GraphUnavailable

T = TypeVar("T")
Open = Callable[[], AbstractContextManager[RunView]]

# Owners that end one after the other, each while it is asked the same question, are no accident.
OWNERS_MAX = 5


class Handover:
    """Implements `RunView` on whichever view can be had. Use in a `with` block."""

    def __init__(self, first: Open, again: Open, *, live: bool = False) -> None:
        """Remember how to get a view.

        Args:
            first: opens the first one.
            again: opens another, after OwnerGone.
            live: whether what was seen before doesn't bind what is seen next.
        """
        self._first = first
        self._again = again
        self._live = live
        self._lock = threading.RLock()
        self._stack = ExitStack()
        self._view: RunView | None = None
        self._seen: int | None = None

    def __enter__(self) -> Handover:
        self._view = self._stack.enter_context(self._first())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._view = None
        self._stack.__exit__(kind, error, trace)

    @property
    def run(self) -> str:
        """Its id."""
        return self._ask(lambda view: view.run)

    @property
    def owner(self) -> str:
        """Who holds the graph."""
        return self._ask(lambda view: view.owner)

    @property
    def next_offset(self) -> int:
        """The offset that is folded next, as far as this view knows."""
        return self._ask(lambda view: view.next_offset)

    @property
    def graph(self) -> Handover:
        """What can be read of the graph."""
        return self

    @property
    def reader(self) -> LogReader:
        """The log, for one thread alone."""
        return self._ask(lambda view: view.reader)

    def catch_up(self, end: int | None = None) -> None:
        """See `RunView`."""
        self._seen = None
        self._ask(lambda view: view.catch_up(end))

    def verdict(self, offset: int) -> Verdict:
        """See `RunView`."""
        return self._ask(lambda view: view.verdict(offset))

    def position(self) -> Position:
        """See `RunView`."""
        return self._looked(lambda view: view.position())

    def sound(self) -> bool:
        """See `RunView`."""
        return self._ask(lambda view: view.sound())

    def query(
        self, cypher: str, parameters: Mapping[str, Value] | None = None, *, timeout_ms: int | None = None
    ) -> Table:
        """See `GraphView`."""
        return self._looked(lambda view: view.graph.query(cypher, parameters, timeout_ms=timeout_ms))

    def nodes(self, keys: Collection[NodeKey]) -> dict[NodeKey, Row]:
        """See `GraphView`."""
        return self._looked(lambda view: view.graph.nodes(keys))

    def edges(self, keys: Collection[EdgesKey]) -> dict[EdgesKey, tuple[EdgeKey, ...]]:
        """See `GraphView`."""
        return self._looked(lambda view: view.graph.edges(keys))

    def _looked(self, ask: Callable[[RunView], T]) -> T:
        """Ask about the graph, as of the offset of the first such question."""

        def checked(view: RunView) -> T:
            if self._seen not in (None, view.next_offset) and not self._live:
                raise GraphBusy(
                    f"the graph of {view.run} went on from offset {self._seen} to {view.next_offset} while it was read",
                    code="graph_moved",
                    hint="try again",
                    run=view.run,
                    offset=self._seen,
                )
            answer = ask(view)
            self._seen = view.next_offset
            return answer

        return self._ask(checked)

    def _ask(self, ask: Callable[[RunView], T]) -> T:
        for _ in range(OWNERS_MAX):
            view = self._view
            if view is None:
                raise GraphUnavailable("the view is closed", hint="open it again")
            try:
                return ask(view)
            except OwnerGone:
                self._replace(view)
        raise GraphUnavailable("whoever owns the graph ends before it answers", hint="see why, then try again")

    def _replace(self, gone: RunView) -> None:
        with self._lock:
            if self._view is not gone:
                return
            self._stack.close()
            self._view = self._stack.enter_context(self._again())
