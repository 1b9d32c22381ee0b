"""The graph in an embedded database, ladybug or kuzu: rows by key, one transaction a commit, and read-only Cypher."""

from __future__ import annotations

import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, ClassVar

from forktrail_projectors.graph import reads
from forktrail_projectors.graph.checks import check_rows, edge_table, node_table
from forktrail_projectors.graph.cursor_table import append_cursor, last_cursor
from forktrail_projectors.graph.declared_tables import Tables
from forktrail_projectors.graph.engine import (
    BUFFER_POOL_BYTES,
    DEFAULT_ENGINE,
    LOG_BYTES_REPLAYED_MAX,
    Database,
    open_database,
)
from forktrail_projectors.graph.parameters import check_values
from forktrail_projectors.graph.protocol import Cursor, Table
from forktrail_projectors.graph.readonly import check_read_only
from forktrail_projectors.graph.schema import NodeTable
from forktrail_projectors.graph.session import Session, Sessions
from forktrail_projectors.graph.tables import create_or_check_tables, new_tables
from forktrail_projectors.graph.writes import ROWS_PER_STATEMENT, changed_columns, edges_per_statement, statements
from forktrail_projectors.state import Changes, EdgeKey, EdgesKey, End, NodeId, NodeKey, Row, Value, edge_order
from forktrail_schemas.errors import GraphBusy, GraphError, GraphUnavailable

# Until a CHECKPOINT the engine keeps the old versions of updated columns, up to 20 KiB for each (commit, column, block
# of 2,048 rows); they fill the buffer pool and are in no log size. About 80 MiB at this count.
OLD_VERSIONS_MAX = 4_096
# Rows written after opening until statements are planned anew; doubled each time.
ROWS_BEFORE_REPLANNING = 500
# From so many nodes on, one statement finds the relations of all faster than one for each.
KEYS_AT_ONCE_MIN = 16
# A commit's updates of one column are taken to touch at most so many blocks.
BLOCKS_PER_COLUMN = 16

Running = Callable[[Callable[[], None]], AbstractContextManager[object]]


def _alone(interrupt: Callable[[], None]) -> AbstractContextManager[object]:
    """What `query` enters where nobody means to end it."""
    return nullcontext()


