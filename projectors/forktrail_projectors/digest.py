"""The state digest: one value for everything a graph holds, kept as rows change.

What a graph holds falls into parts: a node with its row is one, so is a relation that may be removed, and so is a
record of the log with its Event row, the id it took and the other relations it made, none of which ever changes. Each
part hashes to a number of 2,048 bits; the digest is the hash of their sum, so the order of parts doesn't matter and a
changed row costs one subtraction and one addition. Source: LtHash, after Bellare and Micciancio, "A New Paradigm for
Collision-free Hashing", 1997; at 2,048 bits a set with the same sum is out of reach of generalised-birthday search.

The cursor, and the run's id, are left out: the same records give the same digest, whatever their topic is called.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterable

import orjson

from forktrail_projectors.graph.declared_tables import BUILT_IN, Tables
from forktrail_projectors.graph.schema import EdgeTable, NodeTable, values_in
from forktrail_projectors.state import Changes, EdgeKey, EdgeTables, Ends, NodeId, NodeKey, Row, Value

ACCUMULATOR_BYTES = 256
EMPTY = "0" * (2 * ACCUMULATOR_BYTES)
_MODULUS = 1 << (8 * ACCUMULATOR_BYTES)
# Their rows are of one record each, whose offset stands in them.
_LOG_TABLES = frozenset(name for name, table in BUILT_IN.nodes.items() if not table.domain)
_LEFT_OUT = {"Run": frozenset({"run_id"})}

Values = Callable[[Row], tuple[Value, ...]]


def advance(accumulator: str, changes: Changes, tables: Tables = BUILT_IN) -> str:
    """The running sum after a batch of changes that holds all rows of each record in it.

    Args:
        tables: the graph's, with those that the changes declare.
    """
    total = int(accumulator, 16)
    values = _ValuesByTable(tables)
    records = _Records(values)
    for table, created in changes.created.items():
        if table in _LOG_TABLES:
            for id, row in created.items():
                records.add_node(table, id, row)
        else:
            of_row = values[table]
            total += sum(_node_number(table, id, of_row(row)) for id, row in created.items())
    for table, changed in changes.changed.items():
        assert table not in _LOG_TABLES, "what the log's own tables hold never changes"
        of_row = values[table]
        for id, (before, after) in changed.items():
            assert before is not None, "what is changed was there"
            total += _node_number(table, id, of_row(after)) - _node_number(table, id, of_row(before))
    for ends_of, parted in changes.parted.items():
        total -= sum(_edge_number(ends_of, ends, values[ends_of[0]](row)) for ends, row in parted.items())
    for ends_of, joined in changes.joined.items():
        if tables.edges[ends_of[0]].removable:
            total += sum(_edge_number(ends_of, ends, values[ends_of[0]](row)) for ends, row in joined.items())
            continue
        for ends, row in joined.items():
            records.add_edge(ends_of, ends, row)
    return _hex(total + records.number())


def recompute(rows: Iterable[tuple[NodeKey | EdgeKey, Row]], tables: Tables = BUILT_IN) -> str:
    """The running sum of all rows, from scratch; holds about 500 B a record until all are read."""
    total = 0
    values = _ValuesByTable(tables)
    records = _Records(values)
    for key, row in rows:
        if isinstance(key, EdgeKey):
            table, source, target = key
            ends_of, ends = (table, source.table, target.table), (source.id, target.id)
            if tables.edges[table].removable:
                total += _edge_number(ends_of, ends, values[table](row))
            else:
                records.add_edge(ends_of, ends, row)
        elif key.table in _LOG_TABLES:
            records.add_node(key.table, key.id, row)
        else:
            total += _node_number(key.table, key.id, values[key.table](row))
    return _hex(total + records.number())


def state_digest(accumulator: str) -> str:
    """The digest to show and compare, 64 hex digits."""
    return hashlib.sha256(bytes.fromhex(accumulator)).hexdigest()


_Part = tuple[object, ...]


class _Records:
    """What records of the log left besides domain nodes, by offset; none of it ever changes."""

    def __init__(self, values: _ValuesByTable) -> None:
        self._values = values
        # Nodes and relations apart; where a row is damaged, what stands for its offset may be anything.
        self._parts: defaultdict[object, tuple[list[_Part], list[_Part]]] = defaultdict(lambda: ([], []))

    def add_node(self, table: str, id: NodeId, row: Row) -> None:
        offset = id if table == "Event" else row["offset"]
        self._parts[offset][0].append((table, *self._values[table](row)))

    def add_edge(self, tables: EdgeTables, ends: Ends, row: Row) -> None:
        table, source_table, target_table = tables
        source, target = ends
        offset = source if table == "PRODUCED" else target if table == "CAUSED" else row["created_offset"]
        self._parts[offset][1].append((table, source_table, source, target_table, target, *self._values[table](row)))

    def number(self) -> int:
        """The sum over records, each the JSON text [offset, nodes, relations], both sorted."""
        return sum(_number((offset, sorted(nodes), sorted(edges))) for offset, (nodes, edges) in self._parts.items())


class _ValuesByTable(dict[str, "Values"]):
    """By table, what takes from a row the values that count."""

    def __init__(self, tables: Tables) -> None:
        super().__init__()
        self._tables = tables

    def __missing__(self, table: str) -> Values:
        known = self._tables.nodes.get(table) or self._tables.edges[table]
        self[table] = made = _values_of(known)
        return made


def _node_number(table: str, id: NodeId, values: tuple[Value, ...]) -> int:
    return _number(((table, id), values))


def _edge_number(tables: EdgeTables, ends: Ends, values: tuple[Value, ...]) -> int:
    return _number((tables, ends, values))


def _number(part: object) -> int:
    """SHAKE-256 of a part as JSON without white space (RFC 8259), as a number of 2,048 bits."""
    return int.from_bytes(hashlib.shake_256(orjson.dumps(part)).digest(ACCUMULATOR_BYTES))


def _values_of(table: NodeTable | EdgeTable) -> Values:
    left_out = _LEFT_OUT.get(table.name)
    if left_out is None:
        return table.values
    return values_in({name: kind for name, kind in table.columns.items() if name not in left_out})


def _hex(total: int) -> str:
    return f"{total % _MODULUS:0{2 * ACCUMULATOR_BYTES}x}"
