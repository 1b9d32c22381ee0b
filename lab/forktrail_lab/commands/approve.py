"""`forktrail approve`: approve a case, so that a runner may run it."""

from __future__ import annotations

import argparse

from forktrail_lab.console.decisions import configure_decision, decide
from forktrail_schemas.errors import ExitCode
from forktrail_schemas.settings import Settings

EXAMPLE = "  forktrail approve $RUN case-3f --key olga --reason 'in scope'"


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    configure_decision(parser)


def run(arguments: argparse.Namespace, settings: Settings) -> int:
    """Write the decision; see `decide` for what it raises."""
    decide(arguments, settings, "approve")
    return ExitCode.OK
