"""Tries a behavior hard: kills it at writes, delivers twice, lets answers overtake; reports what depends on that.

The outcome is the content digest of the log: it leaves out ids, times and order, so a behavior whose outcome depends on
any of them shows.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from forktrail_behaviors.pack import Pack
from forktrail_behaviors.testing.kit import Kit
from forktrail_behaviors.testing.memory_log import Killed
from forktrail_projectors.record import LogRecord
from forktrail_schemas.errors import ForktrailError

Scenario = Callable[[Kit], None]


class Unsteady(ForktrailError):
    """The outcome depends on what it mustn't.

    Attributes:
        how: what was done otherwise than in the undisturbed run.
        seed: of the dice; `simulate(…, seeds=[seed])` does it again.
    """

    code = "unsteady"

    def __init__(self, how: str, seed: int, expected: str, found: str) -> None:
        super().__init__(f"{how} (seed {seed}): content digest {found[:16]}, undisturbed {expected[:16]}")
        self.how = how
        self.seed = seed


def simulate(pack: Pack, scenario: Scenario, *, seeds: range | list[int] = range(20)) -> int:
    """Play a scenario undisturbed and then in every disturbed way; returns how many ways there were.

    Args:
        scenario: tells the kit events and lets it run, any number of times.

    Raises:
        Unsteady: naming the first way whose outcome differs, and its seed.
    """
    calm = _play(pack, scenario, _Way())
    expected, tried = calm.content_digest(), 0
    for seed in seeds:
        dice = random.Random(seed)
        for how, way in (
            ("answers overtake each other", _Way(dice=dice)),
            ("every record is delivered twice", _Way(twice=True)),
            ("killed at a write", _Way(kills=dice)),
            ("killed at a write, position lost", _Way(kills=dice, lose=True)),
        ):
            found = _play(pack, scenario, way).content_digest()
            tried += 1
            if found != expected:
                raise Unsteady(how, seed, expected, found)
    return tried


@dataclass(frozen=True)
class _Way:
    """What is done to a run."""

    dice: random.Random | None = None
    kills: random.Random | None = None
    lose: bool = False
    twice: bool = False


class _Disturbed(Kit):
    """A kit whose worker is killed at random writes, and goes on as another process."""

    def __init__(self, pack: Pack, way: _Way) -> None:
        super().__init__(pack, dice=way.dice)
        self._way = way

    def run(self) -> None:
        while True:
            if self._way.kills is not None:
                self.log.writes_left = self._way.kills.randrange(12)
            try:
                super().run()
            except Killed:
                self.log.writes_left = None
                if self._way.lose:
                    self.position.next_offset = 0
                continue
            break
        self.log.writes_left = None
        if self._way.twice:
            self._double()
            super().run()

    def _double(self) -> None:
        """Deliver everything again, behind what there is."""
        for record in list(self.log.records):
            self.log.records.append(
                LogRecord(len(self.log.records), record.timestamp_ms, record.key, record.value, record.headers)
            )


def _play(pack: Pack, scenario: Scenario, way: _Way) -> Kit:
    kit = _Disturbed(pack, way)
    scenario(kit)
    return kit
