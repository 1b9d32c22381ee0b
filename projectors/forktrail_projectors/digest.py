"""The state digest: one value for everything a graph holds, kept as rows change.

What a graph holds falls into parts: a node with its row is one, and so is a record of the log with its Event row, the
id it took and the relations it made, none of which ever changes. Each part hashes to a number of 2,048 bits; the digest
is the hash of their sum, so the order of parts doesn't matter and a changed row costs one subtraction and one addition.
Source: LtHash, after Bellare and Micciancio, "A New Paradigm for Collision-free Hashing", 1997; at 2,048 bits a set
with the same sum is out of reach of generalised-birthday search.

The cursor, and the run's id, are left out: the same records give the same digest, whatever their topic is called.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterable
from operator import itemgetter

import orjson

from forktrail_projectors.graph.schema import EDGE_TABLES, NODE_TABLES, EdgeTable, NodeTable
from forktrail_projectors.state import Changes, EdgeKey, EdgeTables, Ends, NodeId, NodeKey, Row, Value

ACCUMULATOR_BYTES = 256
EMPTY = "0" * (2 * ACCUMULATOR_BYTES)
_MODULUS = 1 << (8 * ACCUMULATOR_BYTES)
_LOG_TABLES = frozenset(table.name for table in NODE_TABLES.values() if not table.domain)
_LEFT_OUT = frozenset({("Run", "run_id")})


def advance(accumulator: str, changes: Changes) -> str:
    """The running sum after a batch of changes that holds all rows of each record in it."""
    total = int(accumulator, 16)
    records = _Records()
    for table, created in changes.created.items():
        if table in _LOG_TABLES:
            for id, row in created.items():
                records.add_node(table, id, row)
        else:
            total += sum(_node_number(table, id, row) for id, row in created.items())
    for table, changed in changes.changed.items():
        assert table not in _LOG_TABLES, "what the log's own tables hold never changes"
        for id, (before, after) in changed.items():
            assert before is not None, "what is changed was there"
            total += _node_number(table, id, after) - _node_number(table, id, before)
    for tables, joined in changes.joined.items():
        for ends, row in joined.items():
            records.add_edge(tables, ends, row)
    return _hex(total + records.number())


def recompute(rows: Iterable[tuple[NodeKey | EdgeKey, Row]]) -> str:
    """The running sum of all rows, from scratch; holds about 500 B a record until all are read."""
    total = 0
    records = _Records()
    for key, row in rows:
        if isinstance(key, EdgeKey):
            table, source, target = key
            records.add_edge((table, source.table, target.table), (source.id, target.id), row)
        elif key.table in _LOG_TABLES:
            records.add_node(key.table, key.id, row)
        else:
            total += _node_number(key.table, key.id, row)
    return _hex(total + records.number())


def state_digest(accumulator: str) -> str:
    """The digest to show and compare, 64 hex digits."""
    return hashlib.sha256(bytes.fromhex(accumulator)).hexdigest()


_Part = tuple[object, ...]


class _Records:
    """What records of the log left besides domain nodes, by offset; none of it ever changes."""

    def __init__(self) -> None:
        # Nodes and relations apart; where a row is damaged, what stands for its offset may be anything.
        self._parts: defaultdict[object, tuple[list[_Part], list[_Part]]] = defaultdict(lambda: ([], []))

    def add_node(self, table: str, id: NodeId, row: Row) -> None:
        offset = id if table == "Event" else row["offset"]
        self._parts[offset][0].append((table, *_VALUES[table](row)))

    def add_edge(self, tables: EdgeTables, ends: Ends, row: Row) -> None:
        table, source_table, target_table = tables
        source, target = ends
        offset = source if table == "PRODUCED" else target if table == "CAUSED" else row["created_offset"]
        self._parts[offset][1].append((table, source_table, source, target_table, target, *_VALUES[table](row)))

    def number(self) -> int:
        """The sum over records, each the JSON text [offset, nodes, relations], both sorted."""
        return sum(_number((offset, sorted(nodes), sorted(edges))) for offset, (nodes, edges) in self._parts.items())


def _node_number(table: str, id: NodeId, row: Row) -> int:
    return _number(((table, id), _VALUES[table](row)))


def _number(part: object) -> int:
    """SHAKE-256 of a part as JSON without white space (RFC 8259), as a number of 2,048 bits."""
    return int.from_bytes(hashlib.shake_256(orjson.dumps(part)).digest(ACCUMULATOR_BYTES))


def _values_of(table: NodeTable | EdgeTable) -> Callable[[Row], tuple[Value, ...]]:
    names = [name for name in table.columns if (table.name, name) not in _LEFT_OUT]
    if not names:
        return lambda row: ()
    if len(names) == 1:
        return lambda row: (row[names[0]],)
    return itemgetter(*names)


# Made once, since every row that changes goes through one.
_VALUES = {name: _values_of(table) for name, table in (NODE_TABLES | EDGE_TABLES).items()}


def _hex(total: int) -> str:
    return f"{total % _MODULUS:0{2 * ACCUMULATOR_BYTES}x}"
