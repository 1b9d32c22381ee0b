"""An answer as a table that fits the screen, or the news that it doesn't fit."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from forktrail_lab.console.output import printable
from forktrail_lab.shell.values import is_number, value_text
from forktrail_lab.shell.widths import cut, padded, width

# No column is cut below this, and no id at all: half of one can't be copied.
WIDTH_MIN = 12
_ID = re.compile(r"[a-z]+-[0-9a-f]{12,20}")
_BETWEEN, _CROSSING, _RULE = " │ ", "─┼─", "─"

Rows = Sequence[Sequence[object]]
Cells = Sequence[Sequence[str]]


@dataclass(frozen=True)
class Page:
    """Lines to show: first those that stay on top while the others move."""

    head: tuple[str, ...]
    body: Sequence[str]

    @property
    def lines(self) -> list[str]:
        """All of them."""
        return [*self.head, *self.body]


@dataclass(frozen=True)
class Layout:
    """Columns with their widths, and which are flush right."""

    names: Sequence[str]
    widths: Sequence[int]
    right: Sequence[bool]

    def head(self) -> tuple[str, str]:
        """The columns' names, and a rule under them."""
        return self.line(self.names), _CROSSING.join(_RULE * size for size in self.widths)

    def line(self, cells: Sequence[str]) -> str:
        """One row."""
        places = zip(cells, self.widths, self.right, strict=True)
        return _BETWEEN.join(padded(cut(text, size), size, right=flush) for text, size, flush in places).rstrip()


def table_page(columns: Sequence[str], rows: Rows, screen: int, *, force: bool = False) -> Page | None:
    """Rows in aligned columns, numbers to the right, long values cut.

    Args:
        screen: columns of the terminal.
        force: cut the lines at the screen's edge rather than give up.

    Returns:
        The page, or None where the columns don't fit with the least width of each.
    """
    cells = cells_of(rows)
    layout = layout_of(columns, rows, cells, screen)
    if layout is None and not force:
        return None
    if layout is not None:
        return Page(layout.head(), [layout.line(line) for line in cells])
    names = [printable(name) for name in columns]
    layout = Layout(names, _least(names, cells), _flush(columns, rows))
    first, rule = layout.head()
    return Page((cut(first, screen), rule[:screen]), [cut(layout.line(line), screen) for line in cells])


def cells_of(rows: Rows) -> list[list[str]]:
    """The values of rows as texts."""
    return [[value_text(value) for value in row] for row in rows]


def layout_of(
    columns: Sequence[str], rows: Rows, cells: Cells, screen: int, minimum: Sequence[int] = ()
) -> Layout | None:
    """The layout that shows most of some rows, None where even the least doesn't fit.

    Args:
        minimum: widths that the first columns have at least if they fit, for rows that are still to come.
    """
    names = [printable(name) for name in columns]
    natural = _natural(names, cells)
    natural = [max(size, *minimum[place : place + 1], 0) for place, size in enumerate(natural)]
    widths = _fitted(natural, _least(names, cells), screen - len(_BETWEEN) * (len(names) - 1))
    return None if widths is None else Layout(names, widths, _flush(columns, rows))


def _flush(columns: Sequence[str], rows: Rows) -> list[bool]:
    return [_is_numeric([row[place] for row in rows]) for place in range(len(columns))]


def _is_numeric(values: Sequence[object]) -> bool:
    """Whether a column holds numbers, and nulls beside them."""
    return any(map(is_number, values)) and all(value is None or is_number(value) for value in values)


def _natural(names: Sequence[str], cells: Cells) -> list[int]:
    return [max([width(name), *(width(row[place]) for row in cells)]) for place, name in enumerate(names)]


def _least(names: Sequence[str], cells: Cells) -> list[int]:
    """The least width of each column: whole where it holds ids or is narrow anyway."""
    ids = {place for row in cells for place, text in enumerate(row) if _ID.fullmatch(text)}
    return [size if place in ids else min(size, WIDTH_MIN) for place, size in enumerate(_natural(names, cells))]


def _fitted(natural: Sequence[int], least: Sequence[int], room: int) -> list[int] | None:
    """Widths that fit: as they come, or with the widest columns cut to one size; None where the least don't fit."""
    if sum(natural) <= room:
        return list(natural)
    if sum(least) > room:
        return None
    low, high = 0, max(natural)
    while low < high:  # the greatest size that all columns can be held to
        size = (low + high + 1) // 2
        if sum(_held(natural, least, size)) <= room:
            low = size
        else:
            high = size - 1
    widths = _held(natural, least, low)
    for place, size in enumerate(natural):  # what is left is less than a column each
        if sum(widths) < room and widths[place] < size:
            widths[place] += 1
    return widths


def _held(natural: Sequence[int], least: Sequence[int], size: int) -> list[int]:
    return [max(low, min(whole, size)) for whole, low in zip(natural, least, strict=True)]
