"""`forktrail case`: lists the cases of a run, or shows all that one is and rests on."""

from __future__ import annotations

import argparse
import dataclasses
from pathlib import Path

from forktrail_lab.console.arguments import add_action, add_actions, add_case, add_format, add_run
from forktrail_lab.console.case_file import case_file
from forktrail_lab.console.case_list import COLUMNS, STATUSES, case_rows
from forktrail_lab.console.case_text import case_lines
from forktrail_lab.console.named import find_case
from forktrail_lab.console.output import Format, print_lines, print_rows, to_json
from forktrail_lab.console.session import open_session
from forktrail_producers.blobs import BlobStore
from forktrail_schemas.errors import ExitCode
from forktrail_schemas.settings import Settings

LIST_EXAMPLE = "  forktrail case list $RUN\n  forktrail case list $RUN --status proposed"
SHOW_EXAMPLE = "  forktrail case show $RUN case-3f"
EXAMPLE = f"{LIST_EXAMPLE}\n{SHOW_EXAMPLE}"


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare list and show."""
    actions = add_actions(parser, "list|show")
    listing = add_action(actions, "list", "list the cases, in the order they were opened", LIST_EXAMPLE)
    add_run(listing)
    listing.add_argument("--status", choices=STATUSES, help="only those that stand there")
    add_format(listing, rows=True)
    showing = add_action(
        actions, "show", "show what a case sends, what it rests on, and who decided what about it", SHOW_EXAMPLE
    )
    add_run(showing)
    add_case(showing)
    showing.add_argument("--registry", type=Path, metavar="FILE", help="instead of the one the run was opened with")
    add_format(showing)


def run(arguments: argparse.Namespace, settings: Settings) -> int:
    """Do the action.

    Raises:
        NotFound: no such run, case or registry file.
    """
    if arguments.action == "list":
        return _list(arguments, settings)
    with open_session(settings, arguments.run) as session:
        case = find_case(session, arguments.case)
        file = case_file(session, case, BlobStore(str(settings.blobs_dir)), arguments.registry)
    if arguments.format == Format.JSON:
        print(to_json(dataclasses.asdict(file), indent=2))
    else:
        print_lines(case_lines(file))
    return ExitCode.OK


def _list(arguments: argparse.Namespace, settings: Settings) -> int:
    with open_session(settings, arguments.run) as session:
        rows = case_rows(session, arguments.status)
    print_rows(COLUMNS, rows, arguments.format)
    return ExitCode.OK
