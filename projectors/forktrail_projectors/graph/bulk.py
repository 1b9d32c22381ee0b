"""Writes a graph that was folded in memory into a new database file, by COPY, and proves the file against the memory.

Large tables are copied as Arrow tables, nodes first; while the engine takes one in, the next is made. Small ones go
together, in one commit. Then the file is closed, opened again, and every row in it is compared with the one in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from forktrail_projectors.graph import reads
from forktrail_projectors.graph.arrow import ArrowTable, same_rows, table_of
from forktrail_projectors.graph.cursor_table import append_cursor, last_cursor
from forktrail_projectors.graph.declared_tables import BUILT_IN, Tables, key_type
from forktrail_projectors.graph.engine import open_database
from forktrail_projectors.graph.memory import MemoryGraph
from forktrail_projectors.graph.schema import EdgeTable, NodeTable
from forktrail_projectors.graph.session import Session
from forktrail_projectors.graph.tables import create_or_check_tables, new_tables
from forktrail_projectors.graph.writes import edges_per_statement, quote, statements
from forktrail_projectors.state import Changes, NodeId, NodeKey, Row, Value
from forktrail_schemas.errors import Corruption

# A COPY takes 10 ms and a write to disk, however few its rows are.
ROWS_TO_COPY = 500
# What is copied lies in the buffer pool until a CHECKPOINT, at some 0.3 KB a row.
ROWS_PER_CHECKPOINT = 1_000_000


def build_graph(path: Path, engine: str, graph: MemoryGraph) -> None:
    """Write a graph into a new database file, with its cursor.

    If it raises, or its process is killed, the file isn't to be used: make it under a temporary name. Afterwards the
    file is whole by itself, with nothing beside it. About 2.5 s of processor time for the rows of 100,000 events.

    Args:
        path: of the file, which isn't there yet.
        graph: doesn't change meanwhile.

    Raises:
        Corruption: the file holds other rows than the memory.
        GraphError: a value can't be stored, or the engine failed.
        GraphUnavailable: the engine isn't installed, or something else lies at the path.
    """
    with _session(path, engine, read_only=False) as session:
        create_or_check_tables(session)
        _make_declared(session, graph.tables)
        _write(session, engine, graph)
    with _session(path, engine, read_only=True) as session:
        _compare(session, graph)


def events_to_copy(engine: str) -> int:
    """From how many events on folding in memory and copying takes less time than committing batch by batch."""
    return 500 if engine == "kuzu" else 5_000


@dataclass(frozen=True)
class _Nodes:
    """The rows of one node table."""

    table: NodeTable
    rows: Sequence[tuple[Value, ...]]

    keys = 1

    def copy(self) -> str:
        return f"COPY {quote(self.table.name)} FROM $rows"

    def read(self) -> str:
        return reads.all_nodes(self.table)

    def arrow(self) -> ArrowTable:
        return table_of(self.table.columns, zip(*self.rows, strict=True))

    def put_into(self, changes: Changes) -> None:
        for values in self.rows:
            row: Row = dict(zip(self.table.columns, values, strict=True))
            changes.put_new_node(self.table.name, values[0], row)  # type: ignore[arg-type]  # the key


@dataclass(frozen=True)
class _Edges:
    """The relations of one table between one pair of node tables."""

    table: EdgeTable
    pair: tuple[str, str]
    sources: Sequence[NodeId]
    targets: Sequence[NodeId]
    rows: Sequence[tuple[Value, ...]]

    keys = 2

    def copy(self) -> str:
        which = "" if len(self.table.pairs) == 1 else " (FROM='{}', TO='{}')".format(*self.pair)
        return f"COPY {quote(self.table.name)} FROM $rows{which}"

    def read(self) -> str:
        return reads.all_edges(self.table, *self.pair)

    def arrow(self) -> ArrowTable:
        columns = self.table.columns
        ends = {"from": key_type(self.pair[0]), "to": key_type(self.pair[1])}
        return table_of(
            ends | columns, (self.sources, self.targets, *(zip(*self.rows, strict=True) if columns else ()))
        )

    def put_into(self, changes: Changes) -> None:
        for source, target, values in zip(self.sources, self.targets, self.rows, strict=True):
            row = dict(zip(self.table.columns, values, strict=True))
            changes.put_edge(self.table.name, NodeKey(self.pair[0], source), NodeKey(self.pair[1], target), row)


_Part = _Nodes | _Edges


def _make_declared(session: Session, tables: Tables) -> None:
    """Make the tables of declared types, in one transaction."""
    session.run("BEGIN TRANSACTION")
    for definition in new_tables(BUILT_IN, tables):
        session.run(definition)
    session.run("COMMIT")


def _write(session: Session, engine: str, graph: MemoryGraph) -> None:
    parts = list(_parts(graph))
    small = Changes()
    for part in parts:
        if len(part.rows) < ROWS_TO_COPY:
            part.put_into(small)
    large = [part for part in parts if len(part.rows) >= ROWS_TO_COPY]
    _copy(session, [part for part in large if isinstance(part, _Nodes)])
    session.run("BEGIN TRANSACTION")
    session.write(statements(small, edges_per_statement(engine), graph.tables))
    if (cursor := graph.cursor()) is not None:
        session.write(append_cursor(1, cursor))
    session.run("COMMIT")
    _copy(session, [part for part in large if isinstance(part, _Edges)])
    session.run("CHECKPOINT")


def _copy(session: Session, parts: Sequence[_Part]) -> None:
    """Copy each part in a transaction of its own: a COPY that is rolled back with others crashes ladybug later."""
    copied = 0
    with _Ahead() as ahead:
        for part in parts:
            ahead.start(session.load, part.copy(), part.arrow())
            copied += len(part.rows)
            if copied >= ROWS_PER_CHECKPOINT:
                copied = 0
                ahead.start(session.run, "CHECKPOINT")


def _compare(session: Session, graph: MemoryGraph) -> None:
    """Hold every row of the file against the one in memory, which the kept digest was made from."""
    with _Ahead() as ahead:
        for part in _parts(graph):
            found = ahead.start(session.table, part.read())
            if not same_rows(part.arrow(), found.result(), part.keys):
                raise Corruption(f"the graph's new file doesn't hold what was written to {part.table.name}")
    if last_cursor(session)[1] != graph.cursor():
        raise Corruption("the graph's new file doesn't hold the cursor that was written")


def _parts(graph: MemoryGraph) -> Iterator[_Part]:
    """All that the graph holds."""
    for name, table in graph.tables.nodes.items():
        if rows := graph.node_values(name):
            yield _Nodes(table, rows)
    for name, joins in graph.tables.edges.items():
        for pair in joins.pairs:
            sources, targets, rows = graph.edge_values(name, pair)
            if rows:
                yield _Edges(joins, pair, sources, targets, rows)


class _Ahead:
    """A thread in which the engine works at one thing while the caller makes the next."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(max_workers=1)
        self._last: Future[Any] | None = None

    def __enter__(self) -> _Ahead:
        return self

    def start(self, call: Callable[..., Any], *arguments: object) -> Future[Any]:
        """Start a call once the one before has ended; raises what that one raised."""
        self._wait()
        self._last = self._thread.submit(call, *arguments)
        return self._last

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        self._thread.shutdown()
        if kind is None:
            self._wait()

    def _wait(self) -> None:
        if self._last is not None:
            self._last.result()


@contextmanager
def _session(path: Path, engine: str, *, read_only: bool) -> Iterator[Session]:
    database = open_database(path, engine, read_only=read_only, bulk=True)
    try:
        session = Session(database)
        try:
            yield session
        finally:
            session.close()
    finally:
        database.close()
