"""Threads that do work side by side, up to a limit, and that the process doesn't wait for when it ends."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable

Work = Callable[[], None]


class DaemonPool:
    """Does what it is given in daemon threads, as many as are needed and at most `limit`.

    The standard library's pool joins its threads when the interpreter ends, so that one which hangs keeps it alive.
    """

    def __init__(self, limit: int, name: str) -> None:
        """Start no thread yet."""
        self._limit, self._name = limit, name
        self._waiting: queue.SimpleQueue[Work | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._changing = threading.Lock()
        self._idle = 0
        self._closed = False

    def submit(self, work: Work) -> None:
        """Have something done; it must not raise. After `close` nothing is."""
        with self._changing:
            if self._closed:
                return
            if self._idle == 0 and len(self._threads) < self._limit:
                name = f"{self._name}-{len(self._threads)}"
                thread = threading.Thread(target=self._work, name=name, daemon=True)
                self._threads.append(thread)
                thread.start()
            else:
                self._idle = max(0, self._idle - 1)
        self._waiting.put(work)

    def close(self) -> None:
        """Begin nothing more; what is under way ends by itself."""
        with self._changing:
            self._closed = True
        for _ in self._threads:
            self._waiting.put(None)

    def _work(self) -> None:
        while True:
            work = self._waiting.get()
            if work is None or self._closed:
                return
            work()
            with self._changing:
                self._idle += 1
