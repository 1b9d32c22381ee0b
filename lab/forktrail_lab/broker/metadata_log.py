"""Reads from the files of a KRaft metadata log what topics it knows and where they lie, while no broker runs.

Sources: Kafka's record batch, version 2 (kafka.apache.org, "Message format"); `TopicRecord.json` and
`PartitionRecord.json` of its metadata module; KIP-630 for snapshots, whose files hold batches as the log's do. Neither
is compressed.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

METADATA_FOLDER = "__cluster_metadata-0"
UUID_BYTES = 16
# What Kafka writes for a folder that it doesn't know: UUIDs of small numbers.
_RESERVED_DIRECTORY = "AAAAAAAAAAAAAAAAAAAA"
_TOPIC_RECORD, _PARTITION_RECORD = 2, 3
_BATCH = struct.Struct(">qiibIhiqqqhii")
"""Base offset, length of what follows it, leader epoch, magic, CRC, attributes, and seven more; then the records."""
_BEFORE_LENGTH_COUNTS = 12
_CONTROL_BATCH = 0x20
# A batch with no topic in it, such as the one that an idle controller writes twice a second, is shorter.
_TOPIC_BATCH_BYTES_MIN = _BATCH.size + UUID_BYTES + 8


@dataclass(frozen=True)
class KnownTopics:
    """What a metadata log and its snapshots were ever told, of deleted topics too.

    Attributes:
        ids: the topics' ids, as Kafka writes them.
        directories: ids of the data folders that partitions were assigned to.
    """

    ids: frozenset[str]
    directories: frozenset[str]


def known_topics(metadata: Path) -> KnownTopics:
    """Read the folder of a metadata log; where there is none, nothing is known.

    What stands behind a batch that was cut short doesn't count, as Kafka won't read it either. Checksums are not looked
    at: that is Kafka's own work.
    """
    ids: set[str] = set()
    directories: set[str] = set()
    for path in sorted([*metadata.glob("*.log"), *metadata.glob("*.checkpoint")]):
        with suppress(IndexError):  # a length that leads out of its batch: the rest is damaged
            for kind, fields in _records_in(path.read_bytes()):
                if kind == _TOPIC_RECORD:
                    ids.add(_id_of_topic(fields))
                elif kind == _PARTITION_RECORD:
                    directories.update(_directories_of_partition(fields))
    return KnownTopics(frozenset(ids), frozenset(id for id in directories if not id.startswith(_RESERVED_DIRECTORY)))


def _records_in(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Each record's kind, which Kafka calls its api key, and its fields."""
    position = 0
    while position + _BATCH.size <= len(data):
        header = _BATCH.unpack_from(data, position)
        length, attributes, count = header[1], header[5], header[12]
        end = position + _BEFORE_LENGTH_COUNTS + length
        if end > len(data) or end < position + _BATCH.size:
            return
        if end - position >= _TOPIC_BATCH_BYTES_MIN and not attributes & _CONTROL_BATCH:
            yield from _records_of_batch(data[position + _BATCH.size : end], count)
        position = end


def _records_of_batch(records: bytes, count: int) -> Iterator[tuple[int, bytes]]:
    position = 0
    for _ in range(count):
        length, start = _signed(records, position)
        if length <= 0:
            raise IndexError("a record has no bytes")
        position = start + length
        value = _value(records[start:position])
        # The value's own frame: its version, the kind of record, and that kind's version.
        _, at = _unsigned(value, 0)
        kind, at = _unsigned(value, at)
        _, at = _unsigned(value, at)
        yield kind, value[at:]


def _value(record: bytes) -> bytes:
    """A record's value; before it stand attributes, two deltas and the key."""
    _, at = _signed(record, 1)
    _, at = _signed(record, at)
    key_length, at = _signed(record, at)
    length, at = _signed(record, at + max(key_length, 0))
    return record[at : at + length]


def _id_of_topic(fields: bytes) -> str:
    """The id in a topic's record, which follows the name."""
    name_length, at = _unsigned(fields, 0)  # of a compact string: one more than its bytes
    end = at + name_length - 1
    return _id_text(fields[end : end + UUID_BYTES])


def _directories_of_partition(fields: bytes) -> list[str]:
    """The folders in a partition's record: after its number, its topic, four lists of nodes and three numbers."""
    at = 4 + UUID_BYTES
    for _ in range(4):
        length, at = _unsigned(fields, at)  # of a compact array: one more than its entries
        at += 4 * max(length - 1, 0)
    length, at = _unsigned(fields, at + 3 * 4)
    places = range(at, min(at + UUID_BYTES * max(length - 1, 0), len(fields)), UUID_BYTES)
    return [_id_text(fields[place : place + UUID_BYTES]) for place in places]


def _id_text(raw: bytes) -> str:
    """16 bytes as Kafka writes a UUID: base64url without padding."""
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def _unsigned(data: bytes, position: int) -> tuple[int, int]:
    """A varint, and the position after it."""
    value = shift = 0
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7


def _signed(data: bytes, position: int) -> tuple[int, int]:
    """A zig-zag varint, and the position after it."""
    value, position = _unsigned(data, position)
    return (value >> 1) ^ -(value & 1), position
