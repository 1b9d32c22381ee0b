"""The Cypher that writes a batch of changes: a pure function from changes to statements.

The forms are chosen by measurement. Many rows go as `UNWIND range(1, n)` over parallel lists, one row as a plain
statement; a key is compared so that ladybug looks it up instead of scanning the table; only columns that changed are
set. A column that is null in all rows is left out, since a list of nulls has no type. A row with a list of strings goes
alone: of a list of lists that holds a null or an empty one, ladybug refuses the strings or stores them in quotes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from forktrail_projectors.graph.schema import EDGE_TABLES, NODE_TABLES, ColumnType
from forktrail_projectors.state import Changes, EdgeKey, NodeKey, Row, Value

ROWS_PER_STATEMENT = 5_000

_Item = TypeVar("_Item")


class Statement(NamedTuple):
    """One statement of a commit.

    Attributes:
        cypher: the text; equal shapes have equal texts, so that the engine plans each once.
        parameters: its parameters.
        expected: the number that its one row must hold, None if it answers nothing.
        complaint: what is wrong if it holds another.
    """

    cypher: str
    parameters: dict[str, Any]
    expected: int | None = None
    complaint: str = ""


class _Parameters:
    """The parameters of one statement: a value each for one row, a list each for many."""

    def __init__(self, rows: int) -> None:
        self.many = rows > 1
        self.values: dict[str, Any] = {"rows": rows} if self.many else {}

    def add(self, name: str, column: list[Value]) -> str:
        """Take a column in, and return the expression of its value in row `i`."""
        if self.many:
            self.values[name] = column
            return f"${name}[i]"
        self.values[name] = list(column[0]) if isinstance(column[0], tuple) else column[0]
        return f"${name}"

    def add_columns(self, names: Sequence[str], rows: Sequence[Row]) -> dict[str, str]:
        """Take in the columns that hold anything, and return their expressions by name."""
        expressions = {}
        for number, name in enumerate(names):
            column = [row[name] for row in rows]
            if column.count(None) < len(column):
                expressions[name] = self.add(f"c{number}", column)
        return expressions


def statements(changes: Changes, edges_per_statement: int = ROWS_PER_STATEMENT) -> Iterator[Statement]:
    """The statements that write the changes, in the order to run them; the changes have passed `check_rows`."""
    for edge in changes.edges:
        if not _is_new(changes, edge.source) and not _is_new(changes, edge.target):
            yield _edge_must_be_new(edge)

    created: defaultdict[str, list[Row]] = defaultdict(list)
    changed: defaultdict[tuple[str, tuple[str, ...]], list[Row]] = defaultdict(list)
    for key, change in changes.nodes.items():
        if change.before is None:
            created[key.table].append(change.after)
        elif names := changed_columns(change.before, change.after):
            changed[key.table, names].append(change.after)
    for table, rows in created.items():
        for chunk in _chunks(rows, _list_columns(table), ROWS_PER_STATEMENT):
            yield _create_nodes(table, chunk)
    for (table, names), rows in changed.items():
        lists = [name for name in _list_columns(table) if name in names]
        for chunk in _chunks(rows, lists, ROWS_PER_STATEMENT):
            yield _set_columns(table, names, chunk)

    joined: defaultdict[tuple[str, str, str], list[tuple[EdgeKey, Row]]] = defaultdict(list)
    for edge, row in changes.edges.items():
        joined[edge.table, edge.source.table, edge.target.table].append((edge, row))
    for members in joined.values():
        for part in _batches(members, edges_per_statement):
            yield _create_edges(part)


def changed_columns(before: Row, after: Row) -> tuple[str, ...]:
    """Names of the columns that differ."""
    return tuple(name for name, value in after.items() if before[name] != value)


def quote(name: str) -> str:
    """A table or column name for Cypher; some are its reserved words."""
    return f"`{name}`"


def _create_nodes(table: str, rows: Sequence[Row]) -> Statement:
    parameters = _Parameters(len(rows))
    values = parameters.add_columns(tuple(NODE_TABLES[table].columns), rows)
    unwind = "UNWIND range(1, $rows) AS i " if parameters.many else ""
    return Statement(f"{unwind}CREATE (:{quote(table)} {_map(values)})", parameters.values)


def _set_columns(table: str, names: Sequence[str], rows: Sequence[Row]) -> Statement:
    key_column = NODE_TABLES[table].key
    parameters = _Parameters(len(rows))
    key = parameters.add("key", [row[key_column] for row in rows])
    values = parameters.add_columns(names, rows)
    unwind = ""
    if parameters.many:
        unwind, key = f"UNWIND range(1, $rows) AS i WITH i, {key} AS k ", "k"
    assignments = ", ".join(f"n.{quote(name)} = {values.get(name, 'NULL')}" for name in names)
    cypher = f"{unwind}{_match('n', table, key)} SET {assignments} RETURN count(*)"
    return Statement(cypher, parameters.values, len(rows), f"a changed node of {table} does not exist")


def _create_edges(members: Sequence[tuple[EdgeKey, Row]]) -> Statement:
    edge = members[0][0]
    parameters = _Parameters(len(members))
    source = parameters.add("source", [edge.source.id for edge, _ in members])
    target = parameters.add("target", [edge.target.id for edge, _ in members])
    values = parameters.add_columns(tuple(EDGE_TABLES[edge.table].columns), [row for _, row in members])
    unwind = between = ""
    if parameters.many:
        unwind = f"UNWIND range(1, $rows) AS i WITH i, {source} AS s, {target} AS t "
        source, target, between = "s", "t", "WITH i, a, t "
    cypher = (
        f"{unwind}{_match('a', edge.source.table, source)} {between}{_match('b', edge.target.table, target)}"
        f" CREATE (a)-[:{quote(edge.table)} {_map(values)}]->(b) RETURN count(*)"
    )
    complaint = f"an end of a new {edge.table} does not exist"
    return Statement(cypher, parameters.values, len(members), complaint)


def _edge_must_be_new(edge: EdgeKey) -> Statement:
    """Needed only between two nodes that were there before; the engine would add a second relation without a word."""
    source, target = NODE_TABLES[edge.source.table], NODE_TABLES[edge.target.table]
    cypher = (
        f"MATCH (a:{quote(source.name)})-[:{quote(edge.table)}]->(b:{quote(target.name)})"
        f" WHERE a.{quote(source.key)} = $source AND b.{quote(target.key)} = $target RETURN count(*)"
    )
    return Statement(cypher, {"source": edge.source.id, "target": edge.target.id}, 0, f"{edge} exists")


def _is_new(changes: Changes, key: NodeKey) -> bool:
    change = changes.nodes.get(key)
    return change is not None and change.before is None


def _list_columns(table: str) -> list[str]:
    return [name for name, kind in NODE_TABLES[table].columns.items() if kind is ColumnType.STRINGS]


def _chunks(rows: Sequence[Row], lists: Sequence[str], size: int) -> Iterator[Sequence[Row]]:
    """Rows for one statement each; one that has a list goes alone."""
    if lists:
        yield from ([row] for row in rows if any(row[name] is not None for name in lists))
        rows = [row for row in rows if all(row[name] is None for name in lists)]
    yield from _batches(rows, size)


def _batches(items: Sequence[_Item], size: int) -> Iterator[Sequence[_Item]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]


def _match(variable: str, table: str, key: str) -> str:
    return f"MATCH ({variable}:{quote(table)}) WHERE {variable}.{quote(NODE_TABLES[table].key)} = {key}"


def _map(values: Mapping[str, str]) -> str:
    return "{" + ", ".join(f"{quote(name)}: {value}" for name, value in values.items()) + "}"
