"""How a process gets at a run's graph: by the view of an owner that answers, or by its lock, once that is free."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from forktrail_projectors.lock import holder, owned
from forktrail_projectors.owner.client import OwnerView, dial
from forktrail_projectors.owner.messages import OwnerGone
from forktrail_projectors.view import Say

# Longer, nobody waits without a word.
SILENT_SECONDS = 2.0


def owner_of(
    lock: Path, run: str, bootstrap_servers: str, *, live: bool = False, wait_seconds: float = 0.0
) -> OwnerView | None:
    """The run as the process shows it that holds its lock; None where there is none, or it doesn't answer.

    Args:
        live: as for `OwnerView`.
        wait_seconds: as for `OwnerView`.

    Raises:
        GraphBusy: it hangs, is of another version, or has too many clients.
    """
    found = holder(lock)
    if found is None or found.socket is None:
        return None
    try:
        return OwnerView(partial(dial, found.socket), run, bootstrap_servers, live=live, wait_seconds=wait_seconds)
    except OwnerGone:
        return None


def answered_or_locked(
    stack: ExitStack,
    lock: Path,
    ask: Callable[[], OwnerView | None],
    wait_seconds: float,
    say: Say = lambda line: None,
) -> OwnerView | None:
    """A view, if whoever holds the lock answers; else take the lock, for as long as `stack` stands, and return None.

    Args:
        ask: called at once, and again and again while the lock isn't free.
        say: takes a line where that is long.

    Raises:
        GraphBusy: another process kept it for longer than `wait_seconds`, without answering.
    """

    said_at = time.monotonic() + SILENT_SECONDS

    def look() -> None:
        nonlocal said_at
        if view := ask():
            raise _Answered(view)
        if time.monotonic() >= said_at:
            said_at = math.inf
            found = holder(lock)
            named = "another process" if found is None else f"process {found.process}"
            say(f"{named} holds {lock.name} and doesn't answer others: waiting for it, up to {wait_seconds:.0f} s")

    try:
        look()
        stack.enter_context(owned(lock, wait_seconds, while_waiting=look))
    except _Answered as answered:
        return answered.view
    return None


class _Answered(Exception):
    """Whoever holds the graph answers, so that it isn't waited for any more."""

    def __init__(self, view: OwnerView) -> None:
        super().__init__()
        self.view = view
