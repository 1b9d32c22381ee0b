"""`make bench`, or `python -m benchmarks` in tests/: runs the benchmarks and prints their table.

Exit codes: 0 whatever the speed, 1 for a wrong result, 2 for usage.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import sys
import tempfile
from pathlib import Path

from benchmarks import catalog, report
from benchmarks.figures import Line
from benchmarks.kafka import benchmark_kafka
from benchmarks.runner import Failed, Run
from forktrail_schemas.errors import ForktrailError
from forktrail_schemas.settings import GRAPH_ENGINES

REPEATS = 5


def main() -> int:
    """Run what the arguments ask for; returns the exit code."""
    arguments = _arguments()
    # Without this, SIGTERM would end Python and leave the broker running.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    folder = Path(tempfile.mkdtemp(prefix="forktrail-bench-"))
    try:
        return _run(arguments, folder)
    except ForktrailError as error:
        report.say(f"benchmarks: {error}")
        return 1
    except KeyboardInterrupt:
        return 130
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _run(arguments: argparse.Namespace, folder: Path) -> int:
    warning = report.busy_warning()
    if warning:
        report.say(warning)
    lines: list[Line] = []
    failures: dict[str, str] = {}
    with benchmark_kafka(folder / "broker") as kafka:
        report.say(kafka.description)
        run = Run(
            folder=folder,
            bootstrap_servers=kafka.bootstrap_servers,
            graph_engine=os.environ.get("FORKTRAIL_GRAPH_ENGINE") or GRAPH_ENGINES[0],
            quick=arguments.quick,
            repeats=arguments.repeats,
            say=report.say,
            profiled=arguments.profile or "",
        )
        for name in arguments.only:
            try:
                lines += run.lines(name)
            except Failed as error:
                failures[name] = str(error)
                report.say(f"{name}: {error}")
    if not arguments.profile:  # a profile slows what it looks at
        print(report.table(lines, quick=arguments.quick))
    if arguments.json:
        found = report.document(lines, failures, quick=arguments.quick, repeats=arguments.repeats)
        arguments.json.write_text(json.dumps(found, indent=1) + "\n")
    for name, failure in failures.items():
        print(f"{name} FAILED: {failure}")
    return 1 if failures else 0


def _arguments() -> argparse.Namespace:
    names = catalog.names()
    parser = argparse.ArgumentParser(prog="benchmarks", description="Run the benchmarks and print their table.")
    parser.add_argument("--only", action="append", choices=names, metavar="NAME", help=f"one of: {', '.join(names)}")
    parser.add_argument("--quick", action="store_true", help="small sizes, at which the aims mean little")
    parser.add_argument("--repeats", type=int, default=REPEATS, help=f"how often each is measured ({REPEATS})")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all readings there too")
    parser.add_argument(
        "--profile",
        metavar="NAME",
        help="run one benchmark once and print the 25 functions that take most of its timed parts; "
        "a figure's name narrows it to that figure",
    )
    arguments = parser.parse_args()
    if arguments.repeats < 1:
        parser.error("--repeats must be 1 or more")
    if arguments.profile:
        benchmark = arguments.profile.partition(".")[0]
        if benchmark not in names:
            parser.error(f"no benchmark is called {benchmark}; there are: {', '.join(names)}")
        arguments.only, arguments.repeats = [benchmark], 1
    arguments.only = arguments.only or names
    return arguments


if __name__ == "__main__":
    sys.exit(main())
