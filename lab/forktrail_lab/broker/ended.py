"""Tells why a broker ended or its formatter failed, as far as can be told, and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from forktrail_lab.broker.failure import failure_reason, known_failure, read_log, remedy
from forktrail_lab.broker.layout import BrokerLayout
from forktrail_lab.broker.room import MAKE_ROOM, shortage_of
from forktrail_lab.broker.state import BrokerState


@dataclass(frozen=True)
class Explanation:
    """A reason, and what to do about it; the remedy is empty where that isn't known."""

    reason: str
    remedy: str


def explained(log: str, folder: Path) -> Explanation:
    """Why a Kafka ended that wrote this log.

    On a full disk the log may hold none of it; then the disk is told of.

    Args:
        log: all it said.
        folder: a folder on its disk.
    """
    reason = failure_reason(log)
    if not remedy(reason) and (shortage := shortage_of(folder)):
        return Explanation(shortage, MAKE_ROOM)
    return Explanation(reason, remedy(reason))


def gone(state: BrokerState, layout: BrokerLayout) -> str:
    """The line about a state file that outlived its broker, with why the broker ended and what to do, if known."""
    named = f"process {state.pid}" if state.pid else "a container"
    why = known_failure(read_log(layout.log_file)) or shortage_of(layout.folder)
    return f"the state file names {named}, which is no broker of ours any more" + (f": {why}" if why else "")
