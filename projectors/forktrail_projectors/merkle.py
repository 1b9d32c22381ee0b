"""The Merkle tree over a log: leaf hashes of records, and a frontier that grows by one leaf at a time.

Source: RFC 6962, section 2.1. A leaf's data is the record's timestamp, key, headers and value, each with its length
before it, so that no two records share a leaf's bytes.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Sequence

from forktrail_projectors.record import LogRecord

EMPTY_ROOT = hashlib.sha256(b"").hexdigest()
_ABSENT = 0xFFFFFFFF


def record_hash(record: LogRecord) -> str:
    """Hex leaf hash of a record."""
    parts = [struct.pack(">q", record.timestamp_ms), _prefixed(record.key), struct.pack(">I", len(record.headers))]
    for name, value in record.headers:
        parts += [_prefixed(name.encode()), _prefixed(value)]
    parts.append(_prefixed(record.value))
    return hashlib.sha256(b"\x00" + b"".join(parts)).hexdigest()


def grow(frontier: Sequence[str], size: int, leaf: str) -> tuple[str, ...]:
    """The frontier after one more leaf.

    Args:
        frontier: hex roots of the complete subtrees, largest first: one for each bit set in `size`.
        size: leaves so far.
        leaf: hex hash of the new leaf.
    """
    roots = [*frontier, leaf]
    while size & 1:  # two subtrees of one size become one of the next
        right, left = roots.pop(), roots.pop()
        roots.append(_node(left, right))
        size >>= 1
    return tuple(roots)


def root(frontier: Sequence[str]) -> str:
    """Hex root of the tree with this frontier."""
    if not frontier:
        return EMPTY_ROOT
    value = frontier[-1]
    for left in reversed(frontier[:-1]):
        value = _node(left, value)
    return value


def _node(left: str, right: str) -> str:
    return hashlib.sha256(b"\x01" + bytes.fromhex(left) + bytes.fromhex(right)).hexdigest()


def _prefixed(data: bytes | None) -> bytes:
    return struct.pack(">I", _ABSENT) if data is None else struct.pack(">I", len(data)) + data
