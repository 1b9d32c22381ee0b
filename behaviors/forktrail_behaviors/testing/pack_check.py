"""Tries a pack whole: its types, cycles and determinism, and its fixture, replayed and played in disturbed ways."""

from __future__ import annotations

from dataclasses import dataclass

from forktrail_behaviors.pack import Pack
from forktrail_behaviors.replay import Divergence, replay
from forktrail_behaviors.testing.kit import RUN, Kit
from forktrail_behaviors.testing.simulator import simulate
from forktrail_behaviors.unknown_names import check_names
from forktrail_schemas.errors import InvalidInput
from forktrail_schemas.events import BehaviorFailed

SEEDS = 1


@dataclass(frozen=True)
class Checked:
    """What a check of a pack found.

    Attributes:
        types: object and relation types.
        events: of the fixture's log, that executions made, each compared by a strict replay.
        idle_behaviors: those that the fixture never fires.
        failed: messages of executions of the fixture that failed.
        divergences: what a strict replay of the fixture found.
        ways: in how many disturbed ways the fixture came to the same.
    """

    types: int
    behaviors: int
    tools: int
    events: int
    executions: int
    idle_behaviors: tuple[str, ...]
    failed: tuple[str, ...]
    divergences: tuple[Divergence, ...]
    ways: int

    @property
    def good(self) -> bool:
        """Whether all of it holds."""
        return not (self.idle_behaviors or self.failed or self.divergences)


def check_pack(pack: Pack) -> Checked:
    """Try a pack; that it could be made already says that its types, cycles and code hold.

    Raises:
        InvalidInput: it uses a name that nothing declares, it has no fixture, or its fixture fires nothing.
        Unsteady: the fixture comes to something else where it is disturbed.
    """
    check_names(pack)
    if pack.fixture is None:
        raise InvalidInput(f"the pack {pack.name} has no fixture to try it by", hint="Pack(…, fixture=a_function)")
    kit = Kit(pack)
    pack.fixture(kit)
    reactor = kit.reactor()
    try:
        replayed = replay(RUN, kit.log, reactor, kit.log.end(), strict=False)
    finally:
        reactor.close()
    if not replayed.executions:
        raise InvalidInput(f"the fixture of {pack.name} fires nothing", hint="tell an event that a behavior is on")
    fired = {row["behavior"] for key, row in kit.folded()[0].rows() if key.table == "Execution"}
    return Checked(
        types=len(pack.objects) + len(pack.relations),
        behaviors=len(pack.reactions),
        tools=len(pack.tools),
        events=replayed.events,
        executions=replayed.executions,
        idle_behaviors=tuple(one.name for one in pack.reactions if one.name not in fired),
        failed=tuple(f"{one.error_type}: {one.message}" for one in kit.events(BehaviorFailed)),
        divergences=tuple(replayed.divergences),
        ways=simulate(pack, pack.fixture, seeds=range(SEEDS)),
    )
