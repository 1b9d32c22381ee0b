"""`:events`: the end of a run's log with its verdicts, and what comes."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence

from forktrail_lab.console.output import time_text
from forktrail_lab.shell.asking import Answer, Cancelled, Question, ask
from forktrail_lab.shell.session import Session
from forktrail_lab.shell.table import Layout, cells_of, layout_of
from forktrail_lab.shell.widths import ELLIPSIS
from forktrail_projectors.graph.protocol import Table

COLUMNS = ("offset", "time", "type", "actor", "subject", "verdict", "reason")
COUNT = 20
_FOLLOW_SECONDS = 0.5
_PAGE_EVENTS = 1_000
_DIGEST = re.compile(r"\b([0-9a-f]{12})[0-9a-f]{52}\b")
_SECONDS_END = len("2026-11-30T23:59:59")
# So that lines that come one by one stand under each other.
_WIDTHS_MIN = (6, 19, 14, 6, 14, 7, 6)
_FIELDS = "e.offset, e.occurred_at, e.type, e.actor, e.subject, e.verdict, e.reason, e.detail"
_LAST = f"MATCH (e:Event) RETURN {_FIELDS} ORDER BY e.offset DESC LIMIT $count"
_NEXT = f"MATCH (e:Event) WHERE e.offset >= $start RETURN {_FIELDS} ORDER BY e.offset LIMIT $count"


def last_events(session: Session, count: int) -> Answer:
    """The last so many events, the latest at the end."""
    answer = ask(session.source, Question(_LAST, {"count": count}, timeout_ms=session.preferences.timeout_ms))
    return Answer(_table(answer.table.rows[::-1], short=session.face.interactive), answer.milliseconds)


def follow(session: Session, sleep: Callable[[float], None] = time.sleep) -> None:
    """Print the last events, and each one that comes, until Ctrl-C.

    Raises:
        ForktrailError: the graph doesn't answer.
    """
    answer = last_events(session, COUNT)
    short = session.face.interactive
    rows = answer.table.rows
    cells, screen = cells_of(rows), session.face.size()[0]
    layout = layout_of(COLUMNS, rows, cells, screen, _WIDTHS_MIN) or Layout(
        COLUMNS, _WIDTHS_MIN, [False] * len(COLUMNS)
    )
    session.face.lines([*layout.head(), *(layout.line(line) for line in cells)])
    next_offset = _after(answer.table, 0)
    try:
        while True:
            sleep(_FOLLOW_SECONDS)
            question = Question(_NEXT, {"start": next_offset, "count": _PAGE_EVENTS})
            table = _table(ask(session.source, question).table.rows, short=short)
            session.face.lines([layout.line(line) for line in cells_of(table.rows)])
            next_offset = _after(table, next_offset)
    except (KeyboardInterrupt, Cancelled):
        session.face.interrupted()


def _after(table: Table, otherwise: int) -> int:
    offset = table.rows[-1][0] if table.rows else None
    return offset + 1 if isinstance(offset, int) else otherwise


def _table(rows: Sequence[tuple[object, ...]], *, short: bool) -> Table:
    return Table(COLUMNS, [_row(row, short) for row in rows])


def _row(row: tuple[object, ...], short: bool) -> tuple[object, ...]:
    """An event's row; a short one has times to the second and the first digits of digests, to fit a screen."""
    offset, moment, type, actor, subject, verdict, reason, detail = row
    when, kind = time_text(moment), str(type or "").rpartition(".")[2] or None
    told = f"{reason or ''}{f' ({detail})' if detail else ''}".strip() or None
    if short:
        when = None if when is None else when[:_SECONDS_END].replace("T", " ")
        subject = _DIGEST.sub(rf"\1{ELLIPSIS}", subject) if isinstance(subject, str) else subject
    return (offset, when, kind, actor, subject, verdict, told)
