"""Disk full: the graph's disk runs out of room under a projector; nothing is torn, and it heals once there is room."""

from __future__ import annotations

import signal
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from random import Random

from chaos.checker import Check
from chaos.children import Child
from chaos.disk import Disk, FileLimit, small_disk
from chaos.folds import fold_log, read_log
from chaos.rig import Rig
from chaos.stage import Stage
from forktrail_projectors.aside import prune, set_aside

ROUNDS = 8
EVENTS = 400
# A round's events take a few hundred kilobytes of the graph and its log.
ROOM_BYTES_MAX = 200 << 10
FULL_SECONDS = 20.0
DIGEST = "with room again, the next start comes to the digest of the log"
HIT = "the disk ran full under most of the projectors"
_SIGNALS = {-number: number.name for number in signal.Signals}


def play(stage: Stage) -> Iterator[Check]:
    """Fill the disk, let a projector run into it, make room, and look at the graph; again and again.

    A projector that sees that its disk is full doesn't begin to write. So in half of the rounds it sees room, and
    meets a limit on the size of its files in the midst of a commit, as where another fills the disk at that moment.
    """
    chance = Random(stage.seed)
    with stage.rig("disk_full") as rig, closing(small_disk(rig.settings.home)) as disk:
        stage.say(f"  on {disk.description}")
        faults: list[str] = []
        ends: Counter[str] = Counter()
        for number in range(ROUNDS):
            rig.write(rig.planned(EVENTS))
            if number:  # at first there is no graph to run out of room
                met = disk if number // 2 % 2 else FileLimit(rig.settings.home)
                end = _run_full(rig, met, chance, follow=number % 2 == 1)
                stage.say(f"  {end}")
                ends[end] += 1
            wanted, _ = fold_log(read_log(rig.settings, rig.run))
            found, _ = rig.project()
            if found != wanted:
                faults.append(f"round {number}: {found}, not {wanted}")
            prune(set_aside(rig.settings, rig.run))  # as a person would, for the room
        told = "; ".join(f"{count} × {end}" for end, count in ends.most_common())
        yield Check(DIGEST, f"{ROUNDS} rounds on {disk.description}: {told}", tuple(faults))
        folded = ends["it folded everything in the room there was"]
        yield Check(HIT, f"{ROUNDS - 1 - folded} of {ROUNDS - 1}", ("it never did",) if folded == ROUNDS - 1 else ())


def _run_full(rig: Rig, disk: Disk, chance: Random, *, follow: bool) -> str:
    """Let a projector run on a disk that is as good as full; says how it ended."""
    disk.fill(chance.randrange(ROOM_BYTES_MAX))
    words = ("project", rig.run, *(["--follow"] if follow else []))
    child = Child("full", disk.command(rig.command(*words)), rig.environment(), rig.folder)
    try:
        child.start()
        code = child.wait(FULL_SECONDS)
    except subprocess.TimeoutExpired:
        end = "it folded everything in the room there was" if follow else "it hung"
        child.close()
    else:
        end = "it folded everything in the room there was" if code == 0 else _end(code, child.warned)
    finally:
        disk.make_room()
    return end


def _end(code: int, warned: str) -> str:
    lines = warned.strip().splitlines() or ["without a word"]
    last = lines[-1].strip().partition(". path:")[0].partition(" has ")[0]
    return f"{_SIGNALS.get(code, f'exit {code}')}: {last}"
