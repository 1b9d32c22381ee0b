"""What a batch of changes must satisfy before any of it is written; both graphs refuse the same batches."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from forktrail_projectors.graph.schema import EDGE_TABLES, NODE_TABLES, ColumnType, EdgeTable, NodeTable
from forktrail_projectors.state import Changes, EdgeKey, NodeId, NodeKey, Row, Value
from forktrail_schemas.errors import GraphError

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1

_PYTHON_TYPES: dict[ColumnType, type] = {
    ColumnType.STRING: str,
    ColumnType.INT64: int,
    ColumnType.BOOL: bool,
    ColumnType.STRINGS: tuple,
}


_Shape = tuple[tuple[str, type], ...]


def _shape(columns: dict[str, ColumnType]) -> _Shape:
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
    for name, created in changes.created.items():
        _check_nodes(name, created)
    for name, changed in changes.changed.items():
        _check_nodes(name, {id: change.after for id, change in changed.items()})
    for tables, joined in changes.joined.items():
        name, source, target = tables
        if (source, target) not in edge_table(name).pairs:
            raise GraphError(f"{name} doesn't join {source} to {target}")
        shape = _EDGE_SHAPES[name]
        if not _fit(shape, joined.values()):
            for (source_id, target_id), row in joined.items():
                _check_row(shape, EdgeKey(name, NodeKey(source, source_id), NodeKey(target, target_id)), row)


def _check_nodes(name: str, rows: Mapping[NodeId, Row]) -> None:
    table, shape = node_table(name), _NODE_SHAPES[name]
    if _fit(shape, rows.values()) and all(row[table.key] == id for id, row in rows.items()):
        return
    for id, row in rows.items():
        key = NodeKey(name, id)
        _check_row(shape, key, row)
        if row[table.key] != id:
            raise GraphError(f"the row of {key} has the key {row[table.key]!r}")


def _fit(shape: _Shape, rows: Collection[Row]) -> bool:
    """Whether each row has just these columns and values of their types; column by column, which is fastest."""
    if any(len(row) != len(shape) for row in rows):
        return False
    try:
        return all(_fits(kind, [row[name] for row in rows]) for name, kind in shape)
    except KeyError:
        return False


def _fits(kind: type, column: list[Value]) -> bool:
    """Whether a column has values of a type and nulls."""
    kinds = set(map(type, column))
    if len(kinds) == 2 and None in column:
        kinds.discard(_NULL)
        column = [value for value in column if value is not None]
    if kinds != {kind}:
        return kinds <= {_NULL}
    if kind is int:
        return min(column) >= INT64_MIN and max(column) <= INT64_MAX  # type: ignore[type-var,operator]  # all are int
    return kind is not tuple or all(type(item) is str for value in column for item in value)  # type: ignore[union-attr]


_NULL = type(None)


def _check_row(shape: _Shape, key: object, row: Row) -> None:
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
