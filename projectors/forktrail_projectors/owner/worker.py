"""A thread that does one client's work, so that whoever talks to clients never waits for a graph or for Kafka."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from typing import Generic, TypeVar

T = TypeVar("T")


class Worker(Generic[T]):
    """Does what it is given, one after the other, in a thread of its own that doesn't keep the process alive."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._tasks: SimpleQueue[tuple[Callable[[], T], asyncio.Future[T]] | None] = SimpleQueue()
        threading.Thread(target=self._run, name="forktrail-answer", daemon=True).start()

    def do(self, work: Callable[[], T]) -> asyncio.Future[T]:
        """Have it done; call it in the loop's thread."""
        future: asyncio.Future[T] = self._loop.create_future()
        self._tasks.put((work, future))
        return future

    def close(self) -> None:
        """End the thread, once it is done with what it does."""
        self._tasks.put(None)

    def _run(self) -> None:
        while (task := self._tasks.get()) is not None:
            work, future = task
            try:
                result = work()
            except BaseException as error:
                self._tell(_fail, future, error)
            else:
                self._tell(_succeed, future, result)

    def _tell(self, what: Callable[..., None], *arguments: object) -> None:
        with suppress(RuntimeError):  # the loop is closed, and nobody waits any more
            self._loop.call_soon_threadsafe(what, *arguments)


def _succeed(future: asyncio.Future[T], result: T) -> None:
    if not future.done():
        future.set_result(result)


def _fail(future: asyncio.Future[T], error: BaseException) -> None:
    if not future.done():
        future.set_exception(error)
