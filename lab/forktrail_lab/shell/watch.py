"""`:watch`: one question, asked again and again."""

from __future__ import annotations

import time
from collections.abc import Callable

from forktrail_lab.shell.answer import answer_page, count_line
from forktrail_lab.shell.asking import Cancelled, Question, ask
from forktrail_lab.shell.session import Session
from forktrail_schemas.errors import Fate, ForktrailError

SECONDS = 2.0
SECONDS_MIN = 0.1


def watch(session: Session, question: Question, seconds: float, sleep: Callable[[float], None] = time.sleep) -> None:
    """Show the answer anew every so many seconds, until Ctrl-C; a graph that doesn't answer for now is waited for.

    Raises:
        ForktrailError: the question can't be answered, now or later.
    """
    with session.face.redrawn():
        try:
            while True:
                _show(session, question, seconds)
                sleep(seconds)
        except (KeyboardInterrupt, Cancelled):
            return


def _show(session: Session, question: Question, seconds: float) -> None:
    try:
        answer = ask(session.source, question)
        standing = session.source.standing()
    except ForktrailError as error:
        if error.fate is not Fate.RETRY:
            raise
        session.face.say(f"{error.message}; trying again in {seconds:g} s")
        return
    session.last = question
    page = answer_page(answer.table, session.face.size()[0], session.preferences.expand)
    count = count_line(len(answer.table.rows), more=answer.more, milliseconds=answer.milliseconds)
    footer = f"{count} at offset {standing.next_offset:,} of {standing.end:,}, every {seconds:g} s; Ctrl-C ends"
    session.face.redraw(page, footer)
