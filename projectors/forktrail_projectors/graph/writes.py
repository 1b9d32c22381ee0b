"""The Cypher that writes a batch of changes: a pure function from changes to statements.

The forms are chosen by measurement. Many rows go as an Arrow table, which the engine takes in half the time of lists
but plans anew each time; fewer as `UNWIND range(1, n)` over parallel lists; one row as a plain statement. A key is
compared so that ladybug looks it up instead of scanning the table; only columns that changed are set. A column that
is null in all rows is left out, since a list of nulls has no type. Among lists, a row with a list of strings goes
alone: of a list of lists that holds a null or an empty one, ladybug refuses the strings or stores them in quotes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from forktrail_projectors.graph.arrow import ArrowTable, table_of
from forktrail_projectors.graph.declared_tables import BUILT_IN, Tables, key_column, key_type
from forktrail_projectors.graph.schema import ColumnType, EdgeTable, NodeTable
from forktrail_projectors.state import Changes, EdgeKey, Ends, NodeChange, NodeId, NodeKey, Row, Value

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


def statements(
    changes: Changes, edges_per_statement: int = ROWS_PER_STATEMENT, tables: Tables = BUILT_IN
) -> Iterator[Statement]:
    """The statements that write the changes, in the order to run them; the changes have passed `check_rows`."""
    for ends, parted in changes.parted.items():
        for source, target in parted:
            yield _remove_edge(*ends, source, target)
    for ends, joined in changes.joined.items():
        new_sources, new_targets = (changes.created.get(table, {}) for table in ends[1:])
        for source, target in joined:
            if source not in new_sources and target not in new_targets:
                yield _edge_must_be_new(*ends, source, target)
    for name, created in changes.created.items():
        table = tables.nodes[name]
        for chunk in _chunks(list(created.values()), table.list_columns, ROWS_PER_STATEMENT):
            yield _create_nodes(table, chunk)
    for name, changed in changes.changed.items():
        table = tables.nodes[name]
        by_columns: defaultdict[tuple[str, ...], list[Row]] = defaultdict(list)
        for change in changed.values():
            if names := changed_columns(change):
                by_columns[names].append(change.after)
        for names, rows in by_columns.items():
            lists = [name for name in table.list_columns if name in names]
            for chunk in _chunks(rows, lists, ROWS_PER_STATEMENT):
                yield _set_columns(table, names, chunk)
    for (name, *pair), joined in changes.joined.items():
        kind = tables.edges[name]
        for part in _edge_chunks(kind, list(joined.items()), edges_per_statement):
            yield _create_edges(kind, pair[0], pair[1], part)


def edges_per_statement(engine: str) -> int:
    """kuzu compares every pair of rows when many relations come at once; one by one it looks up an end."""
    return 1 if engine == "kuzu" else ROWS_PER_STATEMENT


def changed_columns(change: NodeChange) -> tuple[str, ...]:
    """Names of the columns that differ in a node that was there."""
    before, after = change
    assert before is not None
    return tuple(name for name, value in after.items() if before[name] != value)


def quote(name: str) -> str:
    """A table or column name for Cypher; some are its reserved words."""
    return f"`{name}`"


def _create_nodes(table: NodeTable, rows: Sequence[Row]) -> Statement:
    columns = table.columns
    taken = _Input(len(rows), len(columns))
    values = taken.add_columns(columns, rows)
    return taken.statement(f"{taken.start()}CREATE (:{quote(table.name)} {_map(values)})")


def _set_columns(table: NodeTable, names: Sequence[str], rows: Sequence[Row]) -> Statement:
    columns = table.columns
    taken = _Input(len(rows), 1 + len(names))
    key = taken.add("key", columns[table.key], [row[table.key] for row in rows])
    values = taken.add_columns({name: columns[name] for name in names}, rows)
    start = taken.start()
    if taken.many:
        start, key = f"{start}WITH {_listed(taken.carried('key'), f'{key} AS k')} ", "k"
    assignments = ", ".join(f"n.{quote(name)} = {values.get(name, 'NULL')}" for name in names)
    cypher = f"{start}{_match('n', table.name, key)} SET {assignments} RETURN count(*)"
    return taken.statement(cypher, len(rows), f"a changed node of {table.name} does not exist")


def _create_edges(
    table: EdgeTable, source_table: str, target_table: str, members: Sequence[tuple[Ends, Row]]
) -> Statement:
    columns = table.columns
    taken = _Input(len(members), 2 + len(columns))
    source = taken.add("source", key_type(source_table), [ends[0] for ends, _ in members])
    target = taken.add("target", key_type(target_table), [ends[1] for ends, _ in members])
    values = taken.add_columns(columns, [row for _, row in members])
    start, between = taken.start(), ""
    if taken.many:
        carried = taken.carried("source", "target")
        start = f"{start}WITH {_listed(carried, f'{source} AS s', f'{target} AS t')} "
        source, target, between = "s", "t", f"WITH {_listed(carried, 'a', 't')} "
    cypher = (
        f"{start}{_match('a', source_table, source)} {between}{_match('b', target_table, target)}"
        f" CREATE (a)-[:{quote(table.name)} {_map(values)}]->(b) RETURN count(*)"
    )
    return taken.statement(cypher, len(members), f"an end of a new {table.name} does not exist")


def _remove_edge(table: str, source_table: str, target_table: str, source: NodeId, target: NodeId) -> Statement:
    """One by one: many in one statement make the engine scan the table."""
    cypher = f"{_one_edge(table, source_table, target_table)} DELETE e RETURN count(*)"
    edge = EdgeKey(table, NodeKey(source_table, source), NodeKey(target_table, target))
    return Statement(cypher, {"source": source, "target": target}, expected=1, complaint=f"{edge} does not exist")


def _edge_must_be_new(table: str, source_table: str, target_table: str, source: NodeId, target: NodeId) -> Statement:
    """Needed only between two nodes that were there before; the engine would add a second relation without a word."""
    cypher = f"{_one_edge(table, source_table, target_table)} RETURN count(*)"
    edge = EdgeKey(table, NodeKey(source_table, source), NodeKey(target_table, target))
    return Statement(cypher, {"source": source, "target": target}, expected=0, complaint=f"{edge} exists")


def _one_edge(table: str, source_table: str, target_table: str) -> str:
    """Matches the relation between `$source` and `$target`."""
    return (
        f"MATCH (a:{quote(source_table)})-[e:{quote(table)}]->(b:{quote(target_table)})"
        f" WHERE a.{quote(key_column(source_table))} = $source AND b.{quote(key_column(target_table))} = $target"
    )


def _chunks(rows: Sequence[Row], lists: Sequence[str], size: int) -> Iterator[Sequence[Row]]:
    """Rows for one statement each; one that has a list goes alone."""
    alone, together = _split(rows, lambda row: _has_list(row, lists))
    yield from _batches(alone, 1)
    yield from _batches(together, size)


def _edge_chunks(
    table: EdgeTable, members: Sequence[tuple[Ends, Row]], size: int
) -> Iterator[Sequence[tuple[Ends, Row]]]:
    """The same for relations."""
    alone, together = _split(members, lambda member: _has_list(member[1], table.list_columns))
    yield from _batches(alone, 1)
    yield from _batches(together, size)


def _has_list(row: Row, lists: Sequence[str]) -> bool:
    return any(row[name] is not None for name in lists)


def _split(items: Sequence[_Item], alone: Callable[[_Item], bool]) -> tuple[Sequence[_Item], Sequence[_Item]]:
    """Those that go alone, and the others."""
    apart = [item for item in items if alone(item)]
    return apart, [item for item in items if not alone(item)] if apart else items


def _batches(items: Sequence[_Item], size: int) -> Iterator[Sequence[_Item]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]


def _listed(*names: str) -> str:
    return ", ".join(name for name in names if name)


def _match(variable: str, table: str, key: str) -> str:
    return f"MATCH ({variable}:{quote(table)}) WHERE {variable}.{quote(key_column(table))} = {key}"


def _map(values: Mapping[str, str]) -> str:
    return "{" + ", ".join(f"{quote(name)}: {value}" for name, value in values.items()) + "}"
