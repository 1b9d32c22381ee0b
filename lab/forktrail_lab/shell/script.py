"""A shell without a terminal: statements from a pipe or the command line, in order, whatever becomes of each."""

from __future__ import annotations

from collections.abc import Iterable

from forktrail_lab.shell.actions import Leave
from forktrail_lab.shell.dispatch import execute
from forktrail_lab.shell.session import Session
from forktrail_lab.shell.statements import ScriptReader


def run_script(session: Session, lines: Iterable[str]) -> bool:
    """Run the statements and commands of a script as their lines come; returns whether none failed.

    One that fails doesn't keep those after it from running.
    """
    reader = ScriptReader()
    sound = True
    try:
        for line in lines:
            for piece in reader.feed(line):
                sound &= execute(session, piece)
        for piece in reader.rest():
            sound &= execute(session, piece)
    except Leave:
        pass
    return sound
