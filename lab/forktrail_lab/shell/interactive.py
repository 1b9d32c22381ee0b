"""A shell at a terminal, from the first prompt to Ctrl-D."""

from __future__ import annotations

import io
import sys
from pathlib import Path

from forktrail_lab.shell.actions import Leave
from forktrail_lab.shell.dispatch import execute
from forktrail_lab.shell.prompt import Prompt, open_history
from forktrail_lab.shell.pulse import Pulse
from forktrail_lab.shell.session import Session

WELCOME = "Cypher, read-only, as of now. :help explains, Tab completes, Ctrl-D leaves."


def run_interactive(session: Session, history_file: Path) -> None:
    """Read and run until the user leaves.

    Raises:
        OSError: the history can't be kept.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):  # a terminal that lacks a letter is no reason to end
        sys.stdout.reconfigure(errors="replace")
    pulse = Pulse(session)
    prompt = Prompt(session, pulse, open_history(history_file))
    session.face.say(WELCOME)
    pulse.start()
    try:
        converse(session, prompt)
    finally:
        pulse.stop()


def converse(session: Session, prompt: Prompt) -> None:
    """Read and run until the user leaves."""
    while True:
        try:
            execute(session, prompt.read())
        except KeyboardInterrupt:
            continue
        except (EOFError, Leave):
            return
