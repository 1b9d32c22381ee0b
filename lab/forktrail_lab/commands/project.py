"""`forktrail project`: fold a run into its graph, or rebuild the graph."""

from __future__ import annotations

import argparse

from forktrail_lab.console.arguments import add_format, add_run
from forktrail_lab.console.output import note, print_facts
from forktrail_projectors.fold import FOLD_VERSION
from forktrail_projectors.projection import Projection, open_projection
from forktrail_schemas.errors import ExitCode
from forktrail_schemas.settings import Settings

EXAMPLE = "  forktrail project $RUN\n  forktrail project $RUN --rebuild"


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the run and whether to rebuild."""
    add_run(parser)
    parser.add_argument("--rebuild", action="store_true", help="make the graph anew from the log; keep the old one")
    add_format(parser)


def run(arguments: argparse.Namespace, settings: Settings) -> int:
    """Fold to the log's end, check the kept digest against one made from every row, and say where the graph stands.

    A graph whose digest is wrong is rebuilt, with a line that says so.

    Raises:
        NotFound: no such run.
        GraphMismatch: the graph is of another topic, and a rebuild wasn't asked for.
        Corruption: the log itself is damaged, or a rebuilt graph doesn't match its digest.
    """
    with open_projection(settings, arguments.run, rebuild=arguments.rebuild, say=note) as projection:
        sound = projection.projector.recomputed_digest() == projection.projector.state_digest
        facts = _facts(projection)
    if not sound:
        note(f"the rows of {arguments.run}'s graph don't match its digest")
        with open_projection(settings, arguments.run, rebuild=True, say=note) as projection:
            facts = _facts(projection)
    print_facts(facts | {"rebuilt": arguments.rebuild or not sound}, arguments.format)
    return ExitCode.OK


def _facts(projection: Projection) -> dict[str, object]:
    position = projection.position()
    return {
        "run": projection.run,
        "next_offset": position.next_offset,
        "end": position.end,
        "state_digest": position.state_digest,
        "log_root": position.log_root,
        "fold_version": FOLD_VERSION,
    }
