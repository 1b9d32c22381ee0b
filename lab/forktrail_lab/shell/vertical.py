"""An answer with a line per value, for rows that are too wide for a table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import cast

from forktrail_lab.console.output import printable
from forktrail_lab.console.records import record_lines
from forktrail_lab.shell.table import Page
from forktrail_lab.shell.values import LABEL, is_entity, value_text


def vertical_page(columns: Sequence[str], rows: Sequence[Sequence[object]], screen: int) -> Page:
    """Every row as a block of `name │ value` lines; nodes and relations with all their columns."""
    blocks = [list(_fields(columns, row)) for row in rows]
    return Page((), record_lines(blocks, screen, ":export writes them"))


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
