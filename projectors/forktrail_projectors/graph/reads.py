"""The Cypher that reads rows and relations by key, and the engine's answers as rows and plain values."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from datetime import date, datetime
from decimal import Decimal
from functools import cache
from typing import Any

from forktrail_projectors.graph.declared_tables import BUILT_IN, Tables, key_column
from forktrail_projectors.graph.schema import EdgeTable, NodeTable
from forktrail_projectors.graph.writes import quote
from forktrail_projectors.state import End, Row

# Engine-made fields of nodes, relations and paths; ladybug writes them in capitals, kuzu doesn't.
_INTERNAL = ("_id", "_src", "_dst")
_Pairs = tuple[tuple[str, str], ...]


def select_node(table: NodeTable) -> str:
    """One node by `$key`: its columns."""
    return f"MATCH (n:{quote(table.name)}) WHERE n.{quote(table.key)} = $key RETURN {_columns('n', table)}"


def select_nodes(table: NodeTable) -> str:
    """The nodes named by `$keys`: their columns."""
    match = f"MATCH (n:{quote(table.name)}) WHERE n.{quote(table.key)} = k"
    return f"UNWIND $keys AS k {match} RETURN {_columns('n', table)}"


def select_edge(table: EdgeTable, source: str, target: str) -> str:
    """One relation by `$source` and `$target`, keys of two node tables: its columns."""
    match = f"MATCH (a:{quote(source)})-[e:{quote(table.name)}]->(b:{quote(target)})"
    where = f"a.{_key(source)} = $source AND b.{_key(target)} = $target"
    return f"{match} WHERE {where} RETURN {_columns('e', table) or 'true'}"


@cache
def select_edges(table: str, pairs: _Pairs, end: End, node_table: str) -> tuple[str, ...]:
    """What lies at the other end of a node's relations, the node being `$key`: its key, and the other's table and key.

    Empty where the relation table never joins that node table at that end.
    """
    match, key = f"MATCH (n:{quote(node_table)})", f"n.{_key(node_table)}"
    return tuple(
        f"{match}{pattern} WHERE {key} = $key RETURN {key}, {other}"
        for pattern, other in _others(table, pairs, end, node_table)
    )


@cache
def select_edges_of_many(table: str, pairs: _Pairs, end: End, node_table: str) -> tuple[str, ...]:
    """The same for the nodes named by `$keys`; a node without relations has one row, of nulls but for its key.

    The match is OPTIONAL since both engines scan the whole relation table for one that isn't.
    """
    nodes = f"UNWIND $keys AS k MATCH (n:{quote(node_table)}) WHERE n.{_key(node_table)} = k WITH k, n"
    others = _others(table, pairs, end, node_table)
    return tuple(f"{nodes} OPTIONAL MATCH (n){pattern} RETURN k, {other}" for pattern, other in others)


def _others(table: str, pairs: _Pairs, end: End, node_table: str) -> Iterator[tuple[str, str]]:
    """For each name that the other ends' keys have: the pattern from `n` to them, and what to return of them."""
    others: dict[str, list[str]] = {}
    for source, target in pairs:
        here, there = (source, target) if end == "source" else (target, source)
        if here == node_table:
            others.setdefault(key_column(there), []).append(there)
    left, right = ("", ">") if end == "source" else ("<", "")
    for key, there_tables in others.items():
        labels = ":".join(map(quote, there_tables))
        yield f"{left}-[:{quote(table)}]-{right}(m:{labels})", f"label(m), m.{quote(key)}"


def all_nodes(table: NodeTable) -> str:
    """Every node of a table: its columns."""
    return f"MATCH (n:{quote(table.name)}) RETURN {_columns('n', table)}"


def all_edges(table: EdgeTable, source: str, target: str) -> str:
    """Every relation of a table between two node tables: both keys, then its columns."""
    columns = "".join(f", e.{quote(name)}" for name in table.columns)
    match = f"MATCH (a:{quote(source)})-[e:{quote(table.name)}]->(b:{quote(target)})"
    return f"{match} RETURN a.{_key(source)}, b.{_key(target)}{columns}"


def row(table: NodeTable | EdgeTable, values: Sequence[Any]) -> Row:
    """A row of a table from the engine's values in column order."""
    made = dict(zip(table.columns, values, strict=True))
    for name in table.list_columns:
        if made[name] is not None:
            made[name] = tuple(made[name])
    return made


def plain(value: object, tables: Tables = BUILT_IN) -> object:
    """A value of a query's answer, fit for JSON.

    A node or relation becomes a dict of `_label` and the columns of its table (the engine adds those of all tables that
    the pattern could have matched); a path one of `_nodes` and `_rels`. Sums come from the engine as decimals and are
    made integers again. Times, durations, UUIDs and bytes (hex) become strings; so do the numbers that JSON lacks:
    NaN, Infinity and -Infinity.
    """
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, (list, tuple)):
        return [plain(item, tables) for item in value]
    if isinstance(value, dict):
        return _plain_dict(value, tables)
    if isinstance(value, float):
        return value if math.isfinite(value) else _named_number(value)
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else str(value)
    if isinstance(value, (date, datetime)):
        return value.isoformat()
    return value.hex() if isinstance(value, bytes) else str(value)


def _named_number(value: float) -> str:
    """The name of a number that JSON lacks, as JavaScript and XML Schema spell it but for the latter's INF."""
    if math.isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"


def _plain_dict(value: dict[Any, Any], tables: Tables) -> dict[str, object]:
    fields = {_lower_internal(str(name)): item for name, item in value.items()}
    label = fields.get("_label")
    if "_id" not in fields or not isinstance(label, str):
        return {name: plain(item, tables) for name, item in fields.items()}
    table = tables.nodes.get(label) or tables.edges.get(label)
    names = [name for name in (table.columns if table else fields) if name in fields and name not in _INTERNAL]
    return {"_label": label} | {name: plain(fields[name], tables) for name in names}


def _lower_internal(name: str) -> str:
    return name.lower() if name in ("_ID", "_LABEL", "_SRC", "_DST", "_NODES", "_RELS") else name


def _key(table: str) -> str:
    return quote(key_column(table))


def _columns(variable: str, table: NodeTable | EdgeTable) -> str:
    return ", ".join(f"{variable}.{quote(name)}" for name in table.columns)
