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
from forktrail_projectors.state import Changes, EdgeKey, NodeKey, Row, Value

ACCUMULATOR_BYTES = 256
EMPTY = "0" * (2 * ACCUMULATOR_BYTES)
_MODULUS = 1 << (8 * ACCUMULATOR_BYTES)
_LOG_TABLES = frozenset(table.name for table in NODE_TABLES.values() if not table.domain)
_LEFT_OUT = frozenset({("Run", "run_id")})


def advance(accumulator: str, changes: Changes) -> str:
    """The running sum after a batch of changes that holds all rows of each record in it."""
    total = int(accumulator, 16)
    records: defaultdict[object, _RecordPart] = defaultdict(_RecordPart)
    for key, (before, after) in changes.nodes.items():
        if key.table in _LOG_TABLES:
            assert before is None, "what the log's own tables hold never changes"
            records[_offset_of_node(key, after)].add_node(key, after)
        else:
            if before is not None:
                total -= _node_number(key, before)
            total += _node_number(key, after)
    for edge, row in changes.edges.items():
        records[_offset_of_edge(edge, row)].edges.append(_edge_parts(edge, row))
    return _hex(total + sum(part.number(offset) for offset, part in records.items()))


def recompute(rows: Iterable[tuple[NodeKey | EdgeKey, Row]]) -> str:
    """The running sum of all rows, from scratch; holds about 500 B a record until all are read."""
    total = 0
    records: defaultdict[object, _RecordPart] = defaultdict(_RecordPart)
    for key, row in rows:
        if isinstance(key, EdgeKey):
            records[_offset_of_edge(key, row)].edges.append(_edge_parts(key, row))
        elif key.table in _LOG_TABLES:
            records[_offset_of_node(key, row)].add_node(key, row)
        else:
            total += _node_number(key, row)
    return _hex(total + sum(part.number(offset) for offset, part in records.items()))


def state_digest(accumulator: str) -> str:
    """The digest to show and compare, 64 hex digits."""
    return hashlib.sha256(bytes.fromhex(accumulator)).hexdigest()


class _RecordPart:
    """What one record of the log left besides domain nodes; none of it ever changes."""

    __slots__ = ("edges", "nodes")

    def __init__(self) -> None:
        self.nodes: list[tuple[object, ...]] = []
        self.edges: list[tuple[object, ...]] = []

    def add_node(self, key: NodeKey, row: Row) -> None:
        self.nodes.append((key.table, *_VALUES[key.table](row)))

    def number(self, offset: object) -> int:
        """Of the JSON text [offset, nodes, relations], both sorted."""
        return _number((offset, sorted(self.nodes), sorted(self.edges)))


def _offset_of_node(key: NodeKey, row: Row) -> object:
    """The offset of the record that a row of the log's own tables belongs to; anything, where the row is damaged."""
    return key.id if key.table == "Event" else row["offset"]


def _offset_of_edge(edge: EdgeKey, row: Row) -> object:
    table, source, target = edge
    if table == "PRODUCED":
        return source.id
    return target.id if table == "CAUSED" else row["created_offset"]


def _edge_parts(edge: EdgeKey, row: Row) -> tuple[object, ...]:
    return (edge.table, *edge.source, *edge.target, *_VALUES[edge.table](row))


def _node_number(key: NodeKey, row: Row) -> int:
    return _number((tuple(key), _VALUES[key.table](row)))


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
