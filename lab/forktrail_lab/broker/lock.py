"""A lock between processes, held on an open file."""

from __future__ import annotations

import fcntl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

Report = Callable[[str], None]
"""Tells the user one line of progress."""


@contextmanager
def exclusive(path: Path, waiting_for: str, report: Report) -> Iterator[None]:
    """Hold the lock of `path`, waiting for whoever has it.

    The kernel lets go of the lock when its holder dies, however it dies. Threads of one process exclude each
    other too.

    Args:
        path: the lock file; it is created and stays.
        waiting_for: what the other holder is doing, for the line that is reported before a wait.
        report: told once, if there is a wait.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            report(f"waiting for another process, which is {waiting_for}")
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
