"""What a batch of changes must satisfy before any of it is written; both graphs refuse the same batches."""

from __future__ import annotations

from forktrail_projectors.graph.schema import EDGE_TABLES, NODE_TABLES, ColumnType, EdgeTable, NodeTable
from forktrail_projectors.state import Changes, Row
from forktrail_schemas.errors import GraphError

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1

_PYTHON_TYPES: dict[ColumnType, type] = {
    ColumnType.STRING: str,
    ColumnType.INT64: int,
    ColumnType.BOOL: bool,
    ColumnType.STRINGS: tuple,
}


def _shape(columns: dict[str, ColumnType]) -> tuple[tuple[str, type], ...]:
    return tuple((name, _PYTHON_TYPES[kind]) for name, kind in columns.items())


# Made once, since a rebuild checks every row.
_NODE_SHAPES = {name: _shape(table.columns) for name, table in NODE_TABLES.items()}
_EDGE_SHAPES = {name: _shape(table.columns) for name, table in EDGE_TABLES.items()}


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
        _check_row(_NODE_SHAPES[key.table], key, change.after)
        if change.after[table.key] != key.id:
            raise GraphError(f"the row of {key} has the key {change.after[table.key]!r}")
    for edge, row in changes.edges.items():
        joins = edge_table(edge.table)
        if (edge.source.table, edge.target.table) not in joins.pairs:
            raise GraphError(f"{edge.table} doesn't join {edge.source.table} to {edge.target.table}")
        _check_row(_EDGE_SHAPES[edge.table], edge, row)


def _check_row(shape: tuple[tuple[str, type], ...], key: object, row: Row) -> None:
    if len(row) != len(shape):
        raise GraphError(f"the row of {key} has {len(row)} columns, its table has {len(shape)}")
    for name, kind in shape:
        try:
            value = row[name]
        except KeyError:
            raise GraphError(f"the row of {key} lacks {name}") from None
        if value is None:
            continue
        if type(value) is not kind:
            raise GraphError(f"{name} of {key} is no {kind.__name__}: {value!r}")
        if kind is int and not INT64_MIN <= value <= INT64_MAX:  # type: ignore[operator]  # it is an int
            raise GraphError(f"{name} of {key} doesn't fit 64 bits: {value}")
        if kind is tuple and not all(type(item) is str for item in value):  # type: ignore[union-attr]  # a tuple
            raise GraphError(f"{name} of {key} holds more than strings: {value!r}")
