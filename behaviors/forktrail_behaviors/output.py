"""An event that an execution makes, until it is on the log."""

from __future__ import annotations

from dataclasses import dataclass

from forktrail_behaviors.commands import Draft
from forktrail_behaviors.context import Identity
from forktrail_schemas.events.base import Event
from forktrail_schemas.wire import build


@dataclass(frozen=True)
class Output:
    """A draft with what makes it an event, but for its run and the worker's epoch.

    Attributes:
        cause: event id of what it follows from.
        occurred_at: when that happened, microseconds since 1970 UTC.
    """

    identity: Identity
    draft: Draft
    cause: str
    goal: str | None
    occurred_at: int

    @property
    def event_id(self) -> str:
        """Its id; the same whoever makes it, and when."""
        return self.identity.output_id(self.draft.path)

    def event(self, run: str, epoch: int) -> Event:
        """The event.

        Raises:
            InvalidEvent: what the behavior gave breaks its schema.
        """
        identity, draft = self.identity, self.draft
        meta = {
            "event_id": self.event_id,
            "run": run,
            "occurred_at": self.occurred_at,
            "actor": {"kind": "behavior", "id": identity.behavior},
            "causes": [self.cause],
            "goal": self.goal,
            "frame": draft.frame,
            "execution": {
                "id": identity.id,
                "behavior": identity.behavior,
                "version": identity.version,
                "handler": identity.handler,
                "match": list(identity.match),
                "path": draft.path,
            },
        }
        told = {"epoch": epoch} if "epoch" in draft.event.model_fields else {}
        return build(draft.event, {"meta": meta, **told, **draft.fields})
