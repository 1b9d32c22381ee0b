"""`forktrail why-not`: why a test is not eligible."""

from __future__ import annotations

import argparse
import dataclasses

from forktrail_lab.console.arguments import add_format, add_run
from forktrail_lab.console.output import Format, note, print_lines, printable, to_json
from forktrail_projectors.projection import open_projection
from forktrail_projectors.why_not import why_not
from forktrail_schemas.errors import ExitCode, NotFound
from forktrail_schemas.settings import Settings

EXAMPLE = "  forktrail why-not $RUN invoice-chain"


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_run(parser)
    parser.add_argument("test", metavar="TEST", help="a registered test's id")
    parser.add_argument("--no-fold", action="store_true", help="answer from the graph as it stands, or not at all")
    add_format(parser)


def run(arguments: argparse.Namespace, settings: Settings) -> int:
    """Print the reasons.

    Raises:
        NotFound: no such run or test.
    """
    with open_projection(settings, arguments.run, fold=not arguments.no_fold, say=note) as projection:
        try:
            answer = why_not(projection.graph, arguments.test)
        except NotFound as error:
            error.hint = f"`forktrail run show {arguments.run}` lists the tests"
            raise
    told = [*answer.reasons(), *answer.outlook()]
    if arguments.format == Format.JSON:
        facts = dataclasses.asdict(answer) | {"eligible": answer.eligible, "reasons": told}
        print(to_json(facts, indent=2))
    elif answer.eligible:
        print(f"{answer.test_id} is eligible in {answer.revision}")
    else:
        reasons = [f"  {printable(line)}" for line in told]
        print_lines([f"{answer.test_id} is not eligible in {answer.revision}:", *reasons])
    return ExitCode.OK
