"""A graph's file as it stands, whichever version made it: what tables, columns and cursor are found in it, read-only.

`CypherGraph` knows one set of tables and refuses every other; this asks the database which it has.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from forktrail_projectors.graph.engine import Database, database_files, open_database
from forktrail_projectors.graph.schema import CURSOR_TABLE
from forktrail_projectors.graph.session import Session
from forktrail_projectors.graph.writes import quote
from forktrail_projectors.state import EdgeKey, NodeKey, Row
from forktrail_schemas.errors import GraphUnavailable


@dataclass(frozen=True)
class StoredCursor:
    """How far a stored graph has come; what every version's cursor tells."""

    topic_id: str
    next_offset: int
    fold_version: int


class StoredGraph:
    """One open file; close it. Nothing in it changes, nor beside it."""

    def __init__(self, database: Database, copy: TemporaryDirectory[str] | None = None) -> None:
        """Take over an open database, and the folder that it lies in where it is a copy; use `open`."""
        self._database = database
        self._copy = copy
        self._session = Session(database)

    @classmethod
    def open(cls, path: Path, engine: str) -> StoredGraph:
        """Open a graph's file as it stands.

        Where its write-ahead log makes tables, which the engine replays only into a file that it may write to, a copy
        in the system's temporary folder is opened.

        Raises:
            GraphBusy: it is open already, here or in another process.
            GraphUnavailable: it isn't there or is damaged, or the engine isn't installed.
        """
        try:
            return cls(open_database(path, engine, read_only=True))
        except GraphUnavailable:
            files = database_files(path)
            if path not in files or len(files) == 1:
                raise
        copy = TemporaryDirectory(prefix="forktrail-")
        try:
            for file in files:
                shutil.copy(file, copy.name)
            return cls(open_database(Path(copy.name) / path.name, engine), copy)
        except BaseException:
            copy.cleanup()
            raise

    def cursor(self) -> StoredCursor:
        """Where the graph stands.

        Raises:
            GraphUnavailable: nothing was folded into it, or it is no graph of a run.
        """
        names = StoredCursor.__dataclass_fields__
        if CURSOR_TABLE not in self._tables("NODE") or not names.keys() <= set(self._columns(CURSOR_TABLE)):
            raise GraphUnavailable("the file holds no graph of a run", hint="rebuild the graph from its log")
        fields = ", ".join(f"c.{name}" for name in names)
        rows = self._session.run(f"MATCH (c:{CURSOR_TABLE}) RETURN {fields} ORDER BY c.number DESC LIMIT 1")
        if not rows:
            raise GraphUnavailable("nothing was folded into the graph yet", hint="fold the run into it first")
        return StoredCursor(*rows[0])

    def rows(self) -> Iterator[tuple[NodeKey | EdgeKey, Row]]:
        """Every node, then every relation, with all columns that its table has; the cursor is not among them."""
        for table in self._tables("NODE"):
            if table != CURSOR_TABLE:
                yield from self._nodes(table)
        for table in self._tables("REL"):
            for source, target, source_key, target_key in self._session.run(_connection(table)):
                yield from self._edges(table, (source, source_key), (target, target_key))

    def close(self) -> None:
        """Release the file.

        Raises:
            GraphError: the engine failed; the file is released.
        """
        self._session.close()
        try:
            self._database.close()
        finally:
            if self._copy is not None:
                self._copy.cleanup()

    def _nodes(self, table: str) -> Iterator[tuple[NodeKey, Row]]:
        columns = self._columns(table)
        ((key,),) = self._session.run(f"CALL table_info('{table}') WHERE `primary key` RETURN name")
        fields = ", ".join(f"n.{quote(name)}" for name in columns)
        for values in self._session.stream(f"MATCH (n:{quote(table)}) RETURN {fields}"):
            row = _row(columns, values)
            yield NodeKey(table, row[key]), row  # type: ignore[arg-type]  # a key is never null

    def _edges(self, table: str, source: tuple[str, str], target: tuple[str, str]) -> Iterator[tuple[EdgeKey, Row]]:
        columns = self._columns(table)
        fields = "".join(f", e.{quote(name)}" for name in columns)
        ends = f"a.{quote(source[1])}, b.{quote(target[1])}"
        match = f"MATCH (a:{quote(source[0])})-[e:{quote(table)}]->(b:{quote(target[0])})"
        for one, other, *values in self._session.stream(f"{match} RETURN {ends}{fields}"):
            yield EdgeKey(table, NodeKey(source[0], one), NodeKey(target[0], other)), _row(columns, values)

    def _tables(self, kind: str) -> list[str]:
        """The names of the tables of a kind, sorted."""
        found = self._session.run("CALL show_tables() RETURN name, type")
        return sorted(name for name, its_kind in found if its_kind == kind)

    def _columns(self, table: str) -> list[str]:
        """The columns of a table, in order."""
        return [name for (name,) in self._session.run(f"CALL table_info('{table}') RETURN name")]


def _connection(table: str) -> str:
    return (
        f"CALL show_connection('{table}') RETURN `source table name`, `destination table name`,"
        " `source table primary key`, `destination table primary key`"
    )


def _row(columns: list[str], values: list[Any]) -> Row:
    plain = (tuple(value) if isinstance(value, list) else value for value in values)
    return dict(zip(columns, plain, strict=True))
