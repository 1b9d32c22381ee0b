"""A journal outlives its writer: what was being sent and what was acknowledged can be told after any kill."""

from __future__ import annotations

from pathlib import Path

import pytest

from chaos.journal import Content, Journal, JournalWriter, Sent
from chaos.plan import Expected


def sent(number: int) -> Sent:
    headers = (("ce_id", b"\xff\x00"), ("empty", None))
    content = Content(1_700_000_000_000 + number, "süß".encode(), bytes(range(256)), headers)
    return Sent(number, f"id-{number}", content, Expected("void", "already_reviewed"))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal.jsonl"


def read(path: Path) -> Journal:
    journal = Journal(path)
    journal.update()
    return journal


def test_a_journal_that_is_not_there_yet_is_empty(path: Path) -> None:
    assert read(path).sent == []


def test_what_was_sent_is_read_back_byte_for_byte(path: Path) -> None:
    with JournalWriter(path) as writer:
        writer.sending([sent(0), sent(1)])
    assert read(path).sent == [sent(0), sent(1)]


def test_in_flight_is_what_was_sent_and_not_acknowledged(path: Path) -> None:
    journal = Journal(path)
    with JournalWriter(path) as writer:
        writer.sending([sent(0), sent(1), sent(2)])
        journal.update()
        assert (journal.in_flight, journal.end) == ({0, 1, 2}, 0)
        writer.acknowledged([0, 2], [4, 7])
        journal.update()
    assert (journal.in_flight, journal.offsets, journal.end) == ({1}, {0: 4, 2: 7}, 8)
    assert journal.unacknowledged() == [sent(1)]


def test_the_first_acknowledgement_of_an_event_counts(path: Path) -> None:
    with JournalWriter(path) as writer:
        writer.sending([sent(0)])
        writer.acknowledged([0], [0])
        writer.acknowledged([0], [5])
    journal = read(path)
    assert (journal.offsets, journal.end) == ({0: 0}, 6)


@pytest.mark.parametrize("torn_bytes", [1, 50, 200])
def test_half_a_line_of_a_killed_writer_counts_for_nothing(path: Path, torn_bytes: int) -> None:
    with JournalWriter(path) as writer:
        writer.sending([sent(0)])
        whole = path.stat().st_size
        writer.sending([sent(1)])
    path.write_bytes(path.read_bytes()[: whole + torn_bytes])
    journal = read(path)
    assert journal.sent == [sent(0)]
    journal.cut_half_line()
    journal.update()  # as happens while the next writer is on its way
    with JournalWriter(path) as writer:
        writer.sending([sent(1)])
        writer.acknowledged([1], [1])
    journal.update()
    assert journal.sent == [sent(0), sent(1)]
    assert journal.offsets == {1: 1}
