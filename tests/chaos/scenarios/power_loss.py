"""Power loss: the log's last records are gone after a crash, while the graph kept what they said.

The graph must be noticed to be ahead of its log, or to have been folded from other records; it is set aside, since it
may be the only witness of what was lost, and rebuilt, with a line that says so.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from random import Random

from chaos.checker import Check, check_equal
from chaos.exam import STATE_DIGESTS, ask_projector, self_ended
from chaos.folds import fold_log, read_log
from chaos.rig import Rig
from chaos.segment import batches, last_segment, lose_tail
from chaos.stage import Stage
from forktrail_projectors.aside import set_aside
from forktrail_schemas.topics import run_topic

EVENTS, LOST_EVENTS_MAX = 900, 400
FEWER, MORE = 20, 500
WITNESS = "the graph that saw the lost records is kept under another name"
SAID = "a line says why it was rebuilt"
AHEAD, ANOTHER = "ahead of its log", "another record"


def play(stage: Stage) -> Iterator[Check]:
    """Lose the tails of several logs at once, and then one under a producer and a projector that live through it."""
    chance = Random(stage.seed)
    with ExitStack() as stack:
        cases = [
            _Case("cut between batches", 0, AHEAD, torn=False),
            _Case("cut in a batch", FEWER, AHEAD, torn=True),
            _Case("cut, and written past the graph", MORE, ANOTHER, torn=False),
            _Case("an older copy put back", MORE, ANOTHER),
        ]
        rigs = [stack.enter_context(case.prepared(stage)) for case in cases]
        stage.broker.kill()
        for case, rig in zip(cases, rigs, strict=True):
            stage.say(f"  {case.name}: the log now ends at {case.lose(rig, chance)}")
        stage.broker.start()
        for case, rig in zip(cases, rigs, strict=True):
            yield from case.checked(rig)
    yield from _live(stage, chance)


@dataclass(frozen=True)
class _Case:
    """A log that loses its tail while nobody has its graph open.

    Attributes:
        written: how many events follow then, before the graph is opened.
        reason: what the line about the graph must name.
        torn: whether half a batch is left; None puts back the partition's folder as it was some events ago.
    """

    name: str
    written: int
    reason: str
    torn: bool | None = None

    def prepared(self, stage: Stage) -> Rig:
        """A run with a graph that is folded to its end."""
        rig = stage.rig(re.sub(r"\W+", "_", self.name))
        rig.write(rig.planned(EVENTS))
        if self.torn is None:
            shutil.copytree(_partition(rig), rig.folder / "older")
            rig.write(rig.planned(LOST_EVENTS_MAX))
        rig.project()
        return rig

    def lose(self, rig: Rig, chance: Random) -> int:
        """Lose the tail, while no broker runs; returns the log's new end."""
        partition = _partition(rig)
        if self.torn is not None:
            return lose_tail(partition, chance.randrange(1, LOST_EVENTS_MAX), torn=self.torn)
        shutil.rmtree(partition)
        shutil.copytree(rig.folder / "older", partition)
        return batches(last_segment(partition))[-1].next_offset

    def checked(self, rig: Rig) -> Iterator[Check]:
        """Whether a projector notices, keeps the old graph, and comes to the digest of what is left."""
        before = rig.examiner.next_offset(rig.copy_graph(rig.folder / "copy")).next_offset
        rig.write(rig.planned(self.written))
        digest, said = rig.project()
        yield _agree(self.name, {"project": digest, "in memory": _in_memory(rig)})
        told = self.reason in said and "rebuilt" in said
        yield Check(SAID, self.name, () if told else (said.strip() or "it said nothing",))
        yield Check(WITNESS, self.name, tuple(_no_witness(rig, before)))


def _live(stage: Stage, chance: Random) -> Iterator[Check]:
    """Producer and projector live through it; what the producer had sent stays lost, since it was acknowledged."""
    name = "under a producer and a projector"
    with stage.rig("lived_through") as rig:
        rig.start()
        rig.wait_until(lambda: rig.serving and rig.journal.end > EVENTS, "enough events")
        before = ask_projector(rig).next_offset
        stage.broker.kill()
        end = lose_tail(_partition(rig), chance.randrange(1, LOST_EVENTS_MAX))
        stage.broker.begin_start()
        stage.say(f"  {name}: the graph at {before} or more, the log at {end}")
        acknowledged = len(rig.journal.offsets)
        rig.wait_until(lambda: len(rig.journal.offsets) > acknowledged + MORE, f"{MORE} acknowledgements")
        rig.rest()
        wanted, live = _in_memory(rig), ask_projector(rig)
        yield _agree(name, {"live": live.kept, "live, all rows": live.recomputed, "in memory": wanted})
        yield self_ended(rig)
        if before > end:
            yield Check(WITNESS, name, tuple(_no_witness(rig, before)))


def _agree(name: str, digests: dict[str, str]) -> Check:
    return check_equal(f"{STATE_DIGESTS}: {name}", digests)


def _in_memory(rig: Rig) -> str:
    return fold_log(read_log(rig.settings, rig.run))[0]


def _no_witness(rig: Rig, next_offset: int) -> Iterator[str]:
    found = [rig.examiner.next_offset(aside.path).next_offset for aside in set_aside(rig.settings, rig.run)]
    if max(found, default=-1) < next_offset:
        yield f"no graph at offset {next_offset} or more is set aside, only at {found}"


def _partition(rig: Rig) -> Path:
    return rig.broker.data / f"{run_topic(rig.run)}-0"
