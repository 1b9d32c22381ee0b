"""`forktrail runner`: runs approved tests, within bounds, once per approval."""

from __future__ import annotations

import argparse
import signal
import time
from pathlib import Path
from types import FrameType

from forktrail_lab.console.arguments import add_run
from forktrail_lab.console.output import note
from forktrail_lab.exchange.targets import TARGETS_FILE
from forktrail_lab.runner import Lane, Ran, Runner, exclusive
from forktrail_producers.keys import KeyStore
from forktrail_producers.producer import Producer
from forktrail_projectors.reader import LogReader
from forktrail_schemas.errors import ApprovalRequired, ExitCode
from forktrail_schemas.settings import Settings

EXAMPLE = "  forktrail runner $RUN --key runner-1 --once"
POLL_SECONDS = 0.5


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_run(parser)
    parser.add_argument("--key", default="runner", metavar="NAME", help="the runner's signing key (default: runner)")
    parser.add_argument(
        "--once", action="store_true", help="run one approved case and end; exit 7 where one only waits for approval"
    )
    parser.add_argument(
        "--take-over",
        action="store_true",
        help="close as interrupted what another home's runner left running under this key; only where it is gone",
    )
    parser.add_argument("--registry", type=Path, metavar="FILE", help="instead of the one the run was opened with")
    parser.add_argument("--targets", type=Path, metavar="FILE", help="where the services listen (default: the lab's)")
    parser.add_argument(
        "--allow-host", action="append", metavar="HOST:PORT", help="may be asked too, after a redirect; repeatable"
    )


def run(arguments: argparse.Namespace, settings: Settings) -> int:
    """Run approved cases until stopped, or one."""
    lane = Lane(
        run=arguments.run,
        key=KeyStore(settings.keys_dir).load(arguments.key),
        registry_file=arguments.registry,
        targets_file=arguments.targets or settings.lab_dir / TARGETS_FILE,
        allowed_hosts=frozenset(arguments.allow_host) if arguments.allow_host else None,
    )
    with exclusive(settings, lane), Producer(settings.bootstrap_servers) as producer:
        runner = Runner(settings, lane, producer, note)
        for ran in runner.close_interrupted(take_over=arguments.take_over):
            _tell(ran)
        return _once(runner, arguments.run) if arguments.once else _until_stopped(runner, settings, arguments.run)


def _once(runner: Runner, run: str) -> int:
    ran = runner.run_next()
    if ran is not None:
        _tell(ran)
        return ExitCode.OK
    waiting = runner.waiting()
    if waiting:
        raise ApprovalRequired(
            f"nothing is approved; waiting for a person: {', '.join(waiting)}",
            hint=f"forktrail approve {run} {waiting[0]} --key NAME",
        )
    if runner.passed_over:
        print("no approved case may be run now")
    else:
        print("nothing is approved and nothing waits")
    return ExitCode.OK


def _until_stopped(runner: Runner, settings: Settings, run: str) -> int:
    stopped = False

    def stop(number: int, frame: FrameType | None) -> None:
        nonlocal stopped
        stopped = True

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    note(f"runner: waiting for approved cases of {run}; stop it with Ctrl-C")
    with LogReader(settings.bootstrap_servers, run) as reader:
        seen = -1
        while not stopped:
            end = reader.end()
            if end == seen:
                time.sleep(POLL_SECONDS)
                continue
            while not stopped and (ran := runner.run_next()) is not None:
                _tell(ran)
            seen = end
    return ExitCode.OK


def _tell(ran: Ran) -> None:
    answers = "/".join(str(status) for status in ran.statuses) or "no answer"
    print(f"{ran.case_id} {ran.test_id}: {answers} -> {ran.outcome} ({ran.reason})", flush=True)
