"""An answer as a table that fits the screen, or the news that it doesn't fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from forktrail_lab.console.columns import Cells, fitted_widths, least_widths, natural_widths
from forktrail_lab.console.output import printable
from forktrail_lab.console.widths import cut, elided, padded
from forktrail_lab.shell.values import is_number, value_text

_BETWEEN, _CROSSING, _RULE = " │ ", "─┼─", "─"

Rows = Sequence[Sequence[object]]


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
        return _BETWEEN.join(padded(elided(text, size), size, right=flush) for text, size, flush in places).rstrip()


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
    layout = Layout(names, least_widths(names, cells), _flush(columns, rows))
    first, rule = layout.head()
    return Page((cut(first, screen), rule[:screen]), [cut(layout.line(line), screen) for line in cells])


def cells_of(rows: Rows) -> list[list[str]]:
    """The values of rows as texts."""
    return [[value_text(value) for value in row] for row in rows]


def layout_of(columns: Sequence[str], rows: Rows, cells: Cells, screen: int) -> Layout | None:
    """The layout that shows most of some rows, None where even the least doesn't fit."""
    names = [printable(name) for name in columns]
    room = screen - len(_BETWEEN) * (len(names) - 1)
    widths = fitted_widths(natural_widths(names, cells), least_widths(names, cells), room)
    return None if widths is None else Layout(names, widths, _flush(columns, rows))


def _flush(columns: Sequence[str], rows: Rows) -> list[bool]:
    return [_is_numeric([row[place] for row in rows]) for place in range(len(columns))]


def _is_numeric(values: Sequence[object]) -> bool:
    """Whether a column holds numbers, and nulls beside them."""
    return any(map(is_number, values)) and all(value is None or is_number(value) for value in values)
