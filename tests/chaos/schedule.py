"""When which process is killed: drawn from a seed, so that a seed gives the same kills at the same moments again.

What a kill finds in flight depends on the machine too; one that finds nothing is drawn again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from random import Random
from typing import Literal

Target = Literal["projector", "producer", "broker"]
TARGETS: tuple[Target, ...] = ("projector", "producer", "broker")
KILLS: Mapping[Target, int] = {"projector": 200, "producer": 60, "broker": 40}
# How long a process is left alone before a kill is aimed, and how long after something came in flight it comes.
PAUSE_SECONDS: Mapping[Target, float] = {"projector": 0.4, "producer": 0.4, "broker": 0.6}
DELAY_SECONDS: Mapping[Target, float] = {"projector": 0.03, "producer": 0.003, "broker": 0.001}
# What the projector is at when it is killed: it opens the graph (this long since, at most), it folds what came while it
# was dead, or it follows, and has committed since its start.
Moment = Literal["opening", "catching up", "following", "working"]
MOMENTS: tuple[Moment, ...] = ("opening", "catching up", "following")
MOMENT_SHARES = (1, 1, 2)
OPENING_SECONDS = 0.4


@dataclass(frozen=True)
class Draw:
    """A moment for a kill.

    Attributes:
        moment: what the process shall be at.
        pause: seconds to let it be at that first.
        delay: seconds to wait once something is in flight.
    """

    moment: Moment
    pause: float
    delay: float


def counts_of(kills: int) -> dict[Target, int]:
    """So many kills in the proportion of KILLS, one of each at least."""
    total = sum(KILLS.values())
    counts = {target: max(1, round(kills * share / total)) for target, share in KILLS.items()}
    counts["projector"] = max(1, kills - counts["producer"] - counts["broker"])
    return counts


def order_of(seed: int, counts: Mapping[Target, int]) -> list[Target]:
    """Which process is killed when."""
    order = [target for target in TARGETS for _ in range(counts[target])]
    Random(f"{seed} order").shuffle(order)
    return order


def draws(seed: int, target: Target) -> Iterator[Draw]:
    """The moments for one process's kills, and for those that are drawn again; endless."""
    chance = Random(f"{seed} {target}")
    while True:
        moment = chance.choices(MOMENTS, MOMENT_SHARES)[0] if target == "projector" else "working"
        pause = OPENING_SECONDS if moment == "opening" else PAUSE_SECONDS[target]
        yield Draw(moment, chance.random() * pause, chance.random() * DELAY_SECONDS[target])
