"""The state digest: one value for everything a graph holds, kept as rows change.

Each row hashes to a number of 2,048 bits; the digest is the hash of their sum, so the order of rows doesn't matter and
a changed row costs one subtraction and one addition. Source: LtHash, after Bellare and Micciancio, "A New Paradigm for
Collision-free Hashing", 1997; at 2,048 bits a set with the same sum is out of reach of generalised-birthday search.

The cursor, and the run's id, are left out: the same records give the same digest, whatever their topic is called.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from operator import itemgetter

import orjson

from forktrail_projectors.graph.schema import EDGE_TABLES, NODE_TABLES, EdgeTable, NodeTable
from forktrail_projectors.state import Changes, EdgeKey, NodeKey, Row, Value

ACCUMULATOR_BYTES = 256
EMPTY = "0" * (2 * ACCUMULATOR_BYTES)
_MODULUS = 1 << (8 * ACCUMULATOR_BYTES)
_LEFT_OUT = frozenset({("Run", "run_id")})


def advance(accumulator: str, changes: Changes) -> str:
    """The running sum after a batch of changes."""
    total = int(accumulator, 16)
    for key, change in changes.nodes.items():
        if change.before is not None:
            total -= row_number(key, change.before)
        total += row_number(key, change.after)
    for edge, row in changes.edges.items():
        total += row_number(edge, row)
    return _hex(total)


def recompute(rows: Iterable[tuple[NodeKey | EdgeKey, Row]]) -> str:
    """The running sum of all rows, from scratch."""
    return _hex(sum(row_number(key, row) for key, row in rows))


def state_digest(accumulator: str) -> str:
    """The digest to show and compare, 64 hex digits."""
    return hashlib.sha256(bytes.fromhex(accumulator)).hexdigest()


def row_number(key: NodeKey | EdgeKey, row: Row) -> int:
    """The number of one row: SHAKE-256 of its table, key and columns in the table's order, as JSON (RFC 8259)."""
    table = key.table
    identity = (table, key.id) if isinstance(key, NodeKey) else (table, *key.source, *key.target)
    text = orjson.dumps((identity, _VALUES[table](row)))
    return int.from_bytes(hashlib.shake_256(text).digest(ACCUMULATOR_BYTES))


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
