"""The tail of a Kafka partition on disk, and how to lose it, as a power failure does.

Source: Kafka's record batch format, version 2 (kafka.apache.org/documentation, "Record Batch"): baseOffset int64,
batchLength int32 (of what follows it), and lastOffsetDelta int32 at byte 23; all big-endian.
"""

from __future__ import annotations

import os
import struct
from dataclasses import dataclass
from pathlib import Path

_HEAD = struct.Struct(">qi")
_LAST_OFFSET_DELTA = struct.Struct(">i")
_LAST_OFFSET_DELTA_AT = 23


@dataclass(frozen=True)
class Batch:
    """A record batch.

    Attributes:
        position: its first byte in the segment.
        size: in bytes.
        offset: of its first record.
        next_offset: after its last record.
    """

    position: int
    size: int
    offset: int
    next_offset: int


def last_segment(partition: Path) -> Path:
    """The segment that a partition's folder ends with; its name is its first offset."""
    return max(partition.glob("*.log"))


def batches(segment: Path) -> list[Batch]:
    """The whole batches of a segment, in order."""
    data = segment.read_bytes()
    found: list[Batch] = []
    position = 0
    while position + _HEAD.size <= len(data):
        offset, length = _HEAD.unpack_from(data, position)
        size = _HEAD.size + length
        if length <= 0 or position + size > len(data):
            break
        (delta,) = _LAST_OFFSET_DELTA.unpack_from(data, position + _LAST_OFFSET_DELTA_AT)
        found.append(Batch(position, size, offset, offset + delta + 1))
        position += size
    return found


def lose_tail(partition: Path, records: int, *, torn: bool = False) -> int:
    """Cut at least so many records from the end of a partition whose broker doesn't run; returns its new end.

    Args:
        torn: leave half of the first batch that is lost, as an interrupted write does.
    """
    segment = last_segment(partition)
    whole = batches(segment)
    end = whole[-1].next_offset
    first_lost = next(batch for batch in reversed(whole) if end - batch.offset >= records)
    os.truncate(segment, first_lost.position + (first_lost.size // 2 if torn else 0))
    return first_lost.offset
