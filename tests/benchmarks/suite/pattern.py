"""A one-hop `when` over a graph of so many objects: what one event costs that touches a node and makes no match.

Each event is written, read back, folded and matched, one after the other. `growth` is the cost at the larger size over
that at the smaller.
"""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import BaseModel

from benchmarks.figures import Figure, Reading
from benchmarks.peer import hop_milliseconds
from benchmarks.reacting import created, object_id, reacting, related
from benchmarks.stage import Stage
from forktrail_behaviors.behavior import behavior
from forktrail_behaviors.context import Context
from forktrail_behaviors.given import Node
from forktrail_behaviors.pack import Pack
from forktrail_behaviors.types import relation_type_of
from forktrail_producers.producer import meta
from forktrail_schemas.events import ObjectPatched
from forktrail_schemas.events.base import Event
from forktrail_schemas.wire import build

_AGAINST = "activegraph in memory"
FIGURES = (
    Figure("pattern.small", "ms", "low", aim=3.0, against=_AGAINST),
    Figure("pattern.large", "ms", "low", aim=3.0, against=_AGAINST),
    Figure("pattern.growth", "x", "low", aim=1.3),
)


class Task(BaseModel):
    """A node of the graph."""

    status: str = "cold"


@behavior(when="MATCH (a:Task)-[:NEEDS]->(b:Task) WHERE a.status = 'hot' AND b.status = 'hot'")
def heat(ctx: Context, a: Node, b: Node) -> None:
    """Never fires here: only one end is ever hot."""


PACK = Pack("tasks", [Task], [relation_type_of("NEEDS", [Task], [Task])], behaviors=[heat])


def prepare(stage: Stage) -> None:
    """Nothing: every repeat has runs of its own."""


def measure(stage: Stage) -> Iterator[Reading]:
    """Measure both sizes in one process, the smaller first."""
    costs = []
    for name, size, events in (("small", stage.size(1_000, 200), 20), ("large", stage.size(10_000, 1_000), 2)):
        costs.append(_per_event(stage, f"pattern.{name}", size))
        yield Reading(f"pattern.{name}", costs[-1], f"{size:,} objects", hop_milliseconds(size, events))
    yield Reading("pattern.growth", costs[1] / costs[0], f"{size:,} objects")


def _per_event(stage: Stage, figure: str, objects: int) -> float:
    """Milliseconds for an event."""
    events = stage.size(300, 50)
    with reacting(stage, PACK) as run:
        told: list[Event] = [created(run.run, "Task", number, status="cold") for number in range(objects)]
        told += [related(run.run, "NEEDS", ("Task", number), ("Task", number + 1)) for number in range(objects - 1)]
        run.tell(told)
        steps = run.steps()
        while not next(steps):
            pass
        with stage.timed(figure) as clock:
            for number in range(events):
                run.tell([_patched(run.run, 2 * number % objects, "hot" if number % 2 else "warm")])
                end = run.reactor.next_offset + 1
                while run.reactor.next_offset < end:
                    next(steps)
        stage.expect("executions", run.reactor.open_executions, [])
    return 1000 * clock.seconds / events


def _patched(run: str, number: int, status: str) -> Event:
    told = {"object_type": "Task", "object_id": object_id("Task", number), "data": f'{{"status":"{status}"}}'}
    return build(ObjectPatched, {"meta": meta(run, "service", "bench"), **told, "expected_version": None})
