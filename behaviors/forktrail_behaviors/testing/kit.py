"""Drives a pack on a log in memory: no broker, no clock but its own, the same bytes in every test run."""

from __future__ import annotations

import copy
import hashlib
import random
import threading
from collections.abc import Mapping
from itertools import count
from typing import Any, TypeVar

from forktrail_behaviors.clerk import Clerk
from forktrail_behaviors.determinism import guard
from forktrail_behaviors.mirrored_graph import MirroredGraph
from forktrail_behaviors.pack import Pack
from forktrail_behaviors.reactor import Reactor
from forktrail_behaviors.registering import to_declare
from forktrail_behaviors.testing.inline_desk import Clock, InlineDesk
from forktrail_behaviors.testing.memory_log import MemoryLog
from forktrail_behaviors.worker import Worker
from forktrail_projectors.content_digest import content_digest
from forktrail_projectors.fold import event_of
from forktrail_projectors.graph.memory import MemoryGraph
from forktrail_projectors.projector import Projector
from forktrail_projectors.record import Verdict
from forktrail_projectors.state import Row
from forktrail_schemas.errors import EvidenceMissing
from forktrail_schemas.events import ApprovalDecided, KeyRegistered, PatchDecided, RunOpened
from forktrail_schemas.events.base import Event
from forktrail_schemas.ids import uuid7
from forktrail_schemas.signatures import SigningKey
from forktrail_schemas.wire import build

E = TypeVar("E", bound=Event)
RUN = "test-run"
WORKER = "worker"
ADMIN, OPERATOR, REVIEWER = (SigningKey.from_private_bytes(bytes([number]) * 32) for number in (1, 2, 3))


class MemoryBlobs:
    """Bytes by their SHA-256."""

    def __init__(self) -> None:
        self._values: dict[str, bytes] = {}

    def put(self, value: bytes) -> str:
        """Store bytes."""
        sha256 = hashlib.sha256(value).hexdigest()
        self._values[sha256] = value
        return sha256

    def get(self, sha256: str) -> bytes:
        """The bytes of a digest."""
        try:
            return self._values[sha256]
        except KeyError:
            raise EvidenceMissing(f"no blob {sha256}") from None

    def values(self) -> list[bytes]:
        """All that is stored."""
        return list(self._values.values())


class MemoryPosition:
    """Implements `Position`; `lost` forgets it."""

    def __init__(self) -> None:
        self.next_offset = 0

    def load(self, end: int) -> int:
        """The offset that comes next."""
        return self.next_offset if self.next_offset <= end else 0

    def save(self, next_offset: int, *, at_once: bool = False) -> None:
        """Note the offset that comes next."""
        self.next_offset = next_offset


