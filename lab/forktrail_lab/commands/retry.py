"""`forktrail retry`: let an inconclusive test be proposed again."""

from __future__ import annotations

import argparse

from forktrail_lab.console.arguments import add_case, add_format, add_key, add_reason, add_run
from forktrail_lab.console.named import find_case, last_event
from forktrail_lab.console.output import print_result
from forktrail_lab.console.session import open_session
from forktrail_schemas.errors import ExitCode
from forktrail_schemas.events import RetryRequested
from forktrail_schemas.settings import Settings

EXAMPLE = "  forktrail retry $RUN case-3f --key olga --reason 'the service was down'"


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare run, case, key and reason."""
    add_run(parser)
    add_case(parser)
    add_key(parser)
    add_reason(parser)
    add_format(parser)


def run(arguments: argparse.Namespace, settings: Settings) -> int:
    """Take an inconclusive attempt out of the way of another.

    Raises:
        EventVoid: the attempt isn't inconclusive, or was retried already.
    """
    with open_session(settings, arguments.run) as session:
        case = find_case(session, arguments.case)
        written = session.write(
            RetryRequested,
            session.person(arguments.key),
            causes=[last_event(session, case)],
            case_id=case["id"],
            reason=arguments.reason,
        )
    facts = written.facts() | {"case_id": case["id"], "test_id": case["test"]}
    line = f"{case['test']} may be proposed again: {case['id']} no longer stands in its way (offset {written.offset})"
    print_result(line, facts, arguments.format)
    return ExitCode.OK
