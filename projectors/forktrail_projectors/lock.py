"""A lock between processes on a file: a projection's owner holds one, and so does whoever starts or stops a broker.

The file names the process that holds it, and on a second line the socket on which that process answers, if it does. It
keeps both when its holder is killed; the socket then takes no connection.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from forktrail_schemas.errors import GraphBusy

WAIT_SECONDS = 30.0
_RETRY_SECONDS = 0.02


@dataclass(frozen=True)
class Holder:
    """Who holds a lock, as its file says.

    Attributes:
        process: its id.
        socket: where it answers questions; None where it doesn't.
    """

    process: int
    socket: Path | None


class Held:
    """A lock that this process holds."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def name_socket(self, socket: Path | None) -> None:
        """Say in the file where this process answers questions, or that it no longer does."""
        lines = f"{os.getpid()}\n" if socket is None else f"{os.getpid()}\n{socket}\n"
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, lines.encode(), 0)


def holder(path: Path) -> Holder | None:
    """Who holds a lock or held it last; None where its file doesn't say."""
    try:
        process, _, socket = path.read_bytes().decode().partition("\n")
        return Holder(int(process), Path(socket.removesuffix("\n")) if socket else None)
    except (OSError, ValueError):
        return None


@contextmanager
def owned(
    path: Path,
    wait_seconds: float | None = WAIT_SECONDS,
    on_wait: Callable[[], None] = lambda: None,
    while_waiting: Callable[[], None] = lambda: None,
) -> Iterator[Held]:
    """Hold a lock file for the length of a `with` block; it names the process that holds it, and stays.

    The kernel lets go of the lock when its holder dies, however it dies. Threads of one process exclude each other too.

    Args:
        path: the lock file; it is made if need be.
        wait_seconds: how long to wait for another holder; None is as long as it takes.
        on_wait: called once, before a wait.
        while_waiting: called again and again in a wait that has an end; what it raises ends the wait.

    Raises:
        GraphBusy: another process kept it for longer than `wait_seconds`.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        if not _taken(descriptor):
            on_wait()
            _wait(descriptor, path, wait_seconds, while_waiting)
        held = Held(descriptor)
        held.name_socket(None)
        yield held
    finally:
        os.close(descriptor)


def _wait(descriptor: int, path: Path, wait_seconds: float | None, while_waiting: Callable[[], None]) -> None:
    if wait_seconds is None:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        return
    deadline = time.monotonic() + wait_seconds
    while not _taken(descriptor):
        while_waiting()
        if time.monotonic() >= deadline:
            owner = holder(path)
            named = "another process" if owner is None else f"process {owner.process}"
            raise GraphBusy(f"{named} holds {path.name}", hint="wait until it is done, or stop it")
        time.sleep(_RETRY_SECONDS)


def _taken(descriptor: int) -> bool:
    """Take the lock if it is free; returns whether it was."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
