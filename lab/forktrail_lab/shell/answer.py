"""Which form an answer takes on the screen, and the line under it."""

from __future__ import annotations

from collections.abc import Sequence

from forktrail_lab.console.output import printable
from forktrail_lab.shell.table import Page, table_page
from forktrail_lab.shell.values import is_entity
from forktrail_lab.shell.vertical import vertical_page
from forktrail_projectors.graph.protocol import Table

PLAN_COLUMN = "explain result"
EXPAND = ("auto", "on", "off")


def answer_page(table: Table, screen: int, expand: str = "auto") -> Page:
    """An answer as a table, as blocks of a line per value, or as the drawing that EXPLAIN makes.

    Args:
        screen: columns of the terminal.
        expand: `auto` takes blocks where rows don't fit, or where one node is all there is; `on` always, `off` never.
    """
    if table.columns == (PLAN_COLUMN,):
        return Page((), [printable(line) for row in table.rows for line in str(row[0]).splitlines()])
    if not table.rows:
        return Page((), ())
    if expand == "on" or (expand == "auto" and _is_one_entity(table.rows)):
        return vertical_page(table.columns, table.rows, screen)
    page = table_page(table.columns, table.rows, screen, force=expand == "off")
    return page or vertical_page(table.columns, table.rows, screen)


def count_line(count: int, *, more: bool = False, milliseconds: float | None = None, as_of: int | None = None) -> str:
    """How many rows there are, how long they took, and as of which offset they are."""
    parts = [f"{count:,} {'row' if count == 1 else 'rows'}{' shown, there are more' if more else ''}"]
    if milliseconds is not None:
        parts.append(f"{milliseconds:,.0f} ms" if milliseconds < 10_000 else f"{milliseconds / 1000:,.1f} s")
    if as_of is not None:
        parts.append(f"as of offset {as_of:,}")
    return f"({', '.join(parts)})"


def _is_one_entity(rows: Sequence[Sequence[object]]) -> bool:
    return len(rows) == 1 and len(rows[0]) == 1 and is_entity(rows[0][0])
