"""Sessions of an open database: statements in, values out, the engine's failures as this project's errors."""

from __future__ import annotations

import re
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from forktrail_projectors.graph.arrow import ArrowTable
from forktrail_projectors.graph.declared_tables import BUILT_IN, Tables
from forktrail_projectors.graph.engine import Connection, Database, Plan, Result, engine_message
from forktrail_projectors.graph.protocol import Table
from forktrail_projectors.graph.reads import plain
from forktrail_projectors.graph.writes import Statement
from forktrail_projectors.state import Value
from forktrail_schemas.errors import GraphError, GraphHung, InvalidInput

# A plan takes 15 to 70 KiB; the engine keeps one for each text and mix of parameter types.
PLANS_MAX = 500
ROWS_PER_FETCH = 1_000
_WIDTHS = (7, 8, 15, 16, 31, 32, 64)
ROWS_PER_ARROW_CHUNK = 1 << 16

# A query that isn't over so long after its time keeps whoever waits for it no longer: while the engine plans, and in
# some of its operators, it looks neither at the time nor at whether it was interrupted.
GRACE_SECONDS = 0.25
# How long a close waits for queries that it interrupts.
END_SECONDS = 0.5
_LOOK_SECONDS = 0.02

# How the engine's messages begin where the statement isn't to blame.
_ENGINE_FAULTS = (
    "Buffer manager exception",
    "IO exception",
    "Storage exception",
    "Checkpoint exception",
    "Transaction manager exception",
    "Internal exception",
    "Assertion failed",
    "std::bad_alloc",
    "bad allocation",
)
# What it makes of an empty list as a parameter, where nothing else says what the list is of.
_UNTYPED_LIST = "create a vector with ANY type"


