"""The tail of a partition is found batch by batch, and cut where a batch begins."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from chaos.segment import Batch, batches, last_segment, lose_tail


def batch(offset: int, records: int, payload: bytes) -> bytes:
    """A record batch of version 2: its 61 bytes of header, the fields of which this reads by name alone."""
    epoch_magic_crc_attributes = struct.pack(">ibih", 0, 2, 0, 0)
    last_offset_delta = struct.pack(">i", records - 1)
    times_producer_count = struct.pack(">qqqhii", 0, 0, -1, -1, -1, records)
    rest = epoch_magic_crc_attributes + last_offset_delta + times_producer_count + payload
    return struct.pack(">qi", offset, len(rest)) + rest


@pytest.fixture
def partition(tmp_path: Path) -> Path:
    """Two segments; the last holds batches of 3, 1 and 2 records from offset 10 on."""
    (tmp_path / "00000000000000000000.log").write_bytes(batch(0, 10, b"first segment"))
    last = batch(10, 3, b"abc") + batch(13, 1, b"d") + batch(14, 2, b"ef")
    (tmp_path / "00000000000000000010.log").write_bytes(last)
    (tmp_path / "00000000000000000010.index").write_bytes(b"")
    return tmp_path


def test_batches_are_read_by_their_lengths_and_offsets(partition: Path) -> None:
    assert batches(last_segment(partition)) == [Batch(0, 64, 10, 13), Batch(64, 62, 13, 14), Batch(126, 63, 14, 16)]


def test_half_a_batch_at_the_end_is_none(partition: Path) -> None:
    segment = last_segment(partition)
    for cut in (1, 60, 62):
        segment.write_bytes(segment.read_bytes()[: 126 + 63 - cut])
        assert [found.next_offset for found in batches(segment)] == [13, 14]


@pytest.mark.parametrize(("records", "end"), [(1, 14), (2, 14), (3, 13), (4, 10), (6, 10)])
def test_at_least_so_many_records_are_lost_in_whole_batches(partition: Path, records: int, end: int) -> None:
    assert lose_tail(partition, records) == end
    kept = batches(last_segment(partition))
    assert (kept[-1].next_offset if kept else 10) == end


def test_a_torn_tail_keeps_a_part_of_the_first_lost_batch(partition: Path) -> None:
    assert lose_tail(partition, 2, torn=True) == 14
    segment = last_segment(partition)
    assert segment.stat().st_size == 126 + 31
    assert batches(segment)[-1].next_offset == 14
