"""The Merkle tree over a log: leaf hashes of records, and a frontier that grows by one leaf at a time.

Source: RFC 6962, section 2.1. A leaf's data is the record's timestamp, key, headers and value, each with its length
before it, so that no two records share a leaf's bytes.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable, Sequence
from functools import lru_cache

from forktrail_projectors.record import LogRecord

EMPTY_ROOT = hashlib.sha256(b"").hexdigest()
_ABSENT = struct.pack(">I", 0xFFFFFFFF)
_pack_count = struct.Struct(">I").pack
_pack_time = struct.Struct(">q").pack


def record_hash(record: LogRecord) -> str:
    """Hex leaf hash of a record."""
    return leaf(record).hex()


def leaf(record: LogRecord) -> bytes:
    """Leaf hash of a record, 32 bytes."""
    headers = record.headers
    parts = [b"\x00", _pack_time(record.timestamp_ms), *_framed(record.key), _pack_count(len(headers))]
    for name, content in headers:
        if content is None:
            parts += (_framed_name(name), _ABSENT)
        else:
            parts += (_framed_name(name), _pack_count(len(content)), content)
    parts += _framed(record.value)
    return hashlib.sha256(b"".join(parts)).digest()


def grow(frontier: Sequence[str], size: int, leaves: Iterable[bytes]) -> tuple[str, ...]:
    """The frontier after more leaves.

    Args:
        frontier: hex roots of the complete subtrees, largest first: one for each bit set in `size`.
        size: leaves so far.
        leaves: hashes of the new leaves.
    """
    roots = [bytes.fromhex(root) for root in frontier]
    for leaf in leaves:
        roots.append(leaf)
        complete = size
        while complete & 1:  # two subtrees of one size become one of the next
            right, left = roots.pop(), roots.pop()
            roots.append(_node(left, right))
            complete >>= 1
        size += 1
    return tuple(root.hex() for root in roots)


def root(frontier: Sequence[str]) -> str:
    """Hex root of the tree with this frontier."""
    if not frontier:
        return EMPTY_ROOT
    value = bytes.fromhex(frontier[-1])
    for left in reversed(frontier[:-1]):
        value = _node(bytes.fromhex(left), value)
    return value.hex()


def _node(left: bytes, right: bytes) -> bytes:
    return hashlib.sha256(b"\x01" + left + right).digest()


def _framed(data: bytes | None) -> tuple[bytes, ...]:
    """Bytes with their length before them."""
    return (_ABSENT,) if data is None else (_pack_count(len(data)), data)


@lru_cache(maxsize=1_024)  # the same few come with every record
def _framed_name(name: str) -> bytes:
    return b"".join(_framed(name.encode()))
