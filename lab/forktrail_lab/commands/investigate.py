"""`forktrail investigate`: a fresh process proposes the next test from the graph alone."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from forktrail_lab.console.arguments import add_run
from forktrail_lab.console.output import note
from forktrail_projectors.reader import LogReader
from forktrail_schemas.errors import ExitCode
from forktrail_schemas.settings import Settings

EXAMPLE = "  forktrail investigate $RUN"


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_run(parser)
    parser.add_argument("--registry", type=Path, metavar="FILE", help="instead of the one the run was opened with")
    parser.add_argument("--as", dest="actor", default="investigator", metavar="NAME", help="the agent's name")
    parser.add_argument("--no-fold", action="store_true", help="answer from the graph as it stands, or not at all")


def run(arguments: argparse.Namespace, settings: Settings) -> int:
    """Print one JSON object that says what was proposed."""
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
    print(json.dumps(result.to_json()))
    return ExitCode.OK
