"""Random streams of events as data: a list of moves, each a step with three numbers, and what is wrong with its record.

A move means something only in front of a log: the numbers choose among what there is by then (tale.py tells it). So any
list of moves is a stream, any part of one is a stream too, and a failing one shrinks to a few readable lines.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import NamedTuple

from hypothesis import example, given
from hypothesis import strategies as st

NUMBER_MAX = 63
LONG_PARTS = 150
LONG_SEEDS = (0, 10, 14, 18)

# How often each step is taken, in parts.
STEPS: dict[str, int] = {
    "skip": 1,  # nothing; the first, since that is where shrinking goes
    "go_on": 130,  # the next right step of a case
    "settle": 40,  # from no case to a reviewed one, in several moves
    "report": 20,
    "propose": 30,
    "register": 15,
    "goal": 5,
    "decide": 10,
    "start": 10,
    "observe": 15,
    "review": 10,
    "retry": 15,
    "withdraw": 8,
    "advance": 6,
    "budget": 10,
    "setting": 10,
    "key": 14,
    "revoke": 8,
    "declare": 8,
    "foreign": 8,
    "copy": 15,
    "model": 10,  # types and objects, in several moves
    "type": 6,
    "object": 25,
    "patch": 15,
    "retire": 6,
    "relate": 15,
    "unrelate": 6,
    "govern": 6,
    "suggest": 15,
    "rule_on": 10,
    "frame": 8,
    "hold": 30,
    "merge": 10,
    "exhaust": 6,
    "diverge": 5,  # a change in a frame and another one outside, in several moves
    "amend": 5,  # a change that a policy holds, and its proposal, in several moves
    "spend": 5,  # a budget that is used up, in several moves
    "employ": 10,  # a behavior, a worker and an execution, in several moves
    "behavior": 4,
    "claim": 4,
    "begin": 30,
    "emit": 15,
    "ask": 30,
    "answer": 40,
    "resolve": 8,
    "end": 8,
    "open": 2,
    "close": 1,
}
# What may be wrong with a record, each as often as the others; nothing is, five times out of six.
FLAWS: tuple[str, ...] = (
    "unsigned",
    "stranger",
    "forged",
    "borrowed_key",
    "wrong_role",
    "broken_signature",
    "other_bytes",
    "taken_id",
    "wrong_run",
    "invalid_field",
    "cut",
    "longer",
    "other_schema",
    "no_event",
    "no_avro",
    "no_value",
    "contradicting_header",
    "unreadable_headers",
    "bare",
)
FLAWLESS = 5 * len(FLAWS)


class Move(NamedTuple):
    """One record to write.

    Attributes:
        step: one of STEPS.
        a, b, c: choose whatever the step has to choose; all 0 is the plainest.
        flaw: one of FLAWS, or "".
    """

    step: str
    a: int = 0
    b: int = 0
    c: int = 0
    flaw: str = ""

    def __repr__(self) -> str:
        """As Python, short, since a failing test prints many."""
        numbers = "".join(f", {name}={value}" for name, value in zip("abc", self[1:4], strict=True) if value)
        return f"Move({self.step!r}{numbers}{f', flaw={self.flaw!r}' if self.flaw else ''})"


# Steps that stand for several, without which most others of their kind would be refused.
BEGINNINGS: dict[str, tuple[Move, ...]] = {
    "model": (*[Move("type")] * 3, Move("object"), Move("object", 1), Move("relate"), Move("relate", 1)),
    "diverge": (Move("object", 1), Move("frame"), Move("hold", b=1, c=2), Move("patch", c=4), Move("merge")),
    "amend": (
        *(Move("object", 1), Move("govern", 0, 1, 0), Move("patch", c=4), Move("suggest", c=6), Move("rule_on")),
        Move("govern", 0, 1, 1),
    ),
    "spend": (Move("budget", 8, 2), Move("exhaust"), Move("exhaust")),
    "employ": (Move("behavior"), Move("claim"), Move("goal"), Move("begin"), Move("ask")),
}

# A run with its staff and two more keys, and two chains of three tests each, the last of which rests on both others:
# most streams begin so, or all that they tell is refused.
OPENING: tuple[Move, ...] = (
    Move("open"),
    *[Move("key")] * 5,
    *(Move("register", number, b=3, c=2) for number in range(6)),
)

_STEPS_BY_WEIGHT = [step for step, weight in STEPS.items() for _ in range(weight)]
_FLAWS_BY_WEIGHT = ["", *[""] * (FLAWLESS - 1), *FLAWS]
_numbers = st.integers(0, NUMBER_MAX)
_moves = st.builds(
    Move, st.sampled_from(_STEPS_BY_WEIGHT), _numbers, _numbers, _numbers, st.sampled_from(_FLAWS_BY_WEIGHT)
)


def streams(parts_min: int = 20, parts_max: int = 60) -> st.SearchStrategy[list[Move]]:
    """Streams of every event type, right and wrong, in any order; most are of a run that is open."""
    begun = st.sampled_from([OPENING] * 11 + [()])
    rest = st.lists(_moves.map(_part), min_size=parts_min, max_size=parts_max)
    return st.builds(lambda start, parts: [*start, *(move for part in parts for move in part)], begun, rest)


def on_streams(test: Callable[[list[Move]], None]) -> Callable[[list[Move]], None]:
    """Try a property of one stream on drawn ones, and always on long ones in which every rule decides something."""
    for seed in LONG_SEEDS:
        test = example(chance_stream(random.Random(seed), LONG_PARTS))(test)
    return given(streams())(test)


def chance_stream(chance: random.Random, parts: int) -> list[Move]:
    """A stream told by chance alone, the same for the same seed."""
    start = OPENING if chance.random() < 11 / 12 else ()
    return [*start, *(move for _ in range(parts) for move in _part(_chance_move(chance)))]


def _part(move: Move) -> tuple[Move, ...]:
    """The moves that one drawn move stands for."""
    if move.step == "skip":
        return ()
    if move.step == "settle":
        # Five right steps make a review, if no open case comes between; an odd `b` proposes where there is support.
        return (Move("go_on", move.a, 1, 0),) * 5
    if move.step in BEGINNINGS:
        return BEGINNINGS[move.step]
    return (move,)


def _chance_move(chance: random.Random) -> Move:
    a, b, c = (chance.randint(0, NUMBER_MAX) for _ in range(3))
    return Move(chance.choice(_STEPS_BY_WEIGHT), a, b, c, chance.choice(_FLAWS_BY_WEIGHT))
