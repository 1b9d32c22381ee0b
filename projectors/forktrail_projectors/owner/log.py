"""The log as an owner reads it: reading stops when the owner does, and its end can be asked for by any thread."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import suppress

from forktrail_producers.kafka import require_listening
from forktrail_projectors.reader import LogReader
from forktrail_projectors.record import LogRecord
from forktrail_schemas.errors import ForktrailError


class Stopped(Exception):
    """The owner is stopping, and what is being read isn't wanted any more."""


class StoppableReader(LogReader):
    """A log whose reading ends between two batches once the owner stops, also in the midst of a rebuild."""

    def __init__(self, bootstrap_servers: str, run: str, stopping: Callable[[], bool]) -> None:
        super().__init__(bootstrap_servers, run)
        self._stopping = stopping

    def read(self, start: int, end: int) -> Iterator[list[LogRecord]]:
        """See `LogReader`.

        Raises:
            Stopped: the owner stops.
        """
        for batch in super().read(start, end):
            if self._stopping():
                raise Stopped
            yield batch


class LogEnd:
    """The end of a log, over a connection of its own."""

    def __init__(self, bootstrap_servers: str, run: str) -> None:
        self._bootstrap_servers = bootstrap_servers
        self._run = run
        self._lock = threading.Lock()
        self._reader: LogReader | None = None

    def __call__(self) -> int:
        """The offset after the last record.

        Raises:
            NotFound: the run's topic is gone.
            LogUnavailable: Kafka doesn't answer.
        """
        with self._lock:
            if self._reader is not None:
                try:
                    require_listening(self._bootstrap_servers)
                    return self._reader.end()
                except ForktrailError:  # what an old connection says of a broker that was away isn't to be relied on
                    self._drop()
            self._reader = LogReader(self._bootstrap_servers, self._run)
            return self._reader.end()

    def close(self) -> None:
        """Let go of the connection, unless somebody waits for it."""
        if self._lock.acquire(blocking=False):
            with suppress(RuntimeError):
                self._drop()
            self._lock.release()

    def _drop(self) -> None:
        reader, self._reader = self._reader, None
        if reader is not None:
            reader.close()