class CypherGraph:
    """Implements `Graph` and `Queryable` on one open database.

    `commit`, `nodes`, `edges` and `checkpoint` take turns. `query` and `rows` may run in other threads meanwhile; each
    sees the graph as of one commit.

    A commit that raises leaves the graph as it was. On ladybug it stays usable, unless the engine failed in COMMIT
    itself; then, and always on kuzu, whose next update after a rollback may fail, every further call says that it must
    be closed and opened again. An in-memory graph is lost by that.
    """

    prefetch_pays: ClassVar = True

    def __init__(self, database: Database) -> None:
        """Take over an open database; use `open` or `in_memory`."""
        self._database = database
        self._lock = threading.RLock()
        self._session = Session(database)
        self._readers = Sessions(database)
        self._unusable = ""
        self._old_versions = 0
        self._rows_written, self._replan_at = 0, ROWS_BEFORE_REPLANNING
        self.tables: Tables = create_or_check_tables(self._session)
        self._commits, self._cursor = last_cursor(self._session)

    @classmethod
    def open(
        cls,
        path: Path,
        engine: str = DEFAULT_ENGINE,
        read_only: bool = False,
        buffer_pool_bytes: int = BUFFER_POOL_BYTES,
    ) -> CypherGraph:
        """Open a graph's file, or make it with all tables.

        Args:
            read_only: refuse commits. Beside a process that writes, ladybug shows the graph as it was at this moment.
            buffer_pool_bytes: the most memory that cached pages, changes and queries may take together.

        Raises:
            GraphBusy: it is open already, here or in another process.
            GraphUnavailable: the engine isn't installed, the file is damaged, or its tables are of another version.
        """
        database = open_database(path, engine, read_only=read_only, buffer_pool_bytes=buffer_pool_bytes)
        return cls._opened(database)

    @classmethod
    def in_memory(cls, engine: str = DEFAULT_ENGINE, buffer_pool_bytes: int = BUFFER_POOL_BYTES) -> CypherGraph:
        """Make an empty graph that lies in the buffer pool and ends with `close`.

        For tests and short lives: the engine never frees the old versions of what is changed in it. 512 MiB are full
        after about 15,000 commits that each change three columns.

        Raises:
            GraphUnavailable: the engine isn't installed.
        """
        return cls._opened(open_database(None, engine, buffer_pool_bytes=buffer_pool_bytes))

    @classmethod
    def _opened(cls, database: Database) -> CypherGraph:
        try:
            graph = cls(database)
            if not database.read_only and (database.log_bytes() or 0) > LOG_BYTES_REPLAYED_MAX:
                graph.checkpoint()
            return graph
        except BaseException as error:
            database.close()
            if isinstance(error, GraphError) and not isinstance(error, GraphUnavailable):
                raise GraphUnavailable(error.message, hint="rebuild the graph from its log") from error
            raise

    def cursor(self) -> Cursor | None:
        """Where the graph stands; None before the first commit."""
        self._refuse_if_unusable()
        return self._cursor

    def node(self, table: str, id: NodeId) -> Row | None:
        """The whole row of a node, or None where there is none."""
        key = NodeKey(table, id)
        return self.nodes((key,)).get(key)

    def nodes(self, keys: Collection[NodeKey]) -> dict[NodeKey, Row]:
        """Whole rows of the nodes that exist: one lookup by primary key for each table asked for."""
        tables: defaultdict[str, dict[NodeId, None]] = defaultdict(dict)
        for name, id in keys:
            tables[name][id] = None
        found: dict[NodeKey, Row] = {}
        with self._lock:
            self._refuse_if_unusable()
            for name, ids in tables.items():
                table = node_table(self.tables, name)
                for values in self._select_nodes(table, list(ids)):
                    found[NodeKey(name, values[0])] = reads.row(table, values)
        return found

    def edges(self, keys: Collection[EdgesKey]) -> dict[EdgesKey, tuple[EdgeKey, ...]]:
        """The relations at each node's given end, sorted: 0.1 ms a key, or 0.7 ms and 6 us a key for many of a kind.

        That holds at 100,000 relations as at a thousand, on ladybug; kuzu takes ten times as long.
        """
        kinds: defaultdict[tuple[str, End, str], list[NodeId]] = defaultdict(list)
        found: dict[EdgesKey, list[EdgeKey]] = {}
        for key in keys:
            if key not in found:
                found[key] = []
                kinds[edge_table(self.tables, key.table).name, key.end, key.node.table].append(key.node.id)
        with self._lock:
            self._refuse_if_unusable()
            for (table, end, node_table), ids in kinds.items():
                for id, other in self._select_edges(table, end, node_table, ids):
                    node = NodeKey(node_table, id)
                    edge = EdgeKey(table, node, other) if end == "source" else EdgeKey(table, other, node)
                    found[EdgesKey(table, end, node)].append(edge)
        return {key: tuple(sorted(edges, key=edge_order)) for key, edges in found.items()}

    def edge(self, key: EdgeKey) -> Row | None:
        """The row of a relation, or None where there is none."""
        table, pair = edge_table(self.tables, key.table), (key.source.table, key.target.table)
        if pair not in table.pairs:
            return None
        with self._lock:
            self._refuse_if_unusable()
            statement = reads.select_edge(table, *pair)
            found = self._session.run(statement, {"source": key.source.id, "target": key.target.id})
        return reads.row(table, found[0] if table.columns else ()) if found else None

    def commit(self, changes: Changes, cursor: Cursor) -> None:
        """Write the changes and the cursor in one transaction.

        Raises:
            GraphError: nothing was written: a row breaks its table, a new node or relation exists, a changed node or an
                end doesn't, the graph is read-only, its disk is full (GraphDiskFull), or the engine failed.
        """
        with self._lock:
            self._refuse_if_unusable()
            if self._database.read_only:
                raise GraphError("the graph was opened read-only", hint="open it for writing")
            tables = self._tables_after(changes)
            check_rows(changes, tables)
            self._database.require_room()
            old_versions = _old_versions(changes)
            if self._old_versions + old_versions > OLD_VERSIONS_MAX:
                self.checkpoint()
            number = self._commits + 1
            self._session.run("BEGIN TRANSACTION")
            try:
                self._write(changes, cursor, number, tables)
            except BaseException:
                self._roll_back()
                raise
            self._end()
            self._commits, self._cursor, self.tables = number, cursor, tables
            self._old_versions += old_versions
            self._written(len(changes))

    def checkpoint(self) -> None:
        """Run the engine's CHECKPOINT: the write-ahead log goes into the file, old versions leave memory.

        Commits and `close` do it when it is due; a daemon may call it when idle.

        Raises:
            GraphBusy: kuzu waited in vain for a query to end.
            GraphError: the engine failed; the graph must be closed and opened again.
        """
        with self._lock:
            self._refuse_if_unusable()
            try:
                self._session.run("CHECKPOINT")
            except GraphError as error:
                if error.message.startswith("Timeout waiting for active transactions"):
                    raise GraphBusy(error.message, hint="wait until the query ends") from error
                self._unusable = f"CHECKPOINT failed: {error.message}"
                raise
            self._old_versions = 0

    def log_bytes(self) -> int:
        """The size of the write-ahead log, which a kill leaves to be replayed by the next opening."""
        return self._database.log_bytes() or 0

    def rows(self) -> Iterator[tuple[NodeKey | EdgeKey, Row]]:
        """Every node, then every relation, with whole rows, as of the commit before the first is taken."""
        self._refuse_if_unusable()
        with self._readers.one() as session:
            tables = self.tables
            for table in tables.nodes.values():
                for values in session.stream(reads.all_nodes(table)):
                    yield NodeKey(table.name, values[0]), reads.row(table, values)
            for name, joins in tables.edges.items():
                for pair in joins.pairs:
                    for source, target, *values in session.stream(reads.all_edges(joins, *pair)):
                        edge = EdgeKey(name, NodeKey(pair[0], source), NodeKey(pair[1], target))
                        yield edge, reads.row(joins, values)

    def query(
        self,
        cypher: str,
        parameters: Mapping[str, Value] | None = None,
        *,
        timeout_ms: int | None = None,
        running: Running = _alone,
    ) -> Table:
        """Run one read-only statement.

        The engine refuses writes, since the statement runs in a read-only transaction; `readonly.py` refuses the rest.
        Values are fit for JSON (see `reads.plain`). An unbounded `*` in a pattern ends at 30 hops without a word.

        Args:
            parameters: a value for every `$name`.
            timeout_ms: the most milliseconds that the engine may take; None sets no limit.
            running: entered around the statement with what another thread may call meanwhile to end it; it may take
                several calls, until the query fails with code `query_timeout`.

        Raises:
            InvalidInput: the statement doesn't parse, writes, touches files or settings, or is more than one; or it is
                given a value that the engine doesn't take.
            GraphError: the engine failed, or the time ran out (code `query_timeout`).
        """
        self._refuse_if_unusable()
        given = parameters or {}
        check_values(cypher, given)
        check_read_only(cypher, given)
        with self._readers.one() as session, running(session.interrupt):
            return session.answer(cypher, given, timeout_ms, self.tables)

    def close(self) -> None:
        """Release the file; further calls fail, closing twice is fine.

        Runs CHECKPOINT if the write-ahead log is long or the file new; a short log stays beside the file and is part of
        the graph. Call `checkpoint` first where the file alone is to be copied.

        Raises:
            GraphHung: a query runs on, though it was interrupted; the file isn't released.
            GraphError: the engine failed; the file is released.
        """
        with self._lock:
            self._unusable = "the graph is closed"
            self._readers.close()
            self._session.close()
            self._database.close()

    def _select_nodes(self, table: NodeTable, ids: list[NodeId]) -> Iterator[list[Any]]:
        """The columns of the nodes that exist, the key first."""
        if len(ids) == 1:
            yield from self._session.run(reads.select_node(table), {"key": ids[0]})
            return
        for start in range(0, len(ids), ROWS_PER_STATEMENT):
            yield from self._session.run(reads.select_nodes(table), {"keys": ids[start : start + ROWS_PER_STATEMENT]})

    def _select_edges(
        self, table: str, end: End, node_table: str, ids: list[NodeId]
    ) -> Iterator[tuple[NodeId, NodeKey]]:
        """The nodes' ids, each with a node that a relation joins it to."""
        asked: list[tuple[str, dict[str, Any]]]
        pairs = self.tables.edges[table].pairs
        if len(ids) < KEYS_AT_ONCE_MIN:
            of_one = reads.select_edges(table, pairs, end, node_table)
            asked = [(one, {"key": id}) for one in of_one for id in ids]
        else:
            chunks = [ids[start : start + ROWS_PER_STATEMENT] for start in range(0, len(ids), ROWS_PER_STATEMENT)]
            of_many = reads.select_edges_of_many(table, pairs, end, node_table)
            asked = [(many, {"keys": chunk}) for many in of_many for chunk in chunks]
        for statement, parameters in asked:
            for id, other_table, other in self._session.run(statement, parameters):
                if other is not None:
                    yield id, NodeKey(other_table, other)

    def _tables_after(self, changes: Changes) -> Tables:
        """The tables that there are once the changes are written."""
        types = changes.created.get("Type")
        return self.tables.with_types(types.values()) if types else self.tables

    def _write(self, changes: Changes, cursor: Cursor, number: int, tables: Tables) -> None:
        if tables is not self.tables:
            for definition in new_tables(self.tables, tables):
                self._session.run(definition)
        self._session.write(statements(changes, edges_per_statement(self._database.engine), tables))
        self._session.write(append_cursor(number, cursor))

    def _roll_back(self) -> None:
        try:
            self._session.roll_back()
        except GraphError as error:
            self._unusable = f"a rollback failed: {error.message}"
        if self._database.engine == "kuzu":
            self._unusable = "a commit failed"

    def _end(self) -> None:
        try:
            self._session.run("COMMIT")
        except BaseException as error:
            # Whether it is in the log is known only to the next one who opens it.
            self._unusable = f"COMMIT failed: {error}"
            raise

    def _written(self, rows: int) -> None:
        """A plan made for small tables scans where one for large tables looks up, so plans end as the graph grows."""
        self._rows_written += rows
        if self._rows_written >= self._replan_at:
            self._replan_at *= 2
            self._session.close()
            self._readers.renew()
        self._session.tidy()

    def _refuse_if_unusable(self) -> None:
        if self._unusable:
            raise GraphUnavailable(self._unusable, hint="close the graph and open it again")


def _old_versions(changes: Changes) -> int:
    """Roughly how many column blocks get another version by these changes; new rows have no old one."""
    rows: Counter[tuple[str, str]] = Counter()
    for table, changed in changes.changed.items():
        for change in changed.values():
            rows.update((table, name) for name in changed_columns(change))
    return sum(min(count, BLOCKS_PER_COLUMN) for count in rows.values())
