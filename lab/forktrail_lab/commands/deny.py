"""`forktrail deny`: refuse a case; it will not be run."""

from __future__ import annotations

import argparse

from forktrail_lab.console.decisions import configure_decision, decide
from forktrail_schemas.errors import ExitCode
from forktrail_schemas.settings import Settings

EXAMPLE = "  forktrail deny $RUN case-3f --key olga --reason 'out of scope'"


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    configure_decision(parser)


def run(arguments: argparse.Namespace, settings: Settings) -> int:
    """Write the decision; see `decide` for what it raises."""
    decide(arguments, settings, "deny")
    return ExitCode.OK
