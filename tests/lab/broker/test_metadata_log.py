"""What a metadata log knows, read from one that Kafka 4.4.0 wrote when it was given two topics."""

from __future__ import annotations

import re
from pathlib import Path

from forktrail_lab.broker.metadata_log import KnownTopics, known_topics

RECORDED = Path(__file__).with_name("metadata-4.4.0.log").read_bytes()
# As the folders beside it said, in partition.metadata and meta.properties.
A_TOPIC, B_TOPIC = "cIcDVyC2RI6UVAdNwoz_3g", "A5lT1MSTQ1CM2tUjBc4inw"
DIRECTORY = "DXalVro8UNMIiqcTPDVZxg"
NOTHING = KnownTopics(frozenset(), frozenset())


def known(folder: Path, data: bytes, name: str = "00000000000000000000.log") -> KnownTopics:
    (folder / name).write_bytes(data)
    return known_topics(folder)


def batches() -> list[bytes]:
    """The batches of the log: 8 bytes of offset, 4 of length, and as many as that."""
    found, rest = [], RECORDED
    while rest:
        end = 12 + int.from_bytes(rest[8:12], "big")
        found.append(rest[:end])
        rest = rest[end:]
    return found


def test_topics_and_their_folder_are_known(tmp_path: Path) -> None:
    assert known(tmp_path, RECORDED) == KnownTopics(frozenset({A_TOPIC, B_TOPIC}), frozenset({DIRECTORY}))


def test_what_a_snapshot_holds_is_known_too(tmp_path: Path) -> None:
    (batch,) = (batch for batch in batches() if b"b-topic" in batch)
    known(tmp_path, b"".join(other for other in batches() if other != batch))
    assert B_TOPIC not in known_topics(tmp_path).ids
    assert B_TOPIC in known(tmp_path, batch, "00000000000000000026-0000000001.checkpoint").ids


def test_a_log_cut_anywhere_knows_what_its_whole_batches_tell(tmp_path: Path) -> None:
    ends = [sum(len(batch) for batch in batches()[: number + 1]) for number in range(len(batches()))]
    (a_end,) = (end for end, batch in zip(ends, batches(), strict=True) if b"a-topic" in batch)
    (b_end,) = (end for end, batch in zip(ends, batches(), strict=True) if b"b-topic" in batch)
    for length in range(len(RECORDED) + 1):
        expected = {topic for topic, end in ((A_TOPIC, a_end), (B_TOPIC, b_end)) if length >= end}
        assert known(tmp_path, RECORDED[:length]).ids == expected


def test_a_log_that_was_not_written_to_its_end_stops_at_the_zeros(tmp_path: Path) -> None:
    assert known(tmp_path, RECORDED + bytes(4096)).ids == {A_TOPIC, B_TOPIC}
    assert known(tmp_path, bytes(4096) + RECORDED) == NOTHING


def test_damaged_bytes_are_read_without_an_error_and_hide_nothing_that_stands_before_them(tmp_path: Path) -> None:
    ends = [sum(len(batch) for batch in batches()[: number + 1]) for number in range(len(batches()))]
    told = {topic: end for topic, name in ((A_TOPIC, b"a-topic"), (B_TOPIC, b"b-topic"))
            for end, batch in zip(ends, batches(), strict=True) if name in batch}  # fmt: skip
    for place in range(0, len(RECORDED), 7):
        for byte in (b"\xff", b"\x80", b"\x00"):
            ids = known(tmp_path, RECORDED[:place] + byte * 9 + RECORDED[place + 9 :]).ids
            assert ids >= {topic for topic, end in told.items() if end <= place}
            assert all(re.fullmatch("[A-Za-z0-9_-]{0,22}", id) for id in ids)


def test_no_folder_and_an_empty_log_know_nothing(tmp_path: Path) -> None:
    assert known_topics(tmp_path / "none") == NOTHING
    assert known(tmp_path, b"") == NOTHING
