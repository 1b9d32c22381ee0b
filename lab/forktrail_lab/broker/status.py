"""Describes the local broker."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from forktrail_lab.broker.layout import BrokerLayout
from forktrail_lab.broker.probe import PROBE_TIMEOUT_S, view_kafka
from forktrail_lab.broker.process import rss_bytes
from forktrail_lab.broker.state import BrokerState, read_state


@dataclass(frozen=True)
class Status:
    """A look at the broker.

    Attributes:
        running: its process runs.
        answers: it takes requests.
        state: what its state file says; None if there is none.
        uptime_s: seconds since its start.
        rss_bytes: memory that it holds.
        topics: number of topics, without Kafka's internal ones.
    """

    running: bool
    answers: bool
    state: BrokerState | None
    uptime_s: float | None = None
    rss_bytes: int | None = None
    topics: int | None = None


def status(layout: BrokerLayout, now: datetime) -> Status:
    """Look at the broker without changing anything."""
    state = read_state(layout.state_file)
    if state is None:
        return Status(running=False, answers=False, state=None)
    if state.engine == "java" and not state.process_runs():
        return Status(running=False, answers=False, state=state)
    view = view_kafka(state.bootstrap_servers, PROBE_TIMEOUT_S)
    return Status(
        running=state.engine == "java" or view is not None,
        answers=view is not None,
        state=state,
        uptime_s=(now - datetime.fromisoformat(state.started_at)).total_seconds(),
        rss_bytes=rss_bytes(state.pid) if state.pid else None,
        topics=len(view.topics) if view else None,
    )
