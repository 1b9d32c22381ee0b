"""Recorded logs, and what each fold version made of them; `tests/histories/README.md` tells the format of the files."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict, cast

from forktrail_projectors.record import LogRecord
from forktrail_projectors.state import EdgeKey, NodeKey, Row, Value

FOLDER = Path(__file__).parents[1] / "histories"
FORMAT = "forktrail.history/1"
LOG_SUFFIX, ROWS_INFIX, FOLDS_SUFFIX = ".log.jsonl", ".rows.", ".folds.json"

Rows = dict[NodeKey | EdgeKey, Row]
Json = Any  # what a line of JSON holds


class ChangedRows(TypedDict):
    """Rows that a fold version makes otherwise than the one before it: one kind of difference in one table."""

    table: str
    kind: str
    columns: list[str]
    rows: list[str]


class Fold(TypedDict):
    """What a fold version makes of a log.

    `verdicts` counts them by kind; `changed` is empty for the first version. Version 1 had no content digest.
    """

    fold_version: int
    log_sha256: str
    state_digest: str
    content_digest: str | None
    verdicts: dict[str, int]
    changed: list[ChangedRows]


@dataclass(frozen=True)
class History:
    """A recorded log, by name; its files lie side by side."""

    name: str
    folder: Path = FOLDER

    @property
    def log_file(self) -> Path:
        """The records; never changed once they are recorded."""
        return self.folder / (self.name + LOG_SUFFIX)

    @property
    def folds_file(self) -> Path:
        """What each fold version makes of the log, digests and all, the last one at the end."""
        return self.folder / (self.name + FOLDS_SUFFIX)

    def rows_file(self, fold_version: int) -> Path:
        """The rows that a fold version makes of the log."""
        return self.folder / f"{self.name}{ROWS_INFIX}{fold_version}.jsonl"

    def records(self) -> list[LogRecord]:
        """The log.

        Raises:
            ValueError: its first line says another format.
        """
        head, *lines = self.log_file.read_text(encoding="utf-8").splitlines()
        if json.loads(head)["format"] != FORMAT:
            raise ValueError(f"{self.log_file.name} is not of format {FORMAT}")
        return [_record(json.loads(line)) for line in lines]

    def log_sha256(self) -> str:
        """Of the log's file; it never changes."""
        return hashlib.sha256(self.log_file.read_bytes()).hexdigest()

    def rows(self, fold_version: int) -> Rows:
        """The recorded rows of a fold version, columns that are null left out."""
        lines = self.rows_file(fold_version).read_text(encoding="utf-8").splitlines()
        return dict(_key_and_row(json.loads(line)) for line in lines)

    def folds(self) -> list[Fold]:
        """What each fold version makes of the log, oldest first; empty where none is recorded."""
        if not self.folds_file.exists():
            return []
        return cast("list[Fold]", json.loads(self.folds_file.read_text(encoding="utf-8")))

    def write_log(self, about: str, records: Sequence[LogRecord]) -> None:
        """Record the log, once and for all.

        Raises:
            FileExistsError: it is recorded.
        """
        head = {"format": FORMAT, "name": self.name, "about": about}
        lines = [_line(head), *(_line(_record_fields(record)) for record in records)]
        with self.log_file.open("x", encoding="utf-8") as file:
            file.write("".join(lines))

    def write_fold(self, rows: Rows, folds: Sequence[Fold]) -> None:
        """Record the rows of the last of the folds, and what there is to tell of all."""
        lines = sorted(_line(_row_fields(key, row)) for key, row in without_nulls(rows).items())
        self.rows_file(folds[-1]["fold_version"]).write_text("".join(lines), encoding="utf-8")
        self.folds_file.write_text(json.dumps(folds, indent=2) + "\n", encoding="utf-8")


def all_histories(folder: Path = FOLDER) -> list[History]:
    """Every recorded log, by name."""
    return [History(name.removesuffix(LOG_SUFFIX), folder) for name in sorted(path.name for path in _logs(folder))]


def without_nulls(rows: Rows) -> Rows:
    """The same rows without the columns that are null, as they are recorded: a new column that is null changes none."""
    return {key: {name: value for name, value in row.items() if value is not None} for key, row in rows.items()}


def _logs(folder: Path) -> Iterator[Path]:
    return folder.glob("*" + LOG_SUFFIX)


def _line(fields: Json) -> str:
    return json.dumps(fields, separators=(",", ":")) + "\n"


def _record_fields(record: LogRecord) -> Json:
    return {
        "offset": record.offset,
        "timestamp_ms": record.timestamp_ms,
        "key": _text_or_base64(record.key),
        "headers": [[name, _text_or_base64(value)] for name, value in record.headers],
        "value": None if record.value is None else base64.b64encode(record.value).decode(),
    }


def _record(fields: Json) -> LogRecord:
    return LogRecord(
        offset=fields["offset"],
        timestamp_ms=fields["timestamp_ms"],
        key=_bytes(fields["key"]),
        value=None if fields["value"] is None else base64.b64decode(fields["value"]),
        headers=tuple((name, _bytes(value)) for name, value in fields["headers"]),
    )


def _text_or_base64(data: bytes | None) -> Json:
    """Bytes that are UTF-8 as text, for whoever reads the file; others as an object that says so."""
    if data is None:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode()}


def _bytes(field: Json) -> bytes | None:
    if isinstance(field, dict):
        return base64.b64decode(field["base64"])
    return None if field is None else str(field).encode()


def _row_fields(key: NodeKey | EdgeKey, row: Row) -> Json:
    if isinstance(key, NodeKey):
        return {"node": list(key), "row": dict(row)}
    return {"relation": [key.table, *key.source, *key.target], "row": dict(row)}


def _key_and_row(fields: Json) -> tuple[NodeKey | EdgeKey, Row]:
    row: dict[str, Value] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in fields["row"].items()
    }
    if "node" in fields:
        return NodeKey(*fields["node"]), row
    table, source_table, source, target_table, target = fields["relation"]
    return EdgeKey(table, NodeKey(source_table, source), NodeKey(target_table, target)), row
