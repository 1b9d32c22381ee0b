"""Rows as Arrow tables: the form in which many at once go into the engine, and come back out of it.

pyarrow is loaded with the first of them, since that takes 80 ms and small batches do without.
"""

from __future__ import annotations

import importlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache
from typing import Any, Protocol

from forktrail_projectors.graph.schema import ColumnType
from forktrail_projectors.state import Value
from forktrail_schemas.errors import GraphError


class ArrowTable(Protocol):
    """A pyarrow.Table; pyarrow brings no types of its own."""

    num_rows: int
    column_names: list[str]
    schema: Any

    def equals(self, other: ArrowTable) -> bool: ...
    def rename_columns(self, names: Sequence[str]) -> ArrowTable: ...
    def cast(self, target_schema: Any) -> ArrowTable: ...
    def sort_by(self, sorting: Sequence[tuple[str, str]]) -> ArrowTable: ...


def table_of(columns: Mapping[str, ColumnType], values: Iterable[Collection[Value]]) -> ArrowTable:
    """Make a table of columns, given the values of each in their order.

    Raises:
        GraphError: a value is of another type than its column, or can't be stored.
    """
    arrow, types = _arrow()
    try:
        arrays = [arrow.array(column, types[kind]) for kind, column in zip(columns.values(), values, strict=True)]
    except (arrow.ArrowException, UnicodeEncodeError, OverflowError) as error:
        raise GraphError(f"a value can't be stored: {error}") from error
    return arrow.table(arrays, list(columns))  # type: ignore[no-any-return]  # see ArrowTable


def same_rows(one: ArrowTable, other: ArrowTable, keys: int) -> bool:
    """Whether two tables of the same columns, by whatever names, hold the same rows, in whatever order.

    Args:
        keys: so many columns, the first ones, tell a row apart.
    """
    other = other.rename_columns(one.column_names).cast(one.schema)
    if one.equals(other):
        return True
    order = [(name, "ascending") for name in one.column_names[:keys]]
    return one.sort_by(order).equals(other.sort_by(order))


@cache
def _arrow() -> tuple[Any, Mapping[ColumnType, Any]]:
    arrow = importlib.import_module("pyarrow")
    text = arrow.string()
    types = {
        ColumnType.STRING: text,
        ColumnType.INT64: arrow.int64(),
        ColumnType.DOUBLE: arrow.float64(),
        ColumnType.BOOL: arrow.bool_(),
        ColumnType.STRINGS: arrow.list_(text),
    }
    return arrow, types
