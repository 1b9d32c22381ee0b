"""`forktrail withdraw`: takes a finding back, or lists what would lose its support."""

from __future__ import annotations

import argparse
import dataclasses

from forktrail_lab.console.arguments import add_format, add_key, add_reason, add_run
from forktrail_lab.console.named import find_finding
from forktrail_lab.console.output import Format, counted, note, print_lines, print_result, printable, to_json
from forktrail_lab.console.session import open_session
from forktrail_projectors.withdrawal import Loss, loss_of
from forktrail_schemas.errors import ExitCode, InvalidInput
from forktrail_schemas.events import FindingWithdrawn
from forktrail_schemas.settings import Settings

EXAMPLE = """  forktrail withdraw $RUN --dry-run finding-0a1b2c3d
  forktrail withdraw $RUN finding-0a1b2c3d --key olga --reason 'the marker was left by a test'"""
DRY_RUN = "--dry-run"
AGAIN = "itself can be tested again only in the next revision (`forktrail revision advance`)"


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_run(parser)
    parser.add_argument("finding", metavar="FINDING", help="finding id, or the first characters of one")
    parser.add_argument(
        DRY_RUN,
        action="store_true",
        help="change nothing; list the tests that would lose support: current findings that provide what they require",
    )
    add_key(parser, unless=DRY_RUN)
    add_reason(parser)
    add_format(parser)


def run(arguments: argparse.Namespace, settings: Settings) -> int:
    """List the tests that would lose support, or withdraw.

    Raises:
        NotFound: no such finding.
        InvalidInput: nobody signs, or several findings' ids begin like that; nothing was sent.
        EventVoid: it is withdrawn already, or the key may not.
    """
    if not arguments.dry_run and arguments.key is None:
        raise InvalidInput("who withdraws it?", hint=f"--key NAME; {DRY_RUN} needs none")
    with open_session(settings, arguments.run) as session:
        row = find_finding(session, arguments.finding)
        finding = str(row["id"])
        loss = loss_of(session.projection.graph, finding)
        if arguments.dry_run:
            _print_loss(loss, str(row["test"]), arguments.format)
            return ExitCode.OK
        written = session.write(
            FindingWithdrawn,
            session.person(arguments.key),
            causes=[str(row["created_event"])],
            finding_id=finding,
            reason=arguments.reason,
        )
    facts = written.facts() | {
        "finding_id": finding,
        "tests_without_support": [test for test, _ in loss.tests],
        "cases_without_support": [case for case, _, _ in loss.cases],
    }
    line = f"{finding} is withdrawn; {counted(len(loss.tests), 'test')} lost support"
    print_result(line, facts, arguments.format)
    if loss.current:
        for more in (*_stuck(loss), f"{row['test']} {AGAIN}"):
            note(more)
    return ExitCode.OK


def _stuck(loss: Loss) -> list[str]:
    """The cases that can't go on without the finding, a line each."""
    told = {"proposed": "waits for approval, and can't be approved", "approved": "is approved, and can't be run"}
    return [f"{case} ({test}) {told[status]} without it" for case, test, status in loss.cases]


def _print_loss(loss: Loss, test: str, format: str) -> None:
    if format == Format.JSON:
        print(to_json(dataclasses.asdict(loss), indent=2))
        return
    if not loss.current:
        print_lines([f"{loss.finding_id} doesn't count now: withdrawing it takes support from nothing"])
        return
    lines = [f"withdrawing {loss.finding_id} takes support from {counted(len(loss.tests), 'test')}:"]
    lines += [f"  {short}: support missing: {', '.join(capabilities)}" for short, capabilities in loss.tests]
    lines += [f"  {short} needs it too, and lacks other support already" for short in loss.short_already]
    lines += [f"  {line}" for line in _stuck(loss)]
    lines += [f"  {capability} stays: also provided by {', '.join(others)}" for capability, others in loss.kept]
    lines += [f"  {finding} rested on it: its own evidence stands, look at it again" for finding in loss.resting]
    lines.append(f"  {test} {AGAIN}")
    print_lines([printable(line) for line in lines])
