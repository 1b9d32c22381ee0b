"""Kills: producer, projector and broker get SIGKILL again and again under load."""

from __future__ import annotations

import time
from collections.abc import Iterator

from chaos import report
from chaos.campaign import Campaign
from chaos.checker import Check
from chaos.exam import examine
from chaos.schedule import TARGETS
from chaos.stage import Stage

LANDED = "each kill landed while something was in flight"
WHOLE = "a killed projector leaves whole commits; nothing but a file that doesn't open is made anew"
# The engine may refuse a write-ahead log whose last record was cut short.
_ENGINE_REFUSED = "it doesn't open"


def play(stage: Stage) -> Iterator[Check]:
    """Kill as often as asked for, let everything come to rest, and look at what is there."""
    with stage.rig("kills") as rig:
        starts_before = stage.broker.starts
        rig.start()
        campaign = Campaign(rig, stage.seed, stage.kills, stage.say)
        began = time.monotonic()
        campaign.run()
        seconds = time.monotonic() - began
        rig.rest()
        starts = {
            "projector": rig.projector.lives,
            "producer": rig.producer.lives,
            "broker": stage.broker.starts - starts_before + 1,
        }
        for line in report.account(campaign.kills, starts, [*rig.producer.exits, *rig.projector.exits], seconds):
            print(line, flush=True)
        reasons = rig.rebuilds()
        print(f"  the projector made its graph anew {len(reasons)} times", *reasons, sep="\n    ", flush=True)
        wanted = [target for target in TARGETS for _ in range(stage.kills[target])]
        counted = [kill.target for kill in campaign.kills if kill.counts]
        faults = () if sorted(counted) == sorted(wanted) else (f"{len(counted)} of {len(wanted)}",)
        yield Check(LANDED, f"{len(counted)} kills", faults)
        torn = tuple(reason for reason in reasons if not reason.startswith(_ENGINE_REFUSED))
        yield Check(WHOLE, f"{len(reasons)} rebuilds", torn)
        yield from examine(rig)