class Session:
    """One session of a database, with at most one transaction; not for two threads at once.

    Attributes:
        outdated: its plans are; it isn't to be used again.
        busy: the engine is at work on a statement of it.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._connection: Connection | None = None
        self._plans: dict[tuple[object, ...], Plan] = {}
        self._texts: set[str] = set()
        self.outdated = False
        self.busy = False
        self._interrupted = False

    def run(self, cypher: str, parameters: Mapping[str, Any] | None = None) -> list[list[Any]]:
        """Run one statement of ours and fetch its whole answer.

        Raises:
            GraphError: with the engine's message.
        """
        with self._result(lambda: self._plan(cypher, parameters) if parameters else cypher, parameters) as result:
            return result.get_all()

    def load(self, cypher: str, rows: ArrowTable) -> list[list[Any]]:
        """Run one statement of ours that takes rows FROM $rows, and fetch its whole answer.

        Raises:
            GraphError: with the engine's message.
        """
        given = {"rows": rows}
        # The plan is made for these rows alone, so it isn't kept.
        with self._result(lambda: self._prepared(cypher, given), given) as result:
            return result.get_all()

    def write(self, statements: Iterable[Statement]) -> None:
        """Run statements of a commit, in the transaction that is open, as long as each does what it is expected to.

        Raises:
            GraphError: one didn't, or the engine failed.
        """
        for statement in statements:
            if statement.rows is not None:
                answer = self.load(statement.cypher, statement.rows)
            else:
                answer = self.run(statement.cypher, statement.parameters)
            if statement.expected is not None and answer[0][0] != statement.expected:
                raise GraphError(statement.complaint)

    def table(self, cypher: str) -> ArrowTable:
        """Run one statement of ours and fetch its whole answer as a table.

        Raises:
            GraphError: with the engine's message.
        """
        with self._result(lambda: cypher) as result:
            return result.get_as_arrow(ROWS_PER_ARROW_CHUNK)

    def stream(self, cypher: str) -> Iterator[list[Any]]:
        """Run one statement of ours and fetch its answer piece by piece.

        Raises:
            GraphError: with the engine's message.
        """
        with self._result(lambda: cypher) as result:
            while result.has_next():
                yield from result.get_n(ROWS_PER_FETCH)

    def answer(
        self, cypher: str, parameters: Mapping[str, Value], timeout_ms: int | None, tables: Tables = BUILT_IN
    ) -> Table:
        """Run one statement of a user's; the transaction around it decides what it may do.

        Args:
            tables: the graph's, by which nodes and relations in the answer are told.

        Raises:
            InvalidInput: the engine blames the statement.
            GraphError: the engine failed, or the time ran out (code `query_timeout`).
        """
        given = {name: list(value) if isinstance(value, tuple) else value for name, value in parameters.items()}
        deadline = None if timeout_ms is None else time.monotonic() + timeout_ms / 1000
        self._interrupted = False
        try:
            self._connected().set_query_timeout(timeout_ms or 0)
            result = self._execute(cypher, given)
            try:
                columns = tuple(_readable(name) for name in result.get_column_names())
                return Table(columns, self._fetched(result, deadline, tables))
            finally:
                result.close()
        except Exception as error:  # as above
            raise _blamed(error, cypher) from error

    def interrupt(self) -> None:
        """Make the statement that runs now in another thread fail.

        While the engine plans it, and in some of its operators, nothing happens: call again until it has ended.
        """
        self._interrupted = True
        connection = self._connection
        if connection is not None:
            with suppress(RuntimeError, AttributeError):  # it has just ended; kuzu has none left to call then
                connection.interrupt()

    @contextmanager
    def reading(self) -> Iterator[None]:
        """A read-only transaction: the engine refuses writes in it, and it sees the graph as it was at its start."""
        self.run("BEGIN TRANSACTION READ ONLY")
        try:
            yield
        finally:
            self.roll_back()

    def roll_back(self) -> None:
        """End the transaction without effect; fine if the engine has done so already, as it does on an error."""
        try:
            self.run("ROLLBACK")
        except GraphError as error:
            if "no active transaction" not in error.message.lower():
                raise

    def tidy(self) -> None:
        """Between transactions: forget all plans once there are many."""
        if len(self._texts) + len(self._plans) > PLANS_MAX:
            self.close()

    def close(self) -> None:
        """End the session; the next statement starts a new one."""
        self._plans.clear()
        self._texts.clear()
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    @contextmanager
    def _result(
        self, statement: Callable[[], str | Plan], parameters: Mapping[str, Any] | None = None
    ) -> Iterator[Result]:
        """The answer to a statement of ours, closed at the end; whatever fails meanwhile is a GraphError."""
        try:
            result = self._execute(statement(), parameters)
            try:
                yield result
            finally:
                result.close()
        except GraphError:
            raise
        except Exception as error:  # the engine raises whatever its binding makes of a C++ exception
            raise GraphError(engine_message(error)) from error

    def _execute(self, statement: str | Plan, parameters: Mapping[str, Any] | None) -> Result:
        if parameters and isinstance(statement, str):
            self._texts.add(statement)
        connection = self._connected()
        self.busy = True
        try:
            result = connection.execute(statement, dict(parameters) if parameters else None)
        finally:
            self.busy = False
        if isinstance(result, list):
            raise GraphError("the engine took one statement for several")
        return result

    def _fetched(self, result: Result, deadline: float | None, tables: Tables) -> list[tuple[object, ...]]:
        """All rows of an answer, fit for JSON; millions take their time, and the engine's own limit is past by then."""
        rows: list[tuple[object, ...]] = []
        while result.has_next():
            if self._interrupted or (deadline is not None and time.monotonic() >= deadline):
                raise out_of_time()
            rows += [tuple(plain(value, tables) for value in row) for row in result.get_n(ROWS_PER_FETCH)]
        return rows

    def _plan(self, cypher: str, parameters: Mapping[str, Any]) -> Plan:
        """The plan of a text for values like these.

        The engine plans anew if an integer is of another width than the one before, so each has a plan of its own. The
        bindings keep such plans themselves, but ladybug's takes 0.1 ms to find one for a dozen values.
        """
        key = (cypher, *(_width(value) for value in parameters.values() if type(value) is int))
        plan = self._plans.get(key)
        if plan is None:
            plan = self._plans[key] = self._prepared(cypher, dict(parameters))
        return plan

    def _prepared(self, cypher: str, parameters: dict[str, Any]) -> Plan:
        with warnings.catch_warnings():  # both bindings advise against this call
            warnings.simplefilter("ignore", DeprecationWarning)
            return self._connected().prepare(cypher, parameters)

    def _connected(self) -> Connection:
        if self._connection is None:
            self._connection = self._database.connect()
        return self._connection


