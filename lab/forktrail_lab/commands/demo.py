"""`forktrail demo`: plays the whole evidence story as separate processes."""

from __future__ import annotations

import argparse
import signal

from forktrail_lab.console.output import note
from forktrail_lab.demo import play
from forktrail_schemas.errors import ExitCode
from forktrail_schemas.settings import Settings

EXAMPLE = "  forktrail demo"


def configure(parser: argparse.ArgumentParser) -> None:
    """It takes no arguments."""


def run(arguments: argparse.Namespace, settings: Settings) -> int:
    """Play it; Ctrl-C, SIGTERM and a closed terminal end its processes too.

    Raises:
        StoryBroken: a step came out otherwise than the story says.
    """
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) != signal.SIG_IGN:  # as under nohup
            signal.signal(number, signal.default_int_handler)
    try:
        play(settings)
    except KeyboardInterrupt:
        note("forktrail demo: interrupted; its lab is stopped, the broker goes on (`forktrail broker stop` ends it)")
        raise
    return ExitCode.OK
