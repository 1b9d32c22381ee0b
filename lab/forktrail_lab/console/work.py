"""Work in a thread of its own, so that whoever waits for it hears Ctrl-C at once, and can stop waiting."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable
from typing import Generic, NoReturn, TypeVar

T = TypeVar("T")

_LOOK_SECONDS = 0.1


class Work(Generic[T]):
    """Work that has begun; its thread doesn't keep the process alive."""

    def __init__(self, work: Callable[[], T]) -> None:
        self._work = work
        self._value: list[T] = []
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="forktrail-work", daemon=True)
        self._thread.start()

    def wait(self, seconds: float | None = None) -> bool:
        """Wait for the end of the work, or so long; returns whether it is over."""
        deadline = None if seconds is None else time.monotonic() + seconds
        while self._thread.is_alive():
            left = _LOOK_SECONDS if deadline is None else deadline - time.monotonic()
            if left <= 0:
                return False
            self._thread.join(min(_LOOK_SECONDS, left))
        return True

    def result(self) -> T:
        """What it came to, once it is over; raises what it raised."""
        if self._error is not None:
            raise self._error
        return self._value[0]

    def _run(self) -> None:
        try:
            self._value.append(self._work())
        except BaseException as error:
            self._error = error


def leave_at_once(code: int) -> NoReturn:
    """End the process without its usual farewell, which a thread inside the graph's engine may hold up or crash."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
