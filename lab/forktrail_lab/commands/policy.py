"""`forktrail policy`: say which changes of a type a reviewer has to accept, or list what holds."""

from __future__ import annotations

import argparse
from typing import get_args

from forktrail_lab.console.arguments import ADMIN_KEY, add_action, add_actions, add_format, add_key, add_reason, add_run
from forktrail_lab.console.output import print_result, print_rows
from forktrail_lab.console.session import open_session
from forktrail_schemas.errors import ExitCode
from forktrail_schemas.events import PolicySet
from forktrail_schemas.events.log import ChangeKind
from forktrail_schemas.settings import Settings

SET_EXAMPLE = (
    "  forktrail policy set $RUN Memo --changes create,patch --reason 'memos go to clients'\n"
    "  forktrail policy set $RUN Memo --changes none"
)
LIST_EXAMPLE = "  forktrail policy list $RUN"
EXAMPLE = f"{SET_EXAMPLE}\n{LIST_EXAMPLE}"
COLUMNS = ("type", "changes", "reason", "since_offset")
ALL, NONE = "all", "none"
_KINDS: tuple[str, ...] = get_args(ChangeKind)
_LIST = "MATCH (p:Policy) RETURN p.id, p.changes, p.reason, p.changed_offset ORDER BY p.id"


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare set and list."""
    actions = add_actions(parser, "set|list")
    setting = add_action(actions, "set", "say which changes of a type a reviewer has to accept", SET_EXAMPLE)
    add_run(setting)
    setting.add_argument("type_name", metavar="TYPE", help="object or relation type; it may be declared later")
    setting.add_argument(
        "--changes",
        type=changes,
        required=True,
        metavar="CHANGES",
        help=f"some of {', '.join(_KINDS)}, separated by commas; {ALL}, or {NONE} to lift the policy; those of an"
        " object type cover the relations of its objects too",
    )
    add_key(setting, ADMIN_KEY)
    add_reason(setting)
    add_format(setting)
    listing = add_action(actions, "list", "list the policies that hold", LIST_EXAMPLE)
    add_run(listing)
    add_format(listing, rows=True)


def run(arguments: argparse.Namespace, settings: Settings) -> int:
    """Do the action.

    Raises:
        InvalidInput: the key may not; nothing was sent.
        EventVoid: the name is the graph's own.
    """
    with open_session(settings, arguments.run) as session:
        if arguments.action == "list":
            rows = [(name, _told(kinds), reason, since) for name, kinds, reason, since in session.query(_LIST).rows]
            print_rows(COLUMNS, rows, arguments.format)
            return ExitCode.OK
        written = session.write(
            PolicySet,
            session.person(arguments.key),
            type_name=arguments.type_name,
            changes=arguments.changes,
            reason=arguments.reason,
        )
    facts = written.facts() | {"type": arguments.type_name, "changes": arguments.changes}
    what = f"needs a reviewer's yes to {_told(arguments.changes)}" if arguments.changes else "needs nobody's yes"
    print_result(f"{arguments.type_name} {what} from offset {written.offset}", facts, arguments.format)
    return ExitCode.OK


def changes(text: str) -> list[str]:
    """Kinds of change, as a policy holds them.

    Raises:
        argparse.ArgumentTypeError: one is unknown.
    """
    if text in (ALL, NONE):
        return list(_KINDS) if text == ALL else []
    named = [part.strip() for part in text.split(",")]
    unknown = next((part for part in named if part not in _KINDS), None)
    if unknown is not None:
        raise argparse.ArgumentTypeError(f"{unknown!r} is no change; known: {', '.join(_KINDS)}, {ALL}, {NONE}")
    return named


def _told(kinds: object) -> str:
    """Kinds of change in words."""
    return ", ".join(map(str, kinds)) or NONE if isinstance(kinds, list | tuple) else NONE
