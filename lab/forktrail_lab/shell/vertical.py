"""An answer with a line per value, for rows that are too wide for a table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import cast

from forktrail_lab.console.output import printable
from forktrail_lab.shell.table import Page
from forktrail_lab.shell.values import LABEL, is_entity, value_text
from forktrail_lab.shell.widths import ELLIPSIS, cut, padded, width, wrapped

LINES_PER_VALUE_MAX = 20
_BAR = " │ "
_NAME_WIDTH_MAX = 40


def vertical_page(columns: Sequence[str], rows: Sequence[Sequence[object]], screen: int) -> Page:
    """Every row as a block of `name │ value` lines under its number; nodes and relations with all their columns.

    A value goes on in further lines; one of more than LINES_PER_VALUE_MAX lines is cut, and its length said.
    """
    blocks = [list(_fields(columns, row)) for row in rows]
    names = [width(name) for block in blocks for name, _ in block]
    name_width = min(max(names, default=0), _NAME_WIDTH_MAX, max(8, screen // 2))
    lines: list[str] = []
    for number, block in enumerate(blocks, 1):
        title = f"─[ {number:,} ]"
        lines.append(title + "─" * max(0, min(screen, 60) - width(title)))
        for name, text in block:
            lines += _value_lines(name, text, name_width, screen)
    return Page((), lines)


def _fields(columns: Sequence[str], row: Sequence[object]) -> Iterator[tuple[str, str]]:
    """Names and texts of a row's values; of a node or relation one for each of its columns."""
    for column, value in zip(columns, row, strict=True):
        name = printable(column)
        if not is_entity(value):
            yield name, value_text(value)
            continue
        entity = cast("Mapping[str, object]", value)
        yield name, value_text(entity)
        for key, inner in entity.items():
            if key != LABEL:
                yield f"{name}.{printable(key)}", value_text(inner)


def _value_lines(name: str, text: str, name_width: int, screen: int) -> Iterator[str]:
    room = max(10, screen - name_width - width(_BAR))
    shown = padded(cut(name, name_width), name_width)
    for number, piece in enumerate(wrapped(text, room)):
        if number == LINES_PER_VALUE_MAX:
            yield f"{' ' * name_width}{_BAR}{ELLIPSIS} ({len(text):,} characters in all; :export writes them)"
            return
        yield f"{shown}{_BAR}{piece}".rstrip()
        shown = " " * name_width
