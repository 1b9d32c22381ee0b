"""What a batch of changes must satisfy before any of it is written; both graphs refuse the same batches."""

from __future__ import annotations

from forktrail_projectors.graph.schema import EDGE_TABLES, NODE_TABLES, ColumnType, EdgeTable, NodeTable
from forktrail_projectors.state import Changes, Row, Value
from forktrail_schemas.errors import GraphError

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1

_PYTHON_TYPES: dict[ColumnType, type] = {
    ColumnType.STRING: str,
    ColumnType.INT64: int,
    ColumnType.BOOL: bool,
    ColumnType.STRINGS: tuple,
}


def node_table(name: str) -> NodeTable:
    """The node table of that name.

    Raises:
        GraphError: there is none.
    """
    try:
        return NODE_TABLES[name]
    except KeyError:
        raise GraphError(f"the graph has no node table {name!r}") from None


def edge_table(name: str) -> EdgeTable:
    """The relation table of that name.

    Raises:
        GraphError: there is none.
    """
    try:
        return EDGE_TABLES[name]
    except KeyError:
        raise GraphError(f"the graph has no relation table {name!r}") from None


def check_rows(changes: Changes) -> None:
    """Refuse rows that lack a column, have one too many or a value of another type, and edges of an unknown pair.

    Whether the nodes and ends exist is for the graph to find.

    Raises:
        GraphError: naming the first such key.
    """
    for key, change in changes.nodes.items():
        table = node_table(key.table)
        _check_row(key, table.columns, change.after)
        if change.after[table.key] != key.id:
            raise GraphError(f"the row of {key} has the key {change.after[table.key]!r}")
    for edge, row in changes.edges.items():
        joins = edge_table(edge.table)
        if (edge.source.table, edge.target.table) not in joins.pairs:
            raise GraphError(f"{edge.table} doesn't join {edge.source.table} to {edge.target.table}")
        _check_row(edge, joins.columns, row)


def _check_row(key: object, columns: dict[str, ColumnType], row: Row) -> None:
    if row.keys() != columns.keys():
        odd = sorted(row.keys() ^ columns.keys())
        raise GraphError(f"the row of {key} and its table differ in {', '.join(odd)}")
    for name, kind in columns.items():
        value = row[name]
        if value is not None and not _fits(value, kind):
            raise GraphError(f"{name} of {key} is no {kind}: {value!r}")


def _fits(value: Value, kind: ColumnType) -> bool:
    if type(value) is not _PYTHON_TYPES[kind]:
        return False
    if isinstance(value, tuple):
        return all(type(item) is str for item in value)
    return not isinstance(value, int) or INT64_MIN <= value <= INT64_MAX
