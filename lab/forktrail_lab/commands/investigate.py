"""`forktrail investigate`: a fresh process proposes the next test from the graph alone."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from forktrail_lab.console.arguments import add_format, add_run
from forktrail_lab.console.output import counted, note, print_made
from forktrail_projectors.reader import LogReader
from forktrail_schemas.errors import ExitCode
from forktrail_schemas.settings import Settings

if TYPE_CHECKING:
    from forktrail_lab.investigator import Investigation

EXAMPLE = "  CASE=$(forktrail investigate $RUN)\n  forktrail investigate $RUN --format json"


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_run(parser)
    parser.add_argument("--registry", type=Path, metavar="FILE", help="instead of the one the run was opened with")
    parser.add_argument("--as", dest="actor", default="investigator", metavar="NAME", help="the agent's name")
    parser.add_argument("--no-fold", action="store_true", help="answer from the graph as it stands, or not at all")
    add_format(parser)


def run(arguments: argparse.Namespace, settings: Settings) -> int:
    """Propose a test, and print the case's id and what came of it, or both as one JSON object."""
    with LogReader(settings.bootstrap_servers, arguments.run) as reader:
        as_of = reader.end()
    # Imported only now: it takes ten times as long as reading the end. Of two investigators started at once, the slower
    # would else read the end after the faster has proposed, and take the second best instead of being overtaken.
    from forktrail_lab.investigator import investigate

    result = investigate(
        settings,
        arguments.run,
        as_of,
        registry_file=arguments.registry,
        actor=arguments.actor,
        fold=not arguments.no_fold,
        say=note,
    )
    print_made(result.case_id, _told(result), result.to_json(), arguments.format)
    return ExitCode.OK


def _told(result: Investigation) -> str:
    considered = counted(result.considered, "eligible test")
    if result.case_id is not None and result.selection is not None:
        rests = counted(len(result.selection.finding_ids), "finding")
        return f"{result.case_id}: {result.selection.test_id} proposed, of {considered}; it rests on {rests}"
    if result.won_by is not None:
        return f"nothing proposed: {result.won_by} was opened meanwhile, when {considered} stood open"
    return "nothing proposed: no test is eligible"
