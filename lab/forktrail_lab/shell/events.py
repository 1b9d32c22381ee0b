"""`:events`: the end of a run's log with its verdicts, and what comes."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from forktrail_lab.console.event_lines import COLUMNS, EventLines, event_row
from forktrail_lab.shell.answer import count_line
from forktrail_lab.shell.asking import Answer, Cancelled, Question, ask
from forktrail_lab.shell.session import Session
from forktrail_lab.shell.table import Page
from forktrail_projectors.graph.protocol import Table

COUNT = 20
_FOLLOW_SECONDS = 0.5
_PAGE_EVENTS = 1_000
_FIELDS = "e.offset, e.occurred_at, e.type, e.actor, e.subject, e.verdict, e.reason, e.detail"
_LAST = f"MATCH (e:Event) RETURN {_FIELDS} ORDER BY e.offset DESC LIMIT $count"
_NEXT = f"MATCH (e:Event) WHERE e.offset >= $start RETURN {_FIELDS} ORDER BY e.offset LIMIT $count"


def show(session: Session, count: int) -> None:
    """Show the last so many events, the latest at the end; in a script whole, in the form of answers.

    Raises:
        ForktrailError: the graph doesn't answer.
    """
    answer = last_events(session, count)
    if not session.face.interactive or session.preferences.expand == "on":
        session.face.answer(answer)
        return
    head, *body = EventLines(session.face.size()[0]).lines(answer.table.rows)
    session.face.page(Page((head,), body))
    session.face.say(count_line(len(answer.table.rows)))


def last_events(session: Session, count: int) -> Answer:
    """The last so many events, the latest at the end."""
    answer = ask(session.source, Question(_LAST, {"count": count}, timeout_ms=session.preferences.timeout_ms))
    return Answer(_table(answer.table.rows[::-1]), answer.milliseconds)


def follow(session: Session, sleep: Callable[[float], None] = time.sleep) -> None:
    """Print the last events, and each one that comes, until Ctrl-C.

    Raises:
        ForktrailError: the graph doesn't answer.
    """
    table = last_events(session, COUNT).table
    lines = EventLines(session.face.size()[0] if session.face.interactive else None)
    session.face.lines(lines.lines(table.rows))
    next_offset = _after(table, 0)
    try:
        while True:
            sleep(_FOLLOW_SECONDS)
            question = Question(_NEXT, {"start": next_offset, "count": _PAGE_EVENTS})
            table = _table(ask(session.source, question).table.rows)
            session.face.lines(lines.lines(table.rows))
            next_offset = _after(table, next_offset)
    except (KeyboardInterrupt, Cancelled):
        session.face.interrupted()


def _after(table: Table, otherwise: int) -> int:
    offset = table.rows[-1][0] if table.rows else None
    return offset + 1 if isinstance(offset, int) else otherwise


def _table(rows: Sequence[tuple[object, ...]]) -> Table:
    return Table(COLUMNS, [event_row(*row) for row in rows])
