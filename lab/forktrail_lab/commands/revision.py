"""`forktrail revision`: show or advance the active revision of a run."""

from __future__ import annotations

import argparse

from forktrail_lab.console.arguments import add_action, add_actions, add_format, add_key, add_reason, add_run
from forktrail_lab.console.output import print_result, print_rows
from forktrail_lab.console.session import RunSession, open_session
from forktrail_projectors.rules.context import text
from forktrail_schemas.errors import ExitCode
from forktrail_schemas.events import RevisionAdvanced
from forktrail_schemas.settings import Settings

SHOW_EXAMPLE = "  forktrail revision show $RUN"
ADVANCE_EXAMPLE = "  forktrail revision advance $RUN r2 --key olga --reason 'the fixes are deployed'"
EXAMPLE = f"{SHOW_EXAMPLE}\n{ADVANCE_EXAMPLE}"
COLUMNS = ("revision", "active", "from_offset", "cases", "findings")


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare show and advance."""
    actions = add_actions(parser, "show|advance")
    show = add_action(actions, "show", "list the revisions so far, and which one is active", SHOW_EXAMPLE)
    add_run(show)
    add_format(show)
    advance = add_action(
        actions, "advance", "make a new revision the active one; earlier findings become history", ADVANCE_EXAMPLE
    )
    add_run(advance)
    advance.add_argument("to", metavar="TO", help="the new revision; there is no way back to an earlier one")
    add_reason(advance)
    add_key(advance)
    add_format(advance)


def run(arguments: argparse.Namespace, settings: Settings) -> int:
    """Do the action.

    Raises:
        EventVoid: the revision is there already, or the key may not.
    """
    if arguments.action == "advance":
        return _advance(arguments, settings)
    with open_session(settings, arguments.run) as session:
        active = text(session.run, "active_revision")
        found = session.query("MATCH (r:Revision) RETURN r.id, r.created_offset ORDER BY r.ordinal").rows
        cases = _counts(session, "MATCH (c:`Case`) RETURN c.revision, count(*)")
        findings = _counts(session, "MATCH (f:Finding) RETURN f.revision, count(*)")
    rows = [(id, id == active, offset, cases.get(id, 0), findings.get(id, 0)) for id, offset in found]
    print_rows(COLUMNS, rows, arguments.format)
    return ExitCode.OK


def _counts(session: RunSession, cypher: str) -> dict[object, object]:
    return {row[0]: row[1] for row in session.query(cypher).rows}


def _advance(arguments: argparse.Namespace, settings: Settings) -> int:
    with open_session(settings, arguments.run) as session:
        active = text(session.run, "active_revision")
        written = session.write(
            RevisionAdvanced,
            session.person(arguments.key),
            from_revision=active,
            to_revision=arguments.to,
            reason=arguments.reason,
        )
    facts = written.facts() | {"from_revision": active, "to_revision": arguments.to}
    line = f"{arguments.to} is active from offset {written.offset}; findings of {active} are history now"
    print_result(line, facts, arguments.format)
    return ExitCode.OK