class Sessions:
    """Sessions for reading, one for each thread that reads at the moment."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._idle: list[Session] = []
        self._all: list[Session] = []

    @contextmanager
    def one(self) -> Iterator[Session]:
        """A session in a read-only transaction; one in which something failed isn't used again."""
        try:
            session = self._idle.pop()
        except IndexError:
            session = Session(self._database)
            self._all.append(session)
        try:
            with session.reading():
                yield session
        except BaseException:
            self._drop(session)
            raise
        session.tidy()
        if session.outdated:
            self._drop(session)
        else:
            self._idle.append(session)

    def renew(self) -> None:
        """Use no session again that there is now."""
        for session in list(self._all):
            session.outdated = True
        with suppress(IndexError):
            while True:
                self._drop(self._idle.pop())

    def close(self) -> None:
        """End all of them; a query that runs in another thread is interrupted until it ends.

        Raises:
            GraphHung: one doesn't.
        """
        deadline = time.monotonic() + END_SECONDS
        while busy := [session for session in list(self._all) if session.busy]:
            if time.monotonic() >= deadline:
                raise GraphHung("a query runs on, whatever the engine is told", hint="it ends with this process")
            for session in busy:
                session.interrupt()
            time.sleep(_LOOK_SECONDS)
        for session in list(self._all):
            self._drop(session)
        self._idle.clear()

    def _drop(self, session: Session) -> None:
        with suppress(ValueError):  # `close` came first
            self._all.remove(session)
        session.close()


def out_of_time() -> GraphError:
    """The error of a query that took longer than it may, or that somebody ended."""
    return GraphError("the query ran out of time", code="query_timeout", hint="ask for less, or allow it more time")


def _width(value: int) -> tuple[bool, int]:
    """What decides which of its integer types the engine takes a value for, or a finer division."""
    bits = (value if value >= 0 else ~value).bit_length()
    return value < 0, next(width for width in _WIDTHS if bits <= width)


def _readable(column: str) -> str:
    """A column's name without what the engine adds inside: `label(n)` rather than a list of every table."""
    return re.sub(r"([A-Z_]+)\((\w+)\._(?:ID|LABEL)\b[^()]*\)", lambda call: f"{call[1].lower()}({call[2]})", column)


def _blamed(error: Exception, cypher: str) -> GraphError | InvalidInput:
    message = engine_message(error)
    if isinstance(error, GraphError):
        return error
    if message.startswith("Interrupted"):
        return out_of_time()
    if isinstance(error, MemoryError) or message.startswith(_ENGINE_FAULTS):
        return GraphError(message)
    if _UNTYPED_LIST in message:
        return InvalidInput("an empty list has no type there", hint="leave the parameter out and write [] itself")
    hint = "CALL show_tables() RETURN name lists the tables, CALL table_info('Finding') RETURN * the columns of one"
    if "read-only" in message:
        hint = "nothing is written through a query; facts come in as events"
    if message.startswith("Parser exception") and ":case" in cypher.lower().replace(" ", ""):
        hint = "Case is a word of Cypher: write it in backticks, (c:`Case`)"
    return InvalidInput(message, hint=hint)
