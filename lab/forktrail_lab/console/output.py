"""How commands print: an aligned table, JSON or CSV on stdout, notes on stderr.

Whatever people or services wrote may hold control characters; in a table, and wherever else a terminal shows them, they
are escaped, so that no report can move the cursor or forge a line.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import TextIO

from forktrail_lab.console.columns import fitted_widths, least_widths, natural_widths
from forktrail_lab.console.records import record_lines
from forktrail_lab.console.widths import elided, padded

_GAP = "  "
_ENDS_A_FIELD = re.compile(r'[",\r\n]')
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

Rows = Sequence[Sequence[object]]


class Format(StrEnum):
    """What `--format` takes."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"


def note(line: str) -> None:
    """Say something beside the result, a line on stderr."""
    print(printable(line), file=sys.stderr, flush=True)


def print_rows(columns: Sequence[str], rows: Rows, format: str) -> None:
    """Print rows as a table, as a JSON list of objects, or as CSV."""
    if format == Format.JSON:
        print(to_json([dict(zip(columns, row, strict=True)) for row in rows], indent=2))
    elif format == Format.CSV:
        write_csv(sys.stdout, columns, rows)
    else:
        print_lines(table_lines(columns, rows))


def print_facts(facts: Mapping[str, object], format: str) -> None:
    """Print one thing's facts, a line each, or as a JSON object."""
    if format == Format.JSON:
        print(to_json(facts, indent=2))
    else:
        width = max(map(len, facts), default=0)
        print_lines([f"{name:<{width}}{_GAP}{cell(value)}" for name, value in facts.items()])


def print_result(line: str, facts: Mapping[str, object], format: str) -> None:
    """Print what a command did: one readable line, or the facts as a JSON object on one line."""
    print(to_json(facts) if format == Format.JSON else printable(line), flush=True)


def print_made(id: str | None, line: str, facts: Mapping[str, object], format: str) -> None:
    """Print what a command made: its id alone on stdout, for `ID=$(…)`, and a readable line on stderr; or the facts.

    Where nothing was made, stdout stays empty.
    """
    if format == Format.JSON:
        print_result(line, facts, format)
        return
    note(line)
    if id is not None:
        print(printable(id), flush=True)


def print_lines(lines: Sequence[str]) -> None:
    """Print lines; flushed, so that a pipe has them at once."""
    for line in lines:
        print(line)
    sys.stdout.flush()


def to_json(value: object, *, indent: int | None = None) -> str:
    """JSON in ASCII; values that JSON has no word for become text."""
    return json.dumps(value, indent=indent, default=str)


def table_lines(columns: Sequence[str], rows: Rows, *, minimum: Sequence[int] = (), header: bool = True) -> list[str]:
    """Rows in aligned columns, numbers to the right.

    Where stdout is a terminal, long words are cut to its width; rows that don't fit so come as a block each, with a
    line per value. Elsewhere nothing is cut.

    Args:
        minimum: the least width per column, for a table that goes on.
        header: whether the column names come first.
    """
    cells = [[cell(value) for value in row] for row in rows]
    names = [printable(name) for name in columns]
    widths = natural_widths(names, cells)
    if sys.stdout.isatty():
        screen = shutil.get_terminal_size().columns
        fitted = fitted_widths(widths, least_widths(names, cells), screen - len(_GAP) * (len(names) - 1))
        if fitted is None and cells:
            blocks = [list(zip(names, row, strict=True)) for row in cells]
            return record_lines(blocks, screen, "`--format json` has them")
        widths = fitted or widths
    widths = [max([size, *minimum[place : place + 1]]) for place, size in enumerate(widths)]
    numeric = [bool(rows) and all(_is_number(row[index]) for row in rows) for index in range(len(columns))]
    lines = [*([names] if header else []), *cells]
    return [_line(line, widths, numeric) for line in lines]


def cell(value: object) -> str:
    """A value as one line of text without control characters."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple) and all(isinstance(part, str) for part in value):
        return printable(", ".join(value))
    if isinstance(value, list | tuple | dict):
        return to_json(value)
    return printable(str(value))


def counted(number: int, noun: str) -> str:
    """A number with its noun in singular or plural: `1 test`, `2 tests`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def section_lines(title: str, facts: Sequence[tuple[str, object]]) -> list[str]:
    """A heading and facts under it, aligned; a fact without a name goes on with the one before."""
    shown = [(printable(name), cell(value)) for name, value in facts or [("none", "")]]
    width = max((len(name) for name, _ in shown), default=0)
    return [printable(title), *(f"  {name:<{width}}{_GAP}{value}".rstrip() for name, value in shown)]


def printable(text: str) -> str:
    """The text with whatever isn't printable written as an escape."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def time_text(micros: object) -> str | None:
    """Microseconds since 1970 as RFC 3339 in UTC, milliseconds shown; None where there is no time."""
    if not isinstance(micros, int):
        return None
    try:
        moment = _EPOCH + timedelta(microseconds=micros)
    except OverflowError:  # past the year 9999
        return f"{micros} us"
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def write_csv(file: TextIO, columns: Sequence[str], rows: Rows, *, header: bool = True) -> None:
    """Write RFC 4180: the names, unless told not to, then a record for each row; a list is its JSON.

    A null is an empty field and an empty text is `""`, as PostgreSQL tells them apart; in a lone column a null is an
    empty line. (Python's `csv` writes both alike.)
    """
    show = printable if file.isatty() else str
    if header:
        file.write(_record([show(name) for name in columns]))
    for row in rows:
        file.write(_record([None if value is None else show(_field(value)) for value in row]))
    file.flush()


def _record(fields: Sequence[str | None]) -> str:
    return ",".join("" if text is None else _quoted(text) for text in fields) + "\r\n"


def _quoted(text: str) -> str:
    """A text as a field: in quotes where it is empty or holds what would end the field."""
    if text and not _ENDS_A_FIELD.search(text):
        return text
    return '"' + text.replace('"', '""') + '"'


def _field(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple | dict):
        return json.dumps(value, ensure_ascii=False, default=str)
    return str(value)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _line(cells: Sequence[str], widths: Sequence[int], numeric: Sequence[bool]) -> str:
    places = zip(cells, widths, numeric, strict=True)
    return _GAP.join(padded(elided(text, size), size, right=right) for text, size, right in places).rstrip()
