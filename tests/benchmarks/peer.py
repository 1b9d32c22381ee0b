"""The same work on the peer, the `activegraph` package, through its public interface."""

from __future__ import annotations

import time
from itertools import pairwise
from pathlib import Path
from typing import Any

from activegraph import Graph, Runtime, behavior  # type: ignore[import-untyped]  # it brings no types

_NO_END = 10**9
_BUDGET = {"max_events": _NO_END, "max_behavior_calls": _NO_END, "max_seconds": _NO_END}
_HOP = "(a:task)-[n:needs]->(b:task) WHERE a.data.status = 'hot' AND b.data.status = 'hot'"


def chain_seconds(reactions: int, database: Path) -> tuple[int, float]:
    """How many events a serial chain of so many reactions makes, kept in SQLite, and how long it takes."""

    @behavior(name="step", on=["object.created"])  # type: ignore[untyped-decorator]  # as above
    def step(event: Any, graph: Any, ctx: Any) -> None:
        left = event.payload["object"]["data"]["left"]
        if left:
            graph.add_object("step", {"left": left - 1})

    graph = Graph()
    runtime = Runtime(graph, behaviors=[step], persist_to=str(database), budget=_BUDGET)
    began = time.perf_counter()
    graph.add_object("step", {"left": reactions})
    runtime.run_until_idle()
    seconds = time.perf_counter() - began
    return len(graph.events), seconds


def hop_milliseconds(objects: int, events: int) -> float:
    """What an event costs, in memory, that touches one of so many objects under a one-hop pattern without a match."""

    @behavior(name="heat", on=["patch.applied"], pattern=_HOP)  # type: ignore[untyped-decorator]  # as above
    def heat(event: Any, graph: Any, ctx: Any) -> None:
        raise AssertionError("nothing matches")

    graph = Graph()
    tasks = [graph.add_object("task", {"status": "cold"}) for _ in range(objects)]
    for one, other in pairwise(tasks):
        graph.add_relation(one.id, other.id, "needs")
    runtime = Runtime(graph, behaviors=[heat], budget=_BUDGET)
    runtime.run_until_idle()
    began = time.perf_counter()
    for number in range(events):
        graph.patch_object(tasks[2 * number].id, {"status": "hot" if number % 2 else "warm"})
        runtime.run_until_idle()
    return 1000 * (time.perf_counter() - began) / events
