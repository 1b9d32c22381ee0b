"""`forktrail withdraw`: takes a finding back, or lists what would lose its support."""

from __future__ import annotations

import argparse
import dataclasses

from forktrail_lab.console.arguments import OPERATOR_KEY, add_format, add_key, add_reason, add_run
from forktrail_lab.console.output import Format, print_lines, print_result, to_json
from forktrail_lab.console.session import RunSession, open_session
from forktrail_projectors.withdrawal import Loss, loss_of
from forktrail_schemas.errors import ExitCode, InvalidInput, NotFound
from forktrail_schemas.events import FindingWithdrawn
from forktrail_schemas.settings import Settings

EXAMPLE = """  forktrail withdraw $RUN --dry-run finding-0a1b2c3d
  forktrail withdraw $RUN finding-0a1b2c3d --key olga --reason 'the marker was left by a test'"""

_BY_PREFIX = "MATCH (f:Finding) WHERE f.id STARTS WITH $start RETURN f.id, f.created_event ORDER BY f.id"


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_run(parser)
    parser.add_argument("finding", metavar="FINDING", help="finding id, or the first characters of one")
    parser.add_argument("--dry-run", action="store_true", help="change nothing; list what would lose support")
    add_key(parser, OPERATOR_KEY)
    add_reason(parser)
    add_format(parser)


def run(arguments: argparse.Namespace, settings: Settings) -> int:
    """List the tests that would lose support, or withdraw.

    Raises:
        NotFound: no such finding.
        EventVoid: it is withdrawn already, or the key may not.
    """
    with open_session(settings, arguments.run) as session:
        finding, made_by = _find(session, arguments.finding)
        loss = loss_of(session.projection.graph, finding)
        if arguments.dry_run:
            _print_loss(loss, arguments.format)
            return ExitCode.OK
        written = session.write(
            FindingWithdrawn,
            session.person(arguments.key),
            causes=[made_by],
            finding_id=finding,
            reason=arguments.reason,
        )
    facts = written.facts() | {"finding_id": finding, "tests_without_support": [test for test, _ in loss.tests]}
    line = f"{finding} is withdrawn; {len(loss.tests)} tests lost support"
    print_result(line, facts, arguments.format)
    return ExitCode.OK


def _find(session: RunSession, name: str) -> tuple[str, str]:
    rows = session.query(_BY_PREFIX, start=name).rows
    if not rows:
        raise NotFound(f"{session.projection.run} has no finding {name!r}", hint="`forktrail handoff RUN` lists them")
    if len(rows) > 1:
        raise InvalidInput(f"{name!r} is the start of {len(rows)} findings' ids", hint="give more of the id")
    return str(rows[0][0]), str(rows[0][1])


def _print_loss(loss: Loss, format: str) -> None:
    if format == Format.JSON:
        print(to_json(dataclasses.asdict(loss), indent=2))
        return
    if not loss.current:
        print_lines([f"{loss.finding_id} doesn't count now: withdrawing it takes support from nothing"])
        return
    lines = [f"withdrawing {loss.finding_id} takes support from {len(loss.tests)} tests:"]
    lines += [f"  {test}: support missing: {', '.join(capabilities)}" for test, capabilities in loss.tests]
    lines += [f"  {test} needs it too, and lacks other support already" for test in loss.short_already]
    lines += [f"  {capability} stays: also provided by {', '.join(others)}" for capability, others in loss.kept]
    lines += [f"  {finding} rested on it: its own evidence stands, look at it again" for finding in loss.resting]
    print_lines(lines)