class Kit:
    """A run with a pack's types and behaviors, told event by event.

    Attributes:
        log: all that was written.
        calls: how often each request to a model or tool was carried out, by its call.
    """

    def __init__(self, pack: Pack, *, dice: random.Random | None = None, register: bool = True) -> None:
        """Open the run.

        Args:
            dice: answers come in a random order; left out, in the order they were asked for.
            register: declare the pack's types and register its behaviors at once.
        """
        self.pack = pack
        self.log = MemoryLog()
        self.blobs = MemoryBlobs()
        self.clock = Clock()
        self.position = MemoryPosition()
        self.calls: dict[str, int] = {}
        self._dice = dice
        self._ids = count(1)
        self.tell(
            RunOpened,
            "ada",
            "human",
            ADMIN,
            goal="a test",
            revision="r1",
            admin_public_key=ADMIN.public_key,
            registry=None,
        )
        for key, holder, role in ((OPERATOR, "olga", "operator"), (REVIEWER, "rosa", "reviewer")):
            told = {"key_id": key.key_id, "public_key": key.public_key, "holder": holder, "holder_kind": "human"}
            self.tell(KeyRegistered, "ada", "human", ADMIN, **told, roles=[role])
        if register:
            self.register()

    def under(self, pack: Pack) -> Kit:
        """The same run with another pack, or another version of this one; nothing is registered yet."""
        other = copy.copy(self)
        other.pack = pack
        return other

    def register(self) -> None:
        """Declare what the run lacks of the pack's types, and register its behaviors as they are now."""
        for cls, fields in to_declare(self.pack, self.folded()[0]):
            self._write(cls, "ada", "human", ADMIN, fields)

    def tell(
        self, cls: type[E], by: str = "someone", kind: str = "human", key: SigningKey | None = None, /, **fields: Any
    ) -> E:
        """Write an event."""
        return self._write(cls, by, kind, key, fields)

    def decide(self, call_id: str, decision: str = "approve", reason: str = "") -> ApprovalDecided:
        """Answer, as a person, what a behavior has put to people."""
        subject = {"kind": "request", "id": call_id}
        return self.tell(ApprovalDecided, "olga", "human", OPERATOR, subject=subject, decision=decision, reason=reason)

    def decide_patch(self, patch_id: str, decision: str = "accept", reason: str = "") -> PatchDecided:
        """Decide, as a reviewer, on what was proposed."""
        return self.tell(PatchDecided, "rosa", "human", REVIEWER, patch_id=patch_id, decision=decision, reason=reason)

    def run(self) -> None:
        """React until nothing is left to do but what people decide; as a process of its own, from the position."""
        reactor = self.reactor()
        guard.install()
        try:
            worker, _ = self._worker(reactor)
            worker.work(threading.Event(), until_idle=True)
        finally:
            guard.uninstall()
            reactor.close()

    def reactor(self) -> Reactor:
        """A reactor before the first record."""
        return Reactor(MirroredGraph(), self.log.topic_id, self.pack, self.blobs, self.log.record_at)

    def folded(self) -> tuple[MemoryGraph, list[Verdict]]:
        """The graph of the whole log, and the verdict on each record."""
        graph = MemoryGraph()
        return graph, Projector(graph, self.log.topic_id).apply(self.log.records)

    def events(self, cls: type[E]) -> list[E]:
        """The valid events of a type, in order."""
        graph, verdicts = self.folded()
        found = (event_of(record, graph) for record in self.log.records)
        return [
            event
            for event, verdict in zip(found, verdicts, strict=True)
            if isinstance(event, cls) and verdict.kind == "valid"
        ]

    def void(self) -> list[Verdict]:
        """The verdicts that refuse a record."""
        return [verdict for verdict in self.folded()[1] if verdict.kind not in ("valid", "duplicate")]

    def objects(self, object_type: str) -> list[Row]:
        """The objects of a type that are in use, by the order in which they were made."""
        rows = [row for key, row in self.folded()[0].rows() if key.table == object_type and not row.get("retired")]
        return sorted(rows, key=lambda row: (row["created_offset"], str(row["id"])))

    def calls_of(self, kind: str) -> list[Row]:
        """The calls of a kind (model, tool, timer, approval), by the order of their requests."""
        rows = [row for key, row in self.folded()[0].rows() if key.table == "Call" and row.get("kind") == kind]
        return sorted(rows, key=lambda row: row["created_offset"])  # type: ignore[return-value,arg-type]  # ints

    def patches(self, status: str) -> list[Row]:
        """The proposals of a status (proposed, applied, rejected), by the order in which they were made."""
        rows = [row for key, row in self.folded()[0].rows() if key.table == "Patch" and row.get("status") == status]
        return sorted(rows, key=lambda row: row["created_offset"])  # type: ignore[return-value,arg-type]  # ints

    def content_digest(self) -> str:
        """What the log came to, whatever its ids, times and order."""
        graph, _ = self.folded()
        return content_digest(graph.rows(), graph.tables)

    def head(
        self, run: str, actor_kind: str, actor_id: str, *, causes: Any = (), goal: str | None = None
    ) -> dict[str, object]:
        """The `meta` of a new event, by the kit's clock and a counter."""
        moment = self.clock.tick()
        return {
            "event_id": uuid7(moment // 1000, next(self._ids).to_bytes(10, "big")),
            "run": run,
            "occurred_at": moment,
            "actor": {"kind": actor_kind, "id": actor_id},
            "causes": list(causes),
            "goal": goal,
        }

    def _write(self, cls: type[E], by: str, kind: str, key: SigningKey | None, fields: Mapping[str, object]) -> E:
        event = build(cls, {"meta": self.head(RUN, kind, by), **fields})
        self.log.write(event, key)
        return event

    def _worker(self, reactor: Reactor) -> tuple[Worker, InlineDesk]:
        clerk = Clerk(RUN, WORKER, self.blobs, self.head)
        desk = InlineDesk(clerk, self.log, self.pack, self.clock, self.calls, self._dice)
        return Worker(clerk, self.log, reactor, desk, self.position), desk
