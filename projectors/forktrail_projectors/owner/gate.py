"""Lets a graph's writer and its readers take turns, in the order in which they come.

A reader that asks several questions about one state holds the gate between them, and the fold waits. One that takes its
time loses it, so that no client can stop the fold; it learns of that by the graph's offset, which has moved.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

# How long a hold lasts after its last question began, while one is worked on, and in all.
IDLE_SECONDS = 2.0
BUSY_SECONDS = 10.0
TOTAL_SECONDS = 30.0


class Hold:
    """A reader's place at the gate, until it lets go or its time is up."""

    def __init__(self, began: float) -> None:
        self._ends = began + TOTAL_SECONDS
        self.until = began + IDLE_SECONDS

    def extend(self, now: float, seconds: float) -> None:
        """Let it last for so long from now, within what it may last in all."""
        self.until = min(now + seconds, self._ends)


class Gate:
    """Many holds at a time, or one writer; first come, first served."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._changed = threading.Condition()
        self._holds: set[Hold] = set()
        self._writing = False
        self._queue: deque[object] = deque()

    def hold(self) -> Hold:
        """Wait for the writer that is at work or came first, and hold the gate."""
        with self._changed:
            self._take_turn(lambda: self._writing)
            hold = Hold(self._clock())
            self._holds.add(hold)
            return hold

    def holds(self, hold: Hold) -> bool:
        """Whether a hold still stands."""
        with self._changed:
            return self._live(hold)

    def extend(self, hold: Hold, *, busy: bool) -> None:
        """Let a hold last on: a question begins (busy), or was answered. One whose time was up
        stays lost."""
        with self._changed:
            if self._live(hold):
                hold.extend(self._clock(), BUSY_SECONDS if busy else IDLE_SECONDS)
                self._changed.notify_all()

    def release(self, hold: Hold) -> None:
        """Let go; doing it twice is fine."""
        with self._changed:
            self._holds.discard(hold)
            self._changed.notify_all()

    def clear(self) -> None:
        """Take every hold away."""
        with self._changed:
            self._holds.clear()
            self._changed.notify_all()

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Wait until every hold before is released or out of time, and keep readers out for the length of the block."""
        with self._changed:
            self._take_turn(lambda: self._writing or self._held())
            self._writing = True
        try:
            yield
        finally:
            with self._changed:
                self._writing = False
                self._changed.notify_all()

    def _take_turn(self, blocked: Callable[[], bool]) -> None:
        """Wait at the end of the queue; called with the condition's lock held."""
        ticket = object()
        self._queue.append(ticket)
        try:
            while self._queue[0] is not ticket or blocked():
                self._changed.wait(self._until_next_end())
        finally:
            self._queue.remove(ticket)
            self._changed.notify_all()

    def _held(self) -> bool:
        self._holds = {hold for hold in self._holds if self._live(hold)}
        return bool(self._holds)

    def _live(self, hold: Hold) -> bool:
        return hold in self._holds and hold.until > self._clock()

    def _until_next_end(self) -> float | None:
        """Seconds until the first hold is out of time; None where nothing is held."""
        if not self._holds:
            return None
        return max(0.001, min(hold.until for hold in self._holds) - self._clock())
