"""Torn graph: its files are cut, flipped, mixed, lost; a projector notices or rebuilds, and comes to the same digest.

Over some damage the engine ends the process; so it may take three starts. By turns it is `forktrail project` that is
started, and the projector that follows.

The log has more events than the damaged graph, so that folding goes on from it: damage that only a lookup meets counts
too.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random

from chaos.checker import Check
from chaos.damage import DAMAGES, Harm, wal_of
from chaos.exam import ask_projector
from chaos.folds import fold_log, read_log
from chaos.rig import Rig
from chaos.stage import Stage

# An old graph, what was folded and checkpointed on top, what is in the write-ahead log alone, and what is yet to fold.
OLD_EVENTS, CHECKPOINTED_EVENTS, LOGGED_EVENTS, LATER_EVENTS = 700, 400, 300, 200
SAME_DIGEST = "a damaged graph comes to the digest of its log, at the third start if not before"
STARTS_MAX = 3
LOOK_SECONDS = 0.2


def play(stage: Stage) -> Iterator[Check]:
    """Damage copies of one graph in every way, and let `forktrail project` open each."""
    chance = Random(stage.seed)
    with stage.rig("torn_graph") as rig:
        old, master = _copies(rig)
        rig.write(rig.planned(LATER_EVENTS))
        digest, _ = fold_log(read_log(rig.settings, rig.run))
        faults: list[str] = []
        outcomes: Counter[str] = Counter()
        damages = [damage for damage in DAMAGES for _ in range(damage.times)]
        for number, damage in enumerate(damages):
            _damage(rig, old, master, damage.harm, chance)
            outcome, found = _followed(rig, digest) if number % 2 else _projected(rig)
            stage.say(f"  {damage.name}: {outcome}")
            outcomes[outcome] += 1
            if found != digest:
                faults.append(f"{damage.name}, {outcome}: {found}, not {digest}")
        told = ", ".join(f"{count} {outcome}" for outcome, count in sorted(outcomes.items()))
        yield Check(SAME_DIGEST, f"{outcomes.total()} damages: {told}", tuple(faults))


def _copies(rig: Rig) -> tuple[Path, Path]:
    """An older copy of a graph, and one as a killed projector leaves it, with its write-ahead log."""
    rig.write(rig.planned(OLD_EVENTS))
    rig.project()
    old = rig.copy_graph(rig.folder / "old")
    rig.write(rig.planned(CHECKPOINTED_EVENTS))
    rig.project()
    assert not wal_of(rig.graph).exists()
    rig.write(rig.planned(LOGGED_EVENTS))
    rig.projector.start()
    rig.wait_until(lambda: rig.serving, "the projector's start")
    ask_projector(rig)
    rig.projector.kill()
    master = rig.copy_graph(rig.folder / "master")
    assert wal_of(master).stat().st_size > 0
    return old, master


def _damage(rig: Rig, old: Path, master: Path, harm: Harm, chance: Random) -> None:
    """Put the master in the graph's place, alone there, and harm it."""
    shutil.rmtree(rig.graph.parent)
    shutil.copytree(master.parent, rig.graph.parent)
    harm(rig.graph, old, chance)


def _projected(rig: Rig) -> tuple[str, str]:
    """What `forktrail project` did about it, and the digest that it came to."""
    starts = 1
    digest, said = rig.project()
    while digest.startswith("exit") and starts < STARTS_MAX:
        starts += 1
        digest, said = rig.project()
    return _outcome("rebuilt" in said, starts), digest


def _followed(rig: Rig, digest: str) -> tuple[str, str]:
    """What the projector did that is started again whenever it ends, and the digest that it came to."""
    rebuilds, lives = len(rig.rebuilds()), rig.projector.lives
    rig.projector.start()
    try:
        while True:
            rig.wait_until(lambda: rig.serving or rig.projector.lives > lives + STARTS_MAX, "the projector's start")
            found = ask_projector(rig).kept
            if found == digest or rig.projector.lives > lives + STARTS_MAX:
                return _outcome(len(rig.rebuilds()) > rebuilds, rig.projector.lives - lives), found
            rig.wait(LOOK_SECONDS)
    finally:
        rig.projector.close()


def _outcome(rebuilt: bool, start: int) -> str:
    return ("rebuilt" if rebuilt else "went on from what was there") + (f" at start {start}" if start > 1 else "")
