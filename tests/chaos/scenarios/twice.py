"""Twice: a log that holds every event twice comes to the same as one that holds each once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import itemgetter
from random import Random

from chaos.checker import Check, Stream, check_equal, check_log
from chaos.exam import CONTENT_DIGESTS, STATE_DIGESTS
from chaos.folds import calm_content_digest, fold_log, read_log
from chaos.plan import Planned
from chaos.stage import Stage

TWO_RECORDS = "each event is on the log twice; a second copy is a duplicate, or refused for what it is again"
EVENTS = 2_000
# The second copy comes at most so many events later; every tenth only at the very end.
DISTANCE_MAX = 300
LATE_SHARE = 0.1


def play(stage: Stage) -> Iterator[Check]:
    """Write every event twice, fold it on disk, and look at verdicts and digests."""
    with stage.rig("twice") as rig:
        rig.write(_twice(rig.planned(EVENTS), Random(stage.seed)))
        kept, _ = rig.project()
        left = rig.examiner.examine(rig.graph, rig.folder)
        log = read_log(rig.settings, rig.run)
        state, content = fold_log(log)
        duplicates = sum(verdict.kind == "duplicate" for verdict in left.verdicts)
        forged = sum(event.expected.again == "void" for event in rig.journal.sent)
        due = EVENTS - forged
        yield Check(
            TWO_RECORDS,
            f"{len(log):,} records: {duplicates:,} duplicates, {forged:,} pairs that no signature makes count",
            () if (len(log), duplicates) == (2 * EVENTS, due) else (f"{duplicates:,} duplicates of {due:,}",),
        )
        yield from check_log([Stream(rig.journal.sent, rig.journal.offsets)], log, left.verdicts)
        yield check_equal(STATE_DIGESTS, {"project": kept, "all rows": left.recomputed, "in memory": state})
        once = calm_content_digest(rig.journal.sent)
        yield check_equal(CONTENT_DIGESTS, {"graph": left.content, "log": content, "once": once})


def _twice(planned: Sequence[Planned], chance: Random) -> list[Planned]:
    """Each event in its place, and a second time some way behind it."""
    places = [(float(place), one) for place, one in enumerate(planned)]
    for place, one in enumerate(planned):
        late = chance.random() < LATE_SHARE
        behind = len(planned) if late else chance.randrange(DISTANCE_MAX)
        places.append((place + behind + 0.5, one))
    return [one for _, one in sorted(places, key=itemgetter(0))]
