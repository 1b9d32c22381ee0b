"""The lock of a projection: whoever holds it is the one owner of the graph's file."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from forktrail_schemas.errors import GraphBusy

WAIT_SECONDS = 30.0
_RETRY_SECONDS = 0.02


@contextmanager
def owned(path: Path, wait_seconds: float = WAIT_SECONDS) -> Iterator[None]:
    """Hold a lock file for the length of a `with` block; the kernel lets go of it when the process dies.

    Raises:
        GraphBusy: another process kept it for longer than `wait_seconds`.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        _lock(descriptor, path, time.monotonic() + wait_seconds)
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        os.close(descriptor)


def _lock(descriptor: int, path: Path, deadline: float) -> None:
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                owner = os.pread(descriptor, 32, 0).decode(errors="replace").strip() or "unknown"
                raise GraphBusy(
                    f"process {owner} holds {path.name}", hint="wait until it is done, or stop it"
                ) from None
            time.sleep(_RETRY_SECONDS)
        else:
            return
