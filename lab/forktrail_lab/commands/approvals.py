"""`forktrail approvals`: what waits for a person: cases, behaviors' requests, and proposals that a policy holds."""

from __future__ import annotations

import argparse

from forktrail_lab.console.arguments import add_action, add_actions, add_format, add_run
from forktrail_lab.console.output import print_rows, time_text
from forktrail_lab.console.session import open_session
from forktrail_schemas.errors import ExitCode
from forktrail_schemas.settings import Settings

EXAMPLE = (
    "  forktrail approvals list $RUN\n"
    "  forktrail approve $RUN call-3f --key olga\n"
    "  forktrail patches accept $RUN patch-7a --key ravi"
)
COLUMNS = ("id", "kind", "asked_by", "title", "details", "since")

_CASES = """
MATCH (c:`Case`) WHERE c.status = 'proposed'
MATCH (e:Event {offset: c.created_offset})
RETURN c.id, c.proposer, c.test, e.occurred_at, c.created_offset
"""
_REQUESTS = """
MATCH (x:Execution)-[:ASKED]->(c:`Call`) WHERE c.kind = 'approval' AND c.status = 'pending' AND x.status = 'running'
MATCH (e:Event {offset: c.created_offset})
RETURN c.id, x.behavior, c.name, c.request, e.occurred_at, c.created_offset
"""


_PATCHES = """
MATCH (p:Patch) WHERE p.status = 'proposed'
MATCH (e:Event {offset: p.created_offset})
RETURN p.id, p.proposer, p.op, p.type_name, p.why, e.occurred_at, p.created_offset
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare list."""
    actions = add_actions(parser, "list")
    listing = add_action(actions, "list", "list what waits for a person to approve or deny it", EXAMPLE)
    add_run(listing)
    add_format(listing, rows=True)


def run(arguments: argparse.Namespace, settings: Settings) -> int:
    """Print what waits, the longest first."""
    with open_session(settings, arguments.run) as session:
        cases = session.query(_CASES).rows
        requests = session.query(_REQUESTS).rows
        patches = session.query(_PATCHES).rows
    waiting: list[tuple[object, tuple[object, ...]]] = [
        (offset, (id, "case", by, test, None, time_text(since))) for id, by, test, since, offset in cases
    ]
    waiting += [
        (offset, (id, "request", by, title, details or None, time_text(since)))
        for id, by, title, details, since, offset in requests
    ]
    waiting += [
        (offset, (id, "patch", by, f"{op} of {type_name}", why or None, time_text(since)))
        for id, by, op, type_name, why, since, offset in patches
    ]
    rows = [row for _, row in sorted(waiting, key=lambda one: int(str(one[0])))]
    print_rows(COLUMNS, rows, arguments.format)
    return ExitCode.OK
