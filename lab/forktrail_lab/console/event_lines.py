"""Events of a log as lines that stand under each other, however many still come, and fit the screen."""

from __future__ import annotations

import re
from collections.abc import Sequence

from forktrail_lab.console.output import cell, table_lines, time_text
from forktrail_lab.console.widths import ELLIPSIS, elided, padded, width, wrapped

COLUMNS = ("offset", "time", "type", "actor", "subject", "verdict", "reason")
# On a screen the day has a line of its own, and so has a reason that doesn't fit beside its verdict.
_SCREEN_COLUMNS = ("offset", "time", "type", "actor", "subject", "verdict")
_GAP = "  "
_OFFSET, _TIME = 6, len("23:59:59")
_INDENT = " " * (_OFFSET + _TIME + 2 * len(_GAP))
_REASON_WIDTH_MIN = 20
# With no screen: so that a table that goes on stays aligned.
_WHOLE_WIDTHS = (6, 24, 18, 12, 24, 10)
# What the other columns have at least, and how much of any further room: first come, first served.
_LEAST = {"type": 10, "actor": 8, "subject": 10, "verdict": 10}
_MOST = {"type": 19, "subject": 14, "actor": 12}
_MORE = {"subject": 28, "actor": 20}
_DIGEST = re.compile(r"\b([0-9a-f]{12})[0-9a-f]{52}\b")
_DAY_END, _SECONDS_END = len("2026-11-30"), len("2026-11-30T23:59:59")

EventRow = tuple[object, ...]


def event_row(
    offset: object, occurred_at: object, type: object, actor: object, subject: object, verdict: object,
    reason: object, detail: object,
) -> EventRow:  # fmt: skip
    """An event's values under COLUMNS: its time in words, its type without namespace, its reason with the detail."""
    told = f"{reason or ''}{f' ({detail})' if detail else ''}".strip() or None
    kind = str(type or "").rpartition(".")[2] or None
    return (offset, time_text(occurred_at), kind, actor, subject, verdict, told)


class EventLines:
    """Lines under the columns' names, for a screen of so many columns; of fewer than 62 they take more."""

    def __init__(self, screen: int | None) -> None:
        """Lay the columns out for good; None is no screen, where nothing is cut but digests."""
        self._screen = screen
        self._widths = _widths(screen or 0)
        self._begun = False
        self._day: str | None = None

    def lines(self, rows: Sequence[EventRow]) -> list[str]:
        """A line for each row, the names before the first; on a screen, one for each day that begins (in UTC)."""
        header, self._begun = not self._begun, True
        shown = [_short_digest(row) for row in rows]
        if self._screen is None:
            plain = [(*row[:-1], row[-1] or "") for row in shown]
            return table_lines(COLUMNS, plain, minimum=_WHOLE_WIDTHS, header=header)
        found = [self._line(_SCREEN_COLUMNS)] if header else []
        for row in shown:
            offset, time, kind, actor, subject, verdict, told = map(cell, row)
            if row[1] is not None and time[:_DAY_END] != self._day:
                self._day = time[:_DAY_END]
                found.append(f"{'':<{_OFFSET}}{_GAP}{self._day} (UTC)")
            clock = time[_DAY_END + 1 : _SECONDS_END] or time
            why = verdict if row[-1] is None else f"{verdict}: {told}"
            fits = width(why) <= self._widths[-1]
            found.append(self._line((offset, clock, kind, actor, subject, why if fits else verdict)))
            if not fits:
                found += [
                    _INDENT + piece for piece in wrapped(told, max(_REASON_WIDTH_MIN, self._screen - len(_INDENT)))
                ]
        return found

    def _line(self, cells: Sequence[str]) -> str:
        places = enumerate(zip(cells, self._widths, strict=True))
        return _GAP.join(padded(elided(text, size), size, right=place == 0) for place, (text, size) in places).rstrip()


def _widths(screen: int) -> tuple[int, ...]:
    sizes = dict(_LEAST)
    room = screen - _OFFSET - _TIME - sum(sizes.values()) - len(_GAP) * (len(_SCREEN_COLUMNS) - 1)
    for wanted in (_MOST, _MORE):
        for name, most in wanted.items():
            taken = max(0, min(room, most - sizes[name]))
            sizes[name] += taken
            room -= taken
    return (_OFFSET, _TIME, sizes["type"], sizes["actor"], sizes["subject"], sizes["verdict"] + max(0, room))


def _short_digest(row: EventRow) -> EventRow:
    """The row with the first digits of a digest that it is about."""
    place = COLUMNS.index("subject")
    subject = row[place]
    if not isinstance(subject, str):
        return row
    return (*row[:place], _DIGEST.sub(rf"\1{ELLIPSIS}", subject), *row[place + 1 :])
