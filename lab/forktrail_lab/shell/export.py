"""Answers as files: CSV for spreadsheets, JSON for programs; whole, or not there."""

from __future__ import annotations

import io
import os
import tempfile
from pathlib import Path

from forktrail_lab.console.output import to_json, write_csv
from forktrail_projectors.graph.protocol import Table
from forktrail_schemas.errors import InvalidInput

SUFFIXES = (".csv", ".json")


def check_file(path: Path, *, replace: bool) -> None:
    """Refuse a file that an answer can't be written to, before it is asked for.

    Raises:
        InvalidInput: another suffix, no such folder, or a file that is there already.
    """
    if path.suffix.lower() not in SUFFIXES:
        raise InvalidInput(f"{path.name} ends neither in .csv nor in .json", hint="its ending says what to write")
    if not path.parent.is_dir():
        raise InvalidInput(f"there is no folder {path.parent}", hint="make it, or name another")
    if path.exists() and not replace:
        raise InvalidInput(f"{path} is there already", hint="`:export --replace FILE` writes over it")


def write_file(table: Table, path: Path, *, replace: bool) -> None:
    """Write an answer to a file that its suffix gives the form of; half of it is never there.

    Raises:
        InvalidInput: as `check_file`, or two columns of one name in JSON.
        OSError: the folder can't be written.
    """
    check_file(path, replace=replace)
    text = csv_text(table) if path.suffix.lower() == ".csv" else json_text(table)
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as file:
            file.write(text)
        Path(temporary).chmod(0o666 & ~_umask())
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def csv_text(table: Table) -> str:
    """See `write_csv`."""
    file = io.StringIO()
    write_csv(file, table.columns, table.rows)
    return file.getvalue()


def json_text(table: Table) -> str:
    """A JSON list with an object per row.

    Raises:
        InvalidInput: two columns have the same name.
    """
    require_names(table)
    return to_json([dict(zip(table.columns, row, strict=True)) for row in table.rows], indent=2) + "\n"


def require_names(table: Table) -> None:
    """Refuse an answer whose rows can't be objects.

    Raises:
        InvalidInput: two columns have the same name.
    """
    if len(set(table.columns)) < len(table.columns):
        raise InvalidInput("two columns have the same name", hint="name them with AS")


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
