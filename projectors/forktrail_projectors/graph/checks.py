"""What a batch of changes must satisfy before any of it is written; both graphs refuse the same batches."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from functools import lru_cache

from forktrail_projectors.graph.declared_tables import Tables
from forktrail_projectors.graph.schema import ColumnType, EdgeTable, NodeTable
from forktrail_projectors.state import Changes, EdgeKey, NodeId, NodeKey, Row, Value
from forktrail_schemas.errors import GraphError

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1

_PYTHON_TYPES: dict[ColumnType, type] = {
    ColumnType.STRING: str,
    ColumnType.INT64: int,
    ColumnType.DOUBLE: float,
    ColumnType.BOOL: bool,
    ColumnType.STRINGS: tuple,
}


_Shape = tuple[tuple[str, type], ...]


def _shape(columns: Mapping[str, ColumnType]) -> _Shape:
    return _shape_of(tuple(columns.items()))


@lru_cache(maxsize=1_024)
def _shape_of(columns: tuple[tuple[str, ColumnType], ...]) -> _Shape:
    return tuple((name, _PYTHON_TYPES[kind]) for name, kind in columns)


def node_table(tables: Tables, name: str) -> NodeTable:
    """The node table of that name.

    Raises:
        GraphError: there is none.
    """
    try:
        return tables.nodes[name]
    except KeyError:
        raise GraphError(f"the graph has no node table {name!r}") from None


def edge_table(tables: Tables, name: str) -> EdgeTable:
    """The relation table of that name.

    Raises:
        GraphError: there is none.
    """
    try:
        return tables.edges[name]
    except KeyError:
        raise GraphError(f"the graph has no relation table {name!r}") from None


def check_rows(changes: Changes, tables: Tables) -> None:
    """Refuse rows that lack a column, have one too many or a value of another type, and edges of an unknown pair.

    Whether the nodes and ends exist is for the graph to find.

    Raises:
        GraphError: naming the first such key.
    """
    for name, created in changes.created.items():
        _check_nodes(node_table(tables, name), created)
    for name, changed in changes.changed.items():
        _check_nodes(node_table(tables, name), {id: change.after for id, change in changed.items()})
    for name, *_ in changes.parted:
        if not edge_table(tables, name).removable:
            raise GraphError(f"relations of {name} are never removed")
    for (name, source, target), joined in changes.joined.items():
        table = edge_table(tables, name)
        if (source, target) not in table.pairs:
            raise GraphError(f"{name} doesn't join {source} to {target}")
        shape = _shape(table.columns)
        if not _fit(shape, joined.values()):
            for (source_id, target_id), row in joined.items():
                _check_row(shape, EdgeKey(name, NodeKey(source, source_id), NodeKey(target, target_id)), row)


def _check_nodes(table: NodeTable, rows: Mapping[NodeId, Row]) -> None:
    shape = _shape(table.columns)
    if _fit(shape, rows.values()) and all(row[table.key] == id for id, row in rows.items()):
        return
    for id, row in rows.items():
        key = NodeKey(table.name, id)
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
    if kind is float:
        return all(map(math.isfinite, column))  # type: ignore[arg-type]  # all are float
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
        if kind is float and not math.isfinite(value):  # type: ignore[arg-type]  # it is a float
            raise GraphError(f"{name} of {key} is no number: {value}")
        if kind is tuple and not all(type(item) is str for item in value):  # type: ignore[union-attr]  # a tuple
            raise GraphError(f"{name} of {key} holds more than strings: {value!r}")
