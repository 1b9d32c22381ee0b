"""Hands out what every event of a stream has: an id, a time, causes among the events before it, the goal it serves."""

from __future__ import annotations

from random import Random
from typing import Any, NamedTuple

from forktrail_schemas.events.base import Event
from forktrail_schemas.ids import uuid7
from forktrail_schemas.signatures import SigningKey

RUN = "run-be9c4a11e500"
_FIRST_MICROS = 1_767_225_600_000_000  # 2026-01-01
_RECENT_EVENTS = 4_096
_EVENTS_PER_LANDMARK = 64
_BULK_ACTORS = tuple(
    [("agent", f"planner-{number:02d}") for number in range(20)]
    + [("service", f"scanner-{number:02d}") for number in range(16)]
    + [("human", name) for name in ("rita", "sven", "tara", "uwe")]
)


class Draft(NamedTuple):
    """An event before it is built: what a service hands to `build`, and the key to sign with, if any."""

    cls: type[Event]
    fields: dict[str, Any]
    key: SigningKey | None

    @property
    def event_id(self) -> str:
        """Its id."""
        return str(self.fields["meta"]["event_id"])


class Signer(NamedTuple):
    """A key, its role, and the actor it speaks for."""

    key: SigningKey
    role: str
    kind: str
    holder: str


def _signer(number: int, role: str, kind: str, holder: str) -> Signer:
    return Signer(SigningKey.from_private_bytes(bytes([number]) * 32), role, kind, holder)


class Author:
    """Writes drafts, one after the other; the same for the same seed.

    Attributes:
        chance: the one source of chance of a stream.
        events: how many drafts were written.
        causes: how many causes they named in all.
        goal: id of the goal that the next draft serves.
    """

    def __init__(self, run: str, seed: int) -> None:
        self.chance = Random(seed)
        self.events = 0
        self.causes = 0
        self.goal: str | None = None
        self.admin = _signer(1, "admin", "human", "ada")
        self.operator = _signer(2, "operator", "human", "olga")
        self.reviewer = _signer(3, "reviewer", "human", "ravi")
        self.runner = _signer(4, "runner", "service", "runner-1")
        self._run = run
        self._micros = _FIRST_MICROS
        self._recent: list[str] = []
        self._landmarks: list[str] = []

    def unsigned(self, cls: type[Event], **fields: Any) -> Draft:
        """An event by one of forty agents, services and people, caused by some events before it."""
        kind, actor = self.chance.choice(_BULK_ACTORS)
        return Draft(cls, {"meta": self._meta(kind, actor, self._causes()), **fields}, None)

    def signed(self, cls: type[Event], by: Signer, *causes: str, **fields: Any) -> Draft:
        """An event signed by a key, in its holder's name."""
        return Draft(cls, {"meta": self._meta(by.kind, by.holder, causes), **fields}, by.key)

    def _meta(self, kind: str, actor: str, causes: tuple[str, ...]) -> dict[str, Any]:
        self._micros += self.chance.randrange(200, 2_000)
        event_id = uuid7(self._micros // 1000, self.chance.randbytes(10))
        self._remember(event_id)
        self.causes += len(causes)
        return {
            "event_id": event_id,
            "run": self._run,
            "occurred_at": self._micros,
            "actor": {"kind": kind, "id": actor},
            "causes": list(causes),
            "goal": self.goal,
        }

    def _remember(self, event_id: str) -> None:
        """Let an event be a cause of later ones; of the old ones only every 64th can be."""
        if self.events % _EVENTS_PER_LANDMARK == 0:
            self._landmarks.append(event_id)
        if len(self._recent) < _RECENT_EVENTS:
            self._recent.append(event_id)
        else:
            self._recent[self.events % _RECENT_EVENTS] = event_id
        self.events += 1

    def _causes(self) -> tuple[str, ...]:
        """None to three events, 1.2 on average, none of them twice."""
        draw = self.chance.random()
        count = 0 if draw < 0.15 else 1 if draw < 0.70 else 2 if draw < 0.95 else 3
        return tuple({self._cause(): None for _ in range(count)})

    def _cause(self) -> str:
        if self.chance.random() < 0.05:
            return self.chance.choice(self._landmarks)
        age = 1 + int(self.chance.expovariate(1 / 200))
        offset = max(self.events - min(age, _RECENT_EVENTS), 0)
        return self._recent[offset % _RECENT_EVENTS]
