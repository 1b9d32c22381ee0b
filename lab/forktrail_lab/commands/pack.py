"""`forktrail pack`: list the installed packs, check one, or begin one of your own."""

from __future__ import annotations

import argparse
from pathlib import Path

from forktrail_behaviors.packs import installed_packs, load_pack
from forktrail_behaviors.testing import check_pack
from forktrail_lab.console.arguments import add_action, add_actions, add_format
from forktrail_lab.console.output import counted, note, print_facts, print_made, print_rows
from forktrail_lab.new_pack import make_pack
from forktrail_schemas.errors import ExitCode
from forktrail_schemas.settings import Settings

NEW_EXAMPLE = "  forktrail pack new tickets\n  cd tickets && python -m pytest && forktrail pack check ."
LIST_EXAMPLE = "  forktrail pack list"
CHECK_EXAMPLE = "  forktrail pack check diligence\n  forktrail pack check ./tickets"
EXAMPLE = f"{NEW_EXAMPLE}\n{LIST_EXAMPLE}\n{CHECK_EXAMPLE}"
COLUMNS = ("name", "module", "from")


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare new, list and check."""
    actions = add_actions(parser, "new|list|check")
    making = add_action(
        actions, "new", "make a folder with a pack whose own test passes, to change from there", NEW_EXAMPLE
    )
    making.add_argument("name", metavar="NAME", help="of the pack: a to z, 0 to 9 and -")
    making.add_argument("--to", type=Path, default=Path(), metavar="FOLDER", help="(default: the current folder)")
    add_format(making)
    listing = add_action(actions, "list", "list the installed packs", LIST_EXAMPLE)
    add_format(listing, rows=True)
    checking = add_action(
        actions, "check", "check a pack's types, cycles and code, and play and replay its fixture", CHECK_EXAMPLE
    )
    checking.add_argument(
        "pack", metavar="PACK", help="an installed pack's name, a module, or a folder such as ./tickets"
    )
    add_format(checking)


def run(arguments: argparse.Namespace, settings: Settings) -> int:
    """Do the action; a pack that isn't good ends in exit code 5 where its replay differs, and 1 otherwise.

    Raises:
        NotFound: there is no such pack.
        InvalidInput: the pack is refused, or a name can't be one.
        Unsteady: the fixture comes to something else where it is disturbed.
    """
    if arguments.action == "list":
        rows = [(one.name, one.place, one.distribution) for one in installed_packs()]
        print_rows(COLUMNS, rows, arguments.format)
        return ExitCode.OK
    if arguments.action == "new":
        folder = make_pack(arguments.name, arguments.to)
        facts: dict[str, object] = {"folder": str(folder), "pack": arguments.name}
        print_made(str(folder), f"made {folder}: its README.md says what to change", facts, arguments.format)
        return ExitCode.OK
    return _check(arguments)


def _check(arguments: argparse.Namespace) -> int:
    pack = load_pack(arguments.pack)
    found = check_pack(pack)
    facts: dict[str, object] = {
        "pack": pack.name,
        "good": found.good,
        "types": found.types,
        "behaviors": found.behaviors,
        "tools": found.tools,
        "executions": found.executions,
        "events_compared": found.events,
        "divergences": len(found.divergences),
        "ways_disturbed": found.ways,
        "never_fired": ", ".join(found.idle_behaviors) or None,
    }
    print_facts(facts, arguments.format)
    for divergence in found.divergences:
        note(f"replay: {divergence}")
    for message in found.failed:
        note(f"an execution failed: {message}")
    if found.idle_behaviors:
        note(f"the fixture never fires {counted(len(found.idle_behaviors), 'behavior')}: tell an event that it is on")
    if found.divergences:
        return ExitCode.DIVERGENCE
    return ExitCode.OK if found.good else ExitCode.ERROR
