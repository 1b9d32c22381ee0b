"""A request that the log took, and that waits for its answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from forktrail_projectors.state import Row
from forktrail_schemas.events.base import Event


@dataclass(frozen=True)
class Asked:
    """A valid request, with the row of the call that it made."""

    call_id: str
    event: Event
    row: Row


def asked_by(execution_id: str, waiting: Mapping[str, Asked]) -> list[str]:
    """The ids of an execution's requests, among those that wait."""
    found = []
    for call_id, asked in waiting.items():
        execution = asked.event.meta.execution
        if execution is not None and execution.id == execution_id:
            found.append(call_id)
    return found
