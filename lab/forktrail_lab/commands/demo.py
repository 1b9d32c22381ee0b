"""`forktrail demo`: plays the whole evidence story as separate processes."""

from __future__ import annotations

import argparse

from forktrail_lab.demo import play
from forktrail_schemas.errors import ExitCode
from forktrail_schemas.settings import Settings

EXAMPLE = "  forktrail demo"


def configure(parser: argparse.ArgumentParser) -> None:
    """It takes no arguments."""


def run(arguments: argparse.Namespace, settings: Settings) -> int:
    """Play it."""
    play(settings)
    return ExitCode.OK
