"""`forktrail patches`: list, show and decide what was proposed."""

from __future__ import annotations

import argparse
import json

from forktrail_lab.console.arguments import add_action, add_actions, add_format, add_key, add_reason, add_run
from forktrail_lab.console.named import find_patch
from forktrail_lab.console.output import note, print_facts, print_result, print_rows
from forktrail_lab.console.session import RunSession, open_session
from forktrail_projectors.state import Row
from forktrail_schemas.errors import ExitCode
from forktrail_schemas.events import PatchDecided
from forktrail_schemas.settings import Settings

LIST_EXAMPLE = "  forktrail patches list $RUN\n  forktrail patches list $RUN --all"
SHOW_EXAMPLE = "  forktrail patches show $RUN patch-3f"
ACCEPT_EXAMPLE = "  forktrail patches accept $RUN patch-3f --key ravi --reason 'read and checked'"
REJECT_EXAMPLE = "  forktrail patches reject $RUN patch-3f --key ravi --reason 'two claims have no evidence'"
EXAMPLE = "\n".join((LIST_EXAMPLE, SHOW_EXAMPLE, ACCEPT_EXAMPLE, REJECT_EXAMPLE))
COLUMNS = ("id", "status", "change", "of", "proposed_by", "reason", "at_offset", "decided_by")
STATUSES = ("proposed", "applied", "rejected")
_PAST = {"accept": "accepted", "reject": "rejected"}
_LIST = """
MATCH (p:Patch) WHERE p.status IN $statuses
RETURN p.id, p.status, p.op, p.type_name, p.object_id, p.source_id, p.target_id, p.proposer, p.why,
       p.created_offset AS offset, p.decided_by
ORDER BY offset
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare list, show, accept and reject."""
    actions = add_actions(parser, "list|show|accept|reject")
    listing = add_action(actions, "list", "list the changes that wait for a reviewer", LIST_EXAMPLE)
    add_run(listing)
    listing.add_argument("--all", action="store_true", help="those that were made or rejected too")
    add_format(listing, rows=True)
    showing = add_action(actions, "show", "show a proposed change, and what is there now", SHOW_EXAMPLE)
    _add_patch(showing)
    for decision, example in (("accept", ACCEPT_EXAMPLE), ("reject", REJECT_EXAMPLE)):
        deciding = add_action(actions, decision, f"{decision} a proposed change, as a reviewer", example)
        _add_patch(deciding)
        add_key(deciding)
        add_reason(deciding)


def _add_patch(parser: argparse.ArgumentParser) -> None:
    add_run(parser)
    parser.add_argument("patch", metavar="PATCH", help="patch id, or the first characters of one")
    add_format(parser)


def run(arguments: argparse.Namespace, settings: Settings) -> int:
    """Do the action.

    Raises:
        NotFound: no such run, patch or key.
        EventVoid: the rules refused the decision: the object has changed since, say. The proposal stands.
    """
    with open_session(settings, arguments.run) as session:
        if arguments.action == "list":
            rows = session.query(_LIST, statuses=STATUSES if arguments.all else STATUSES[:1]).rows
            print_rows(COLUMNS, [_listed(row) for row in rows], arguments.format)
            return ExitCode.OK
        patch = find_patch(session, arguments.patch)
        if arguments.action == "show":
            print_facts(_shown(session, patch), arguments.format)
            return ExitCode.OK
        written = session.write(
            PatchDecided,
            session.person(arguments.key),
            causes=[str(patch["created_event"])],
            patch_id=patch["id"],
            decision=arguments.action,
            reason=arguments.reason,
        )
    facts = written.facts() | {"patch_id": patch["id"], "decision": arguments.action}
    line = f"{patch['id']} ({_change(patch)}) {_PAST[arguments.action]} at offset {written.offset}"
    print_result(line, facts, arguments.format)
    if patch["execution"] is not None:
        note(f"its behavior goes on with the next `forktrail behaviors run {arguments.run}`, or now if that runs")
    return ExitCode.OK


def _listed(row: tuple[object, ...]) -> tuple[object, ...]:
    id, status, op, type_name, object_id, source, target, proposer, why, offset, by = row
    of = f"{type_name} {object_id}" if object_id is not None else f"{type_name} from {source} to {target}"
    return (id, status, op, of, proposer, why or None, offset, by)


def _change(patch: Row) -> str:
    return f"{patch['op']} of {patch['type_name']}"


def _shown(session: RunSession, patch: Row) -> dict[str, object]:
    """A patch's facts: what it would change, property by property, beside what is there now."""
    there = session.row(str(patch["type_name"]), str(patch["object_id"])) if patch["object_id"] is not None else None
    shown: dict[str, object] = {
        "patch_id": patch["id"],
        "status": patch["status"],
        "change": _change(patch),
        "object_id": patch["object_id"],
        "proposed_by": f"{patch['proposer_kind']} {patch['proposer']}",
        "reason": patch["why"] or None,
    }
    if patch["source_id"] is not None:
        shown["from"] = f"{patch['source_type']} {patch['source_id']}"
        shown["to"] = f"{patch['target_type']} {patch['target_id']}"
    if patch["expected_version"] is not None:
        shown["expected_version"] = patch["expected_version"]
    if there is not None:
        shown["version_now"] = there["version"]
    for name, value in json.loads(str(patch["data"] or "{}")).items():
        shown[f"{name} (new)"] = value
        if there is not None:
            shown[f"{name} (now)"] = there[name]
    if patch["decided_by"] is not None:
        shown |= {"decided_by": patch["decided_by"], "decision_reason": patch["reason"] or None}
    return shown
