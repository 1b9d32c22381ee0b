"""The Cypher that reads rows and relations by key, and the engine's answers as rows and plain values."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from forktrail_projectors.graph.schema import EDGE_TABLES, NODE_TABLES, ColumnType
from forktrail_projectors.graph.writes import quote
from forktrail_projectors.state import EdgesKey, Row

# Engine-made fields of nodes, relations and paths; ladybug writes them in capitals, kuzu doesn't.
_INTERNAL = ("_id", "_src", "_dst")


def select_node(table: str) -> str:
    """One node by `$key`: its columns."""
    return f"MATCH (n:{quote(table)}) WHERE n.{_key(table)} = $key RETURN {_columns('n', table)}"


def select_nodes(table: str) -> str:
    """The nodes named by `$keys`: their columns."""
    match = f"MATCH (n:{quote(table)}) WHERE n.{_key(table)} = k"
    return f"UNWIND $keys AS k {match} RETURN {_columns('n', table)}"


def select_edges(key: EdgesKey) -> list[str]:
    """What lies at the other end of a node's relations, the node being `$key`: table and key.

    One key at a time: with UNWIND both engines scan the whole relation table.
    """
    others: dict[str, list[str]] = {}
    for source, target in EDGE_TABLES[key.table].pairs:
        here, there = (source, target) if key.end == "source" else (target, source)
        if here == key.node.table:
            others.setdefault(NODE_TABLES[there].key, []).append(there)
    left, right = ("", ">") if key.end == "source" else ("<", "")
    return [
        f"MATCH (n:{quote(key.node.table)}){left}-[:{quote(key.table)}]-{right}(m:{':'.join(map(quote, there))})"
        f" WHERE n.{_key(key.node.table)} = $key RETURN label(m), m.{quote(key_column)}"
        for key_column, there in others.items()
    ]


def all_nodes(table: str) -> str:
    """Every node of a table: its columns."""
    return f"MATCH (n:{quote(table)}) RETURN {_columns('n', table)}"


def all_edges(table: str, source: str, target: str) -> str:
    """Every relation of a table between two node tables: both keys, then its columns."""
    columns = "".join(f", e.{quote(name)}" for name in EDGE_TABLES[table].columns)
    match = f"MATCH (a:{quote(source)})-[e:{quote(table)}]->(b:{quote(target)})"
    return f"{match} RETURN a.{_key(source)}, b.{_key(target)}{columns}"


def row(columns: Mapping[str, ColumnType], values: Sequence[Any]) -> Row:
    """A row of the graph from the engine's values in column order."""
    made = dict(zip(columns, values, strict=True))
    for name, kind in columns.items():
        if kind is ColumnType.STRINGS and made[name] is not None:
            made[name] = tuple(made[name])
    return made


def plain(value: object) -> object:
    """A value of a query's answer, fit for JSON.

    A node or relation becomes a dict of `_label` and the columns of its table (the engine adds those of all tables that
    the pattern could have matched); a path one of `_nodes` and `_rels`. Sums come from the engine as decimals and are
    made integers again. Times, durations, UUIDs, bytes (hex) and numbers that JSON lacks become strings.
    """
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return _plain_dict(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else str(value)
    if isinstance(value, (date, datetime)):
        return value.isoformat()
    return value.hex() if isinstance(value, bytes) else str(value)


def _plain_dict(value: dict[Any, Any]) -> dict[str, object]:
    fields = {_lower_internal(str(name)): item for name, item in value.items()}
    label = fields.get("_label")
    if "_id" not in fields or not isinstance(label, str):
        return {name: plain(item) for name, item in fields.items()}
    table = NODE_TABLES.get(label) or EDGE_TABLES.get(label)
    names = [name for name in (table.columns if table else fields) if name in fields and name not in _INTERNAL]
    return {"_label": label} | {name: plain(fields[name]) for name in names}


def _lower_internal(name: str) -> str:
    return name.lower() if name in ("_ID", "_LABEL", "_SRC", "_DST", "_NODES", "_RELS") else name


def _key(table: str) -> str:
    return quote(NODE_TABLES[table].key)


def _columns(variable: str, table: str) -> str:
    return ", ".join(f"{variable}.{quote(name)}" for name in NODE_TABLES[table].columns)
