"""A lock between processes on a file: a projection's owner holds one, and so does whoever starts or stops a broker."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from forktrail_schemas.errors import GraphBusy

WAIT_SECONDS = 30.0
_RETRY_SECONDS = 0.02


@contextmanager
def owned(
    path: Path, wait_seconds: float | None = WAIT_SECONDS, on_wait: Callable[[], None] = lambda: None
) -> Iterator[None]:
    """Hold a lock file for the length of a `with` block; it names the process that holds it, and stays.

    The kernel lets go of the lock when its holder dies, however it dies. Threads of one process exclude each other too.

    Args:
        path: the lock file; it is made if need be.
        wait_seconds: how long to wait for another holder; None is as long as it takes.
        on_wait: called once, before a wait.

    Raises:
        GraphBusy: another process kept it for longer than `wait_seconds`.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        if not _taken(descriptor):
            on_wait()
            _wait(descriptor, path, wait_seconds)
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        os.close(descriptor)


def _wait(descriptor: int, path: Path, wait_seconds: float | None) -> None:
    if wait_seconds is None:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        return
    deadline = time.monotonic() + wait_seconds
    while not _taken(descriptor):
        if time.monotonic() >= deadline:
            owner = os.pread(descriptor, 32, 0).decode(errors="replace").strip() or "unknown"
            raise GraphBusy(f"process {owner} holds {path.name}", hint="wait until it is done, or stop it")
        time.sleep(_RETRY_SECONDS)


def _taken(descriptor: int) -> bool:
    """Take the lock if it is free; returns whether it was."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
