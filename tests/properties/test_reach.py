"""The streams that the properties are tried on reach every event type and every reason code: a fixed pass over them."""

from __future__ import annotations

import random

from forktrail_projectors.record import Verdict
from forktrail_projectors.rules.reasons import IN_WORDS
from forktrail_schemas.events import EVENT_TYPES
from support.moves import BEGINNINGS, FLAWS, STEPS, chance_stream
from support.tale import Tale

# No log leads to it: ids follow from hashes of event ids (test_fold.py refuses one by hand).
OUT_OF_REACH = {"id_collision"}
STREAM_PARTS = 60
STREAMS_MAX = 400


def test_the_streams_hold_every_event_type_valid_and_every_reason() -> None:
    types = {cls.TYPE for cls in EVENT_TYPES}
    reasons = IN_WORDS.keys() - OUT_OF_REACH
    depths: set[object] = set()
    steps: set[str] = set()
    flaws: set[str] = set()
    for seed in range(STREAMS_MAX):
        moves = chance_stream(random.Random(seed), STREAM_PARTS)
        tale = Tale(moves)
        types -= {verdict.type for verdict in tale.verdicts if verdict.kind == "valid"}
        reasons -= {verdict.reason for verdict in tale.verdicts}
        depths |= {tale.row("Finding", id)["depth"] for id in tale.findings}
        steps |= {move.step for move in moves}
        flaws |= {move.flaw for move in moves}
        if not types and not reasons and depths >= {0, 1, 2}:
            break
    assert not types, "no stream holds a valid one of these"
    assert not reasons, "no stream leads to these"
    assert depths >= {0, 1, 2}
    assert steps == STEPS.keys() - {"skip", "settle", *BEGINNINGS}
    assert flaws == {"", *FLAWS}


def test_a_stream_is_the_same_for_the_same_moves() -> None:
    moves = chance_stream(random.Random(3), 80)
    one, two = Tale(moves), Tale(moves)
    assert one.records == two.records
    assert one.verdicts == two.verdicts
    assert sum(map(_counts, one.verdicts)) > 20


def _counts(verdict: Verdict) -> bool:
    return verdict.kind == "valid"
