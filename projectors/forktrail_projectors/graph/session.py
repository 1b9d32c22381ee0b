"""Sessions of an open database: statements in, values out, the engine's failures as this project's errors."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from forktrail_projectors.graph.engine import Connection, Database, Plan, Result, first_line
from forktrail_projectors.graph.protocol import Table
from forktrail_projectors.graph.reads import plain
from forktrail_projectors.state import Value
from forktrail_schemas.errors import GraphError, InvalidInput

# A plan takes 15 to 70 KiB; the engine keeps one for each text and mix of parameter types.
PLANS_MAX = 500
# ladybug's binding looks at every value to find the plan of a text. For longer lists that costs more than rebinding
# a prepared statement, which for single values it doesn't: another width of integer makes it plan anew.
LIST_LENGTH_MAX = 16
ROWS_PER_FETCH = 1_000

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


class Session:
    """One session of a database, with at most one transaction; not for two threads at once.

    Attributes:
        outdated: its plans are; it isn't to be used again.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._connection: Connection | None = None
        self._plans: dict[str, Plan] = {}
        self._texts: set[str] = set()
        self.outdated = False

    def run(self, cypher: str, parameters: Mapping[str, Any] | None = None) -> list[list[Any]]:
        """Run one statement of ours and fetch its whole answer.

        Raises:
            GraphError: with the engine's message.
        """
        try:
            result = self._execute(self._text_or_plan(cypher, parameters), parameters)
            try:
                return result.get_all()
            finally:
                result.close()
        except GraphError:
            raise
        except Exception as error:  # the engine raises whatever its binding makes of a C++ exception
            raise GraphError(first_line(error)) from error

    def stream(self, cypher: str) -> Iterator[list[Any]]:
        """Run one statement of ours and fetch its answer piece by piece.

        Raises:
            GraphError: with the engine's message.
        """
        try:
            result = self._execute(cypher, None)
            try:
                while result.has_next():
                    yield from result.get_n(ROWS_PER_FETCH)
            finally:
                result.close()
        except GraphError:
            raise
        except Exception as error:  # as above
            raise GraphError(first_line(error)) from error

    def answer(self, cypher: str, parameters: Mapping[str, Value], timeout_ms: int | None) -> Table:
        """Run one statement of a user's; the transaction around it decides what it may do.

        Raises:
            InvalidInput: the engine blames the statement.
            GraphError: the engine failed, or the time ran out (code `query_timeout`).
        """
        given = {name: list(value) if isinstance(value, tuple) else value for name, value in parameters.items()}
        try:
            self._connected().set_query_timeout(timeout_ms or 0)
            result = self._execute(cypher, given)
            try:
                columns = tuple(_readable(name) for name in result.get_column_names())
                return Table(columns, [tuple(plain(value) for value in row) for row in result.get_all()])
            finally:
                result.close()
        except Exception as error:  # as above
            raise _blamed(error, cypher) from error

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

    def _execute(self, statement: str | Plan, parameters: Mapping[str, Any] | None) -> Result:
        if parameters and isinstance(statement, str):
            self._texts.add(statement)
        result = self._connected().execute(statement, dict(parameters) if parameters else None)
        if isinstance(result, list):
            raise GraphError("the engine took one statement for several")
        return result

    def _text_or_plan(self, cypher: str, parameters: Mapping[str, Any] | None) -> str | Plan:
        lists = [value for value in (parameters or {}).values() if isinstance(value, list)]
        if not lists or max(map(len, lists)) <= LIST_LENGTH_MAX:
            return cypher
        plan = self._plans.get(cypher)
        if plan is None:
            with warnings.catch_warnings():  # both bindings advise against this call; see LIST_LENGTH_MAX
                warnings.simplefilter("ignore", DeprecationWarning)
                plan = self._connected().prepare(cypher, dict(parameters or {}))
            self._plans[cypher] = plan
        return plan

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
        """End all of them; a query that runs in another thread is interrupted."""
        for session in list(self._all):
            self._drop(session)
        self._idle.clear()

    def _drop(self, session: Session) -> None:
        with suppress(ValueError):  # `close` came first
            self._all.remove(session)
        session.close()


def _readable(column: str) -> str:
    """A column's name without what the engine adds inside: `label(n)` rather than a list of every table."""
    return re.sub(r"([A-Z_]+)\((\w+)\._(?:ID|LABEL)\b[^()]*\)", lambda call: f"{call[1].lower()}({call[2]})", column)


def _blamed(error: Exception, cypher: str) -> GraphError | InvalidInput:
    message = first_line(error)
    if isinstance(error, GraphError):
        return error
    if message.startswith("Interrupted"):
        return GraphError("the query ran out of time", code="query_timeout", hint="ask for less, or allow it more time")
    if isinstance(error, MemoryError) or message.startswith(_ENGINE_FAULTS):
        return GraphError(message)
    hint = "CALL show_tables() RETURN name lists the tables, CALL table_info('Finding') RETURN * the columns of one"
    if "read-only" in message:
        hint = "nothing is written through a query; facts come in as events"
    if message.startswith("Parser exception") and ":case" in cypher.lower().replace(" ", ""):
        hint = "Case is a word of Cypher: write it in backticks, (c:`Case`)"
    return InvalidInput(message, hint=hint)
