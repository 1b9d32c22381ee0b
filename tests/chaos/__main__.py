"""`make chaos`, or `python -m chaos` in tests/: brings trouble over real processes, and says whether anything got lost.

Exit codes: 0 if every invariant held, 1 if one didn't, 2 for usage.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from chaos import report
from chaos.broker import Broker
from chaos.checker import Check
from chaos.scenarios import disk_full, kills, power_loss, stopped_broker, torn_graph, twice
from chaos.schedule import KILLS, counts_of
from chaos.stage import Stage
from forktrail_schemas.errors import ForktrailError
from forktrail_schemas.settings import GRAPH_ENGINES

SCENARIOS: Mapping[str, Callable[[Stage], Iterable[Check]]] = {
    "kills": kills.play,
    "twice": twice.play,
    "stopped_broker": stopped_broker.play,
    "torn_graph": torn_graph.play,
    "disk_full": disk_full.play,
    "power_loss": power_loss.play,
}


def main() -> int:
    """Run what the arguments ask for; returns the exit code."""
    arguments = _arguments()
    print(f"seed {arguments.seed}", flush=True)
    # Without this, SIGTERM would end Python and leave the processes running.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    # Sockets lie below it, and their paths must be short.
    folder = Path(tempfile.mkdtemp(prefix="chaos-"))
    began = time.monotonic()
    broker = Broker(folder / "broker", report.say)
    try:
        broker.start()
        engine = os.environ.get("FORKTRAIL_GRAPH_ENGINE") or GRAPH_ENGINES[0]
        stage = Stage(folder, broker, arguments.seed, counts_of(arguments.kills), engine, report.say)
        results = [(name, check) for name in arguments.only for check in _played(name, stage)]
    except KeyboardInterrupt:
        arguments.keep = True
        print(f"interrupted; what there is is kept in {folder}")
        return 130
    except ForktrailError as error:
        report.say(f"chaos: {error}")
        return 1
    finally:
        broker.stop()
    print(report.table(results))
    passed = all(check.passed for _, check in results)
    print(f"{'PASS' if passed else 'FAIL'} in {time.monotonic() - began:.0f} s, seed {arguments.seed}")
    if passed and not arguments.keep:
        shutil.rmtree(folder, ignore_errors=True)
    else:
        print(f"journals, graphs and the log are kept in {folder}")
    return 0 if passed else 1


def _played(name: str, stage: Stage) -> list[Check]:
    """What came of a scenario; one that breaks off has failed."""
    report.say(f"{name}: begins")
    checks: list[Check] = []
    began = time.monotonic()
    try:
        checks.extend(SCENARIOS[name](stage))
    except Exception as error:  # whatever it is, the account, the seed and the other scenarios are wanted
        traceback.print_exc()
        checks.append(Check("it is played to its end", "", (f"{type(error).__name__}: {error}",)))
    report.say(f"{name}: done in {time.monotonic() - began:.0f} s")
    return checks


def _arguments() -> argparse.Namespace:
    names = list(SCENARIOS)
    parser = argparse.ArgumentParser(prog="chaos", description="Bring trouble over real processes; see what gets lost.")
    parser.add_argument("--only", action="append", choices=names, metavar="NAME", help=f"one of: {', '.join(names)}")
    parser.add_argument("--kills", type=int, default=sum(KILLS.values()), help="how many kills in all (%(default)s)")
    parser.add_argument("--seed", type=int, default=random.randrange(2**32), help="draw the same again")
    parser.add_argument("--keep", action="store_true", help="keep journals, graphs and the log in any case")
    arguments = parser.parse_args()
    if arguments.kills < 3:
        parser.error("--kills must be 3 or more: one of each process")
    arguments.only = arguments.only or names
    return arguments


if __name__ == "__main__":
    sys.exit(main())
