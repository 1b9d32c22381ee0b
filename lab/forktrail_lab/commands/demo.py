"""`forktrail demo`: plays the whole evidence story, or a due diligence, as separate processes."""

from __future__ import annotations

import argparse
import signal
from pathlib import Path

from forktrail_lab import diligence_demo
from forktrail_lab.console.arguments import add_format
from forktrail_lab.console.output import Format, note
from forktrail_lab.demo import play
from forktrail_schemas.errors import ExitCode, InvalidInput
from forktrail_schemas.settings import Settings

EXAMPLE = "  forktrail demo\n  forktrail demo diligence"
EVIDENCE, DILIGENCE = "evidence", "diligence"


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the story, and what a diligence may be about."""
    parser.add_argument(
        "story",
        nargs="?",
        choices=(EVIDENCE, DILIGENCE),
        default=EVIDENCE,
        metavar="evidence|diligence",
        help="evidence (default): from a report to findings; diligence: from names of companies to memos",
    )
    parser.add_argument(
        "--companies",
        type=lambda text: text.split(","),
        metavar="NAME,NAME",
        help="of the diligence (default: all that its documents are about)",
    )
    parser.add_argument("--documents", type=Path, metavar="FOLDER", help="that the diligence reads (default: its own)")
    parser.add_argument("--models", type=Path, metavar="FILE", help="which models answer (default: a fixture does)")
    add_format(parser)


def run(arguments: argparse.Namespace, settings: Settings) -> int:
    """Play it; Ctrl-C, SIGTERM and a closed terminal end its processes too.

    Raises:
        StoryBroken: a step came out otherwise than the story says.
        InvalidInput: an option goes with the other story.
    """
    told = (arguments.companies, arguments.documents, arguments.models, arguments.format != Format.TABLE)
    if arguments.story == EVIDENCE and any(told):
        raise InvalidInput("these options go with the diligence", hint="forktrail demo diligence …")
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) != signal.SIG_IGN:  # as under nohup
            signal.signal(number, signal.default_int_handler)
    try:
        if arguments.story == EVIDENCE:
            play(settings)
        else:
            diligence_demo.play(
                settings,
                arguments.companies or (),
                documents=arguments.documents,
                models=arguments.models,
                format=arguments.format,
            )
    except KeyboardInterrupt:
        stopped = "its lab is stopped, the" if arguments.story == EVIDENCE else "the"
        note(f"forktrail demo: interrupted; {stopped} broker goes on (`forktrail broker stop` ends it)")
        raise
    return ExitCode.OK
