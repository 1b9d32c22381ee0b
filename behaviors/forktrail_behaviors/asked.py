"""A request that the log took, and that waits for its answer."""

from __future__ import annotations

from dataclasses import dataclass

from forktrail_projectors.state import Row
from forktrail_schemas.events.base import Event


@dataclass(frozen=True)
class Asked:
    """A valid request, with the row of the call that it made."""

    call_id: str
    event: Event
    row: Row
