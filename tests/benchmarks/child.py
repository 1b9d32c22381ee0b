"""One step of one benchmark in a process of its own: `python -m benchmarks.child STEP NAME …`, started by `runner`.

Readings, or what is wrong, go to stdout as one line of JSON; a profile goes to stderr.
"""

from __future__ import annotations

import argparse
import json
import pstats
import sys
from dataclasses import asdict
from pathlib import Path

from benchmarks.catalog import load
from benchmarks.figures import WrongResult
from benchmarks.stage import Stage

PROFILED_FUNCTIONS = 25


def main() -> int:
    """Run the step; returns 0, or 1 for a wrong result."""
    parser = argparse.ArgumentParser()
    parser.add_argument("step", choices=("prepare", "measure"))
    parser.add_argument("name")
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--bootstrap-servers", required=True)
    parser.add_argument("--graph-engine", required=True)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--profiled", default="")
    arguments = parser.parse_args()
    benchmark = load(arguments.name)
    stage = Stage(
        arguments.folder, arguments.bootstrap_servers, arguments.graph_engine, arguments.quick, arguments.profiled
    )
    try:
        if arguments.step == "prepare":
            benchmark.prepare(stage)
            readings = []
        else:
            readings = [asdict(reading) for reading in benchmark.measure(stage)]
    except WrongResult as error:
        print(json.dumps({"wrong": str(error)}))
        return 1
    print(json.dumps({"readings": readings}))
    if stage.profiled and readings:
        pstats.Stats(stage.profile, stream=sys.stderr).sort_stats("tottime").print_stats(PROFILED_FUNCTIONS)
    return 0


if __name__ == "__main__":
    sys.exit(main())
