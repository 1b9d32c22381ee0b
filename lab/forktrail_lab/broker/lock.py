"""The broker's lock: one process at a time starts it, stops it or resolves its jars."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from forktrail_projectors.lock import owned

Report = Callable[[str], None]
"""Tells the user one line of progress."""


@contextmanager
def exclusive(path: Path, waiting_for: str, report: Report) -> Iterator[None]:
    """Hold the lock of `path`, waiting for whoever has it as long as it takes; see `owned`.

    Args:
        path: the lock file.
        waiting_for: what the other holder is doing, for the line that is reported before a wait.
        report: told once, if there is a wait.
    """
    with owned(path, None, lambda: report(f"waiting for another process, which is {waiting_for}")):
        yield
