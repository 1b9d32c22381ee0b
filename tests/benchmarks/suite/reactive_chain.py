"""A serial reactive chain: each object triggers the next, and each reaction waits for the last to be durable.

A reaction is three events (BehaviorStarted, ObjectCreated, BehaviorCompleted), each signed; it is three on the
peer, too, which slows as its log grows. `steady` is the rate of the last thousand events over that of the first.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

from pydantic import BaseModel

from benchmarks.figures import Figure, Reading, events_of, rate
from benchmarks.peer import chain_seconds
from benchmarks.reacting import created, reacting
from benchmarks.stage import Stage
from forktrail_behaviors.behavior import behavior
from forktrail_behaviors.context import Context
from forktrail_behaviors.pack import Pack
from forktrail_schemas.events import ObjectCreated
from forktrail_schemas.ids import new_run_id

_AGAINST = "activegraph in SQLite, a chain a third as long"
FIGURES = (
    Figure(
        "reactive_chain.whole", "events/s", "high", aim=500, against="activegraph in SQLite, a chain a third as long"
    ),
    Figure("reactive_chain.steady", "x", "high", aim=0.9),
)
EVENTS_PER_REACTION = 3
MARK_EVENTS = 1_000


class Step(BaseModel):
    """One link of the chain."""

    left: int


@behavior(on=ObjectCreated, where={"object_type": "Step"}, emits=["Step"], repeats="as often as the first one says")
def step(ctx: Context, event: ObjectCreated) -> None:
    """Make the next one."""
    left = json.loads(event.data)["left"]
    if left:
        ctx.create("Step", left=left - 1)


def prepare(stage: Stage) -> None:
    """Nothing: every repeat has a run of its own."""


def measure(stage: Stage) -> Iterator[Reading]:
    """Let the chain run to its end; the time is taken from the first reaction on."""
    reactions = stage.size(9_000, 900) // EVENTS_PER_REACTION
    with reacting(stage, Pack("chain", [Step], behaviors=[step])) as run:
        steps = run.steps()
        while not next(steps):
            pass
        first = run.reactor.next_offset + 1
        run.tell([created(run.run, "Step", 0, left=reactions)])
        marks: list[tuple[int, float]] = []
        with stage.timed("reactive_chain"):
            for idle in steps:
                marks.append((run.reactor.next_offset - first, time.perf_counter()))
                if idle:
                    break
        stage.expect(
            "the length of the chain", run.reactor.next_offset - first, (reactions + 1) * EVENTS_PER_REACTION - 1
        )
    began = next(at for events, at in marks if events > 0)
    ended = next(at for events, at in marks if events == marks[-1][0])
    total = marks[-1][0]
    events, seconds = chain_seconds(reactions // 3, stage.folder / f"{new_run_id()}.db")
    yield Reading("reactive_chain.whole", rate(total, ended - began), events_of(total), rate(events, seconds))
    mark = min(MARK_EVENTS, total // 3)
    early = next(at for events, at in marks if events >= mark)
    late = max(at for events, at in marks if events <= total - mark)
    steady = rate(mark, ended - late) / rate(mark, early - began)
    yield Reading("reactive_chain.steady", steady, events_of(total))
