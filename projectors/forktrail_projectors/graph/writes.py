"""The Cypher that writes a batch of changes: a pure function from changes to statements.

The forms are chosen by measurement. Many rows go as an Arrow table, which the engine takes in half the time of lists
but plans anew each time; fewer as `UNWIND range(1, n)` over parallel lists; one row as a plain statement. A key is
compared so that ladybug looks it up instead of scanning the table; only columns that changed are set. A column that
is null in all rows is left out, since a list of nulls has no type. Among lists, a row with a list of strings goes
alone: of a list of lists that holds a null or an empty one, ladybug refuses the strings or stores them in quotes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from forktrail_projectors.graph.arrow import ArrowTable, table_of
from forktrail_projectors.graph.schema import EDGE_TABLES, NODE_TABLES, ColumnType
from forktrail_projectors.state import Changes, EdgeKey, NodeKey, Row, Value

ROWS_PER_STATEMENT = 5_000
# From so many values on, what an Arrow table saves is more than the millisecond that planning for it takes.
VALUES_FOR_ARROW = 2_000

_Item = TypeVar("_Item")


class Statement(NamedTuple):
    """One statement of a commit.

    Attributes:
        cypher: the text; equal shapes have equal texts, so that the engine plans each once.
        parameters: its parameters.
        rows: the table that it reads FROM $rows, if it does.
        expected: the number that its one row must hold, None if it answers nothing.
        complaint: what is wrong if it holds another.
    """

    cypher: str
    parameters: dict[str, Any]
    rows: ArrowTable | None = None
    expected: int | None = None
    complaint: str = ""


class _Input:
    """What a statement takes in: a value for each column of one row, a list for each of many, or an Arrow table."""

    def __init__(self, rows: int, columns: int) -> None:
        self._rows = rows
        self._columns: dict[str, Sequence[Value]] = {}
        self._types: dict[str, ColumnType] = {}
        self.many = rows > 1
        self._as_table = self.many and rows * columns >= VALUES_FOR_ARROW

    def add(self, name: str, kind: ColumnType, column: Sequence[Value]) -> str:
        """Take a column in, and return the expression of its value."""
        self._columns[name], self._types[name] = column, kind
        return name if self._as_table else f"${name}[i]" if self.many else f"${name}"

    def add_columns(self, types: Mapping[str, ColumnType], rows: Sequence[Row]) -> dict[str, str]:
        """Take in the columns that hold anything, and return their expressions by name."""
        expressions = {}
        for number, (name, kind) in enumerate(types.items()):
            column = [row[name] for row in rows]
            if column.count(None) < len(column):
                expressions[name] = self.add(f"c{number}", kind, column)
        return expressions

    def start(self) -> str:
        """The clause that goes through the rows."""
        if self._as_table:
            return "LOAD FROM $rows "
        return "UNWIND range(1, $rows) AS i " if self.many else ""

    def carried(self, *without: str) -> str:
        """The names that a WITH must list so that the expressions hold behind it."""
        return ", ".join(name for name in self._columns if name not in without) if self._as_table else "i"

    def statement(self, cypher: str, expected: int | None = None, complaint: str = "") -> Statement:
        """The statement whose text that is."""
        if self._as_table:
            return Statement(cypher, {}, table_of(self._types, self._columns.values()), expected, complaint)
        if self.many:
            return Statement(cypher, {"rows": self._rows, **self._columns}, None, expected, complaint)
        values = {name: list(value) if isinstance(value, tuple) else value for name, (value,) in self._columns.items()}
        return Statement(cypher, values, None, expected, complaint)


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


def edges_per_statement(engine: str) -> int:
    """kuzu compares every pair of rows when many relations come at once; one by one it looks up an end."""
    return 1 if engine == "kuzu" else ROWS_PER_STATEMENT


def changed_columns(before: Row, after: Row) -> tuple[str, ...]:
    """Names of the columns that differ."""
    return tuple(name for name, value in after.items() if before[name] != value)


def quote(name: str) -> str:
    """A table or column name for Cypher; some are its reserved words."""
    return f"`{name}`"


def _create_nodes(table: str, rows: Sequence[Row]) -> Statement:
    columns = NODE_TABLES[table].columns
    taken = _Input(len(rows), len(columns))
    values = taken.add_columns(columns, rows)
    return taken.statement(f"{taken.start()}CREATE (:{quote(table)} {_map(values)})")


def _set_columns(table: str, names: Sequence[str], rows: Sequence[Row]) -> Statement:
    columns, key_column = NODE_TABLES[table].columns, NODE_TABLES[table].key
    taken = _Input(len(rows), 1 + len(names))
    key = taken.add("key", columns[key_column], [row[key_column] for row in rows])
    values = taken.add_columns({name: columns[name] for name in names}, rows)
    start = taken.start()
    if taken.many:
        start, key = f"{start}WITH {_listed(taken.carried('key'), f'{key} AS k')} ", "k"
    assignments = ", ".join(f"n.{quote(name)} = {values.get(name, 'NULL')}" for name in names)
    cypher = f"{start}{_match('n', table, key)} SET {assignments} RETURN count(*)"
    return taken.statement(cypher, len(rows), f"a changed node of {table} does not exist")


def _create_edges(members: Sequence[tuple[EdgeKey, Row]]) -> Statement:
    edge, joins = members[0][0], EDGE_TABLES[members[0][0].table]
    taken = _Input(len(members), 2 + len(joins.columns))
    source = taken.add("source", _key_type(edge.source.table), [edge.source.id for edge, _ in members])
    target = taken.add("target", _key_type(edge.target.table), [edge.target.id for edge, _ in members])
    values = taken.add_columns(joins.columns, [row for _, row in members])
    start, between = taken.start(), ""
    if taken.many:
        carried = taken.carried("source", "target")
        start = f"{start}WITH {_listed(carried, f'{source} AS s', f'{target} AS t')} "
        source, target, between = "s", "t", f"WITH {_listed(carried, 'a', 't')} "
    cypher = (
        f"{start}{_match('a', edge.source.table, source)} {between}{_match('b', edge.target.table, target)}"
        f" CREATE (a)-[:{quote(edge.table)} {_map(values)}]->(b) RETURN count(*)"
    )
    return taken.statement(cypher, len(members), f"an end of a new {edge.table} does not exist")


def _edge_must_be_new(edge: EdgeKey) -> Statement:
    """Needed only between two nodes that were there before; the engine would add a second relation without a word."""
    source, target = NODE_TABLES[edge.source.table], NODE_TABLES[edge.target.table]
    cypher = (
        f"MATCH (a:{quote(source.name)})-[:{quote(edge.table)}]->(b:{quote(target.name)})"
        f" WHERE a.{quote(source.key)} = $source AND b.{quote(target.key)} = $target RETURN count(*)"
    )
    ends = {"source": edge.source.id, "target": edge.target.id}
    return Statement(cypher, ends, expected=0, complaint=f"{edge} exists")


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


def _key_type(table: str) -> ColumnType:
    return NODE_TABLES[table].columns[NODE_TABLES[table].key]


def _listed(*names: str) -> str:
    return ", ".join(name for name in names if name)


def _match(variable: str, table: str, key: str) -> str:
    return f"MATCH ({variable}:{quote(table)}) WHERE {variable}.{quote(NODE_TABLES[table].key)} = {key}"


def _map(values: Mapping[str, str]) -> str:
    return "{" + ", ".join(f"{quote(name)}: {value}" for name, value in values.items()) + "}"
