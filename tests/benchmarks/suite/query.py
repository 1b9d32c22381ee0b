"""Query latency: a lookup by primary key, in a process that has the graph open, and as the whole command.

The command starts Python, asks Kafka for the log's end, opens the graph, answers and closes.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from statistics import median

from benchmarks.figures import Figure, Reading, WrongResult, events_of
from benchmarks.graphs import make_graph
from benchmarks.logs import StoredLog, stored_stream
from benchmarks.stage import Stage
from benchmarks.workload import BULK
from forktrail_projectors.projection import open_projection

FIGURES = (
    Figure("query.lookup", "ms", "low"),
    Figure("query.command", "ms", "low"),
)
_LOOKUP = "MATCH (c:`Case`) WHERE c.id = $id RETURN c.status"
_WARM_UP_QUERIES = 20
_QUERIES = 500
_COMMANDS = 3


def prepare(stage: Stage) -> None:
    """Fold the graph."""
    make_graph(stage, _log(stage))


def measure(stage: Stage) -> Iterator[Reading]:
    """The median of many lookups, and of a few commands."""
    log = _log(stage)
    with open_projection(stage.settings, log.run) as projection:
        graph = projection.graph
        ids = [str(row[0]) for row in graph.query("MATCH (c:`Case`) RETURN c.id ORDER BY c.id").rows]
        stage.expect("the count of cases", len(ids), log.rows["Case"])
        milliseconds = []
        answers = []
        with stage.timed("query.lookup"):
            for number in range(_WARM_UP_QUERIES + _QUERIES):
                began = time.perf_counter()
                table = graph.query(_LOOKUP, {"id": ids[number % len(ids)]})
                milliseconds.append((time.perf_counter() - began) * 1000)
                answers.append(table.rows[0])
    stage.expect("the answers", set(answers), {("proposed",)})
    yield Reading("query.lookup", median(milliseconds[_WARM_UP_QUERIES:]), events_of(log.events))
    commands = [_command(stage, log.run, case_id) for case_id in ids[:_COMMANDS]]
    yield Reading("query.command", median(commands), events_of(log.events))


def _command(stage: Stage, run: str, case_id: str) -> float:
    """How many milliseconds the command takes, from start to end."""
    settings = stage.settings
    environment = {
        **os.environ,
        "FORKTRAIL_HOME": str(settings.home),
        "FORKTRAIL_BOOTSTRAP_SERVERS": settings.bootstrap_servers,
        "FORKTRAIL_GRAPH_ENGINE": settings.graph_engine,
    }
    command = [sys.executable, "-m", "forktrail_lab", "query", run, _LOOKUP, "--param", f"id={case_id}", "--json"]
    began = time.perf_counter()
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    milliseconds = (time.perf_counter() - began) * 1000
    if done.returncode != 0:
        raise WrongResult(f"the command ended with {done.returncode}: {done.stderr.strip()}")
    stage.expect("the command's answer", json.loads(done.stdout), [{"c.status": "proposed"}])
    return milliseconds


def _log(stage: Stage) -> StoredLog:
    return stored_stream(stage, BULK, stage.size(100_000, 10_000))
