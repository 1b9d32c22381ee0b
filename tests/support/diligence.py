"""Diligence runs on the testing kit."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterable, Sequence
from pathlib import Path

from forktrail_behaviors.clerk import Clerk
from forktrail_behaviors.desk import ThreadedDesk
from forktrail_behaviors.effects import Limits
from forktrail_behaviors.pack import Pack
from forktrail_behaviors.reactor import Reactor
from forktrail_behaviors.replay import Replayed, replay
from forktrail_behaviors.testing import Kit
from forktrail_behaviors.testing.kit import RUN, WORKER
from forktrail_behaviors.testing.memory_log import MemoryLog
from forktrail_behaviors.worker import Worker
from forktrail_lab.diligence import PACK
from forktrail_lab.diligence.counts import counts_of
from forktrail_lab.diligence.opening import companies, company_fields
from forktrail_lab.diligence.prompts import FOLDER as PROMPTS
from forktrail_producers.producer import meta
from forktrail_schemas.events import ObjectCreated
from forktrail_schemas.events.base import Event
from forktrail_schemas.signatures import SigningKey
from support.diligence_counts import derived_counts

AT_ONCE = 8


def scenario(kit: Kit, names: Sequence[str] | None = None) -> None:
    """Companies are named, and the pack does what it does."""
    for name in companies() if names is None else names:
        kit.tell(ObjectCreated, **company_fields(name))
    kit.run()


def played(pack: Pack = PACK, *, dice: random.Random | None = None, names: Sequence[str] | None = None) -> Kit:
    """A run of the pack."""
    kit = Kit(pack, dice=dice)
    scenario(kit, names)
    return kit


def strictly(kit: Kit, pack: Pack | None = None) -> tuple[Replayed, Reactor]:
    """A strict replay, with no desk: no model and no tool can be asked."""
    reactor = kit.under(pack or kit.pack).reactor()
    try:
        return replay(RUN, kit.log, reactor, kit.log.end()), reactor
    finally:
        reactor.close()


def counted(kit: Kit) -> dict[str, int]:
    """What a run came to, but for what its models said without support."""
    found = counts_of(kit.folded()[0].rows())
    assert found.pop("unsupported") == 0
    return found


def derived(folder: Path) -> dict[str, int]:
    """What the fixture files say that a run must come to."""
    found = {name.lower(): count for name, count in derived_counts(PROMPTS, folder).items()}
    del found["unanswered"]
    return found


class _SharedLog(MemoryLog):
    """A log that several threads write to."""

    def __init__(self) -> None:
        super().__init__()
        self._writing = threading.Lock()

    def write(self, event: Event, key: SigningKey | None = None) -> None:
        with self._writing:
            super().write(event, key)


class ThreadedKit(Kit):
    """A kit with fresh ids and the wall clock, whose models and tools are called by threads, eight of each at once."""

    def __init__(self, pack: Pack) -> None:
        super().__init__(pack, register=False)
        records = self.log.records
        self.log = _SharedLog()
        self.log.records = records
        self.register()

    def head(
        self, run: str, actor_kind: str, actor_id: str, *, causes: Iterable[str] = (), goal: str | None = None
    ) -> dict[str, object]:
        """The `meta` of a new event, as on a real log."""
        return meta(run, actor_kind, actor_id, causes=causes, goal=goal)

    def run(self) -> None:
        """React until nothing is left to do but what people decide."""
        clerk = Clerk(RUN, WORKER, self.blobs, self.head)
        reactor = self.reactor()
        desk = ThreadedDesk(clerk, self.log, self.pack, limits=Limits(AT_ONCE, AT_ONCE))
        try:
            Worker(clerk, self.log, reactor, desk, self.position).work(threading.Event(), until_idle=True)
        finally:
            reactor.close()
