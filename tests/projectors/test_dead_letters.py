"""Dead letters are the records refused for what they are, each with all that fits into a letter."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Iterator

import pytest

from forktrail_projectors.dead_letters import (
    CONTENT_BYTES_MAX,
    Cure,
    cure_of,
    dead_verdicts,
    letter_of,
    sent_again,
)
from forktrail_projectors.graph.cypher import CypherGraph
from forktrail_projectors.record import UNREADABLE_HEADERS, LogRecord, Verdict
from forktrail_schemas import events
from forktrail_schemas.events import RunAnnounced
from forktrail_schemas.wire import build, decode, encode
from support.story import OPERATOR, STRANGER, Story

# What `authority` refuses in a signature; a key keeps its holder and roles, and stays revoked.
SIGNATURE_REASONS = ("actor_mismatch", "bad_signature", "key_revoked", "role_missing", "unsigned")


@pytest.fixture
def graph() -> Iterator[CypherGraph]:
    graph = CypherGraph.in_memory()
    yield graph
    graph.close()


@pytest.fixture
def story(graph: CypherGraph) -> Story:
    story = Story(graph=graph)
    story.open()
    return story


def raw(story: Story, value: bytes | None) -> LogRecord:
    return LogRecord(len(story.records), 0, None, value)


def found(story: Story, graph: CypherGraph) -> list[int]:
    return [verdict.offset for verdict in dead_verdicts(graph, 0, len(story.records))]


def decided(story: Story) -> events.ApprovalDecided:
    subject = {"kind": "case", "id": "case-00000000000000000000"}
    return story.event(events.ApprovalDecided, "olga", subject=subject, decision="approve", reason="")


def test_what_is_valid_or_refused_for_when_it_came_is_no_dead_letter(story: Story, graph: CypherGraph) -> None:
    goal = story.event(events.GoalSet, text="more")
    assert story.tell(goal).valid
    assert story.tell(goal).kind == "duplicate"
    assert story.tell(decided(story), OPERATOR).reason == "unknown_case"
    assert story.close().valid
    assert story.tell(story.event(events.GoalSet, text="too late")).reason == "run_closed"
    assert found(story, graph) == []


def test_what_is_refused_for_what_it_is_is_one(story: Story, graph: CypherGraph) -> None:
    start = len(story.records)
    announced = build(RunAnnounced, {"run": "story", "topic": "t", "goal": "g", "status": "open", "opened_at": 1})
    goal = story.event(events.GoalSet, text="more")
    lying = dataclasses.replace(story.record(goal), headers=(("ce_id", b"someone-else"),))
    verdicts = [
        story.append(raw(story, b"not avro")),
        story.append(raw(story, None)),
        story.append(raw(story, encode(announced))),
        story.append(dataclasses.replace(lying, offset=len(story.records))),
        story.tell(decided(story)),
        story.tell(decided(story), STRANGER),
    ]
    assert [verdict.reason for verdict in verdicts] == [
        "not_avro",
        "no_value",
        "no_rule",
        "header_mismatch",
        "unsigned",
        "unknown_key",
    ]
    assert list(dead_verdicts(graph, 0, len(story.records))) == verdicts
    assert [verdict.offset for verdict in dead_verdicts(graph, start + 1, start + 3)] == [start + 1, start + 2]


def test_a_second_event_under_a_taken_id_is_one_and_the_first_is_not(story: Story, graph: CypherGraph) -> None:
    first = story.event(events.GoalSet, text="first")
    late = story.event(events.ApprovalDecided, "olga", **decided(story).model_dump(exclude={"meta"}))
    for event, key in ((first, None), (late, OPERATOR)):
        story.tell(event, key)
        other = story.event(events.GoalSet, event_id=event.meta.event_id, text="other")
        assert story.tell(other).reason == "id_reused"
        assert found(story, graph)[-1] == len(story.records) - 1
    assert len(found(story, graph)) == 2


def test_an_event_that_was_unsigned_and_counts_once_it_is_signed_stays_one_where_it_was(
    story: Story, graph: CypherGraph
) -> None:
    offset = len(story.records)
    event = story.event(events.RevisionAdvanced, "olga", from_revision="r1", to_revision="r2", reason="")
    assert story.tell(event).reason == "unsigned"
    assert story.tell(event, OPERATOR).valid
    assert found(story, graph) == [offset]


def test_letters_are_found_across_pages(story: Story, graph: CypherGraph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("forktrail_projectors.dead_letters._PAGE_OFFSETS", 2)
    dead = [story.append(raw(story, b"x")).offset for _ in range(5)]
    assert found(story, graph) == dead


RECORD = LogRecord(7, 1_700_000_000_123, b"k\xff", b"\x00value", (("a", b"1"), ("a", None), ("ü", b"\xff")))


def test_a_letter_holds_the_record_and_its_verdict_and_survives_the_wire() -> None:
    verdict = Verdict(7, "void", "bad_signature", "of olga", "an-id", "forktrail.GoalSet")
    letter = letter_of("run-1", RECORD, verdict, 5)
    assert decode(encode(letter)) == letter
    assert (letter.run, letter.offset, letter.verdict, letter.reason) == ("run-1", 7, "void", "bad_signature")
    assert (letter.detail, letter.event_id, letter.type) == ("of olga", "an-id", "forktrail.GoalSet")
    assert (letter.key, letter.value, letter.left_out) == (RECORD.key, RECORD.value, False)
    assert [(header.name, header.value) for header in letter.headers] == list(RECORD.headers)
    assert (letter.value_bytes, letter.value_sha256) == (6, hashlib.sha256(b"\x00value").hexdigest())
    assert (letter.recorded_at, letter.published_at) == (1_700_000_000_123_000, 5)


@pytest.mark.parametrize(
    "record",
    [
        dataclasses.replace(RECORD, value=bytes(CONTENT_BYTES_MAX)),
        dataclasses.replace(RECORD, key=bytes(CONTENT_BYTES_MAX)),
        dataclasses.replace(RECORD, headers=tuple(("h", bytes(100_000)) for _ in range(10))),
        dataclasses.replace(RECORD, headers=(("h" * 70_000, b""),)),
        dataclasses.replace(RECORD, value=bytes(4_000_000)),
    ],
    ids=["value", "key", "headers", "a header's name", "as large as Kafka takes"],
)
def test_a_record_too_large_for_a_letter_is_named_by_digest_and_size(record: LogRecord) -> None:
    letter = letter_of("run-1", record, Verdict(7, "unreadable", "not_avro"), 5)
    assert (letter.left_out, letter.key, letter.headers, letter.value) == (True, None, (), None)
    assert letter.value_sha256 == hashlib.sha256(record.value or b"").hexdigest()
    assert letter.value_bytes == len(record.value or b"")
    encode(letter)


def test_the_largest_that_fits_is_sent_whole() -> None:
    value = bytes(CONTENT_BYTES_MAX - 1)
    letter = letter_of("run-1", LogRecord(7, 0, b"k", value), Verdict(7, "unreadable", "not_avro", "x" * 10_000), 5)
    assert (letter.left_out, letter.value) == (False, value)
    encode(letter)


@pytest.mark.parametrize(
    "record", [LogRecord(7, -1, None, None), LogRecord(7, 0, None, b"x", UNREADABLE_HEADERS)], ids=["empty", "headers"]
)
def test_what_a_record_lacks_a_letter_lacks(record: LogRecord) -> None:
    letter = letter_of("run-1", record, Verdict(7, "unreadable", "no_value", "a\x00b"), 5)
    assert (letter.key, letter.value, letter.headers, letter.detail) == (None, record.value, (), "a\\x00b")
    encode(letter)


def test_what_would_let_a_record_count_is_known_by_its_reason() -> None:
    assert {reason: cure_of(reason) for reason in ("unknown_key", "run_not_open")} == {
        "unknown_key": Cure.LATER,
        "run_not_open": Cure.LATER,
    }
    assert cure_of("unknown_schema") is Cure.SCHEMA
    assert {cure_of(reason) for reason in SIGNATURE_REASONS} == {Cure.SIGNATURE}
    for reason in ("no_value", "not_avro", "truncated", "trailing_bytes", "wrong_run", "no_rule", "header_mismatch"):
        assert cure_of(reason) is Cure.NONE
    assert cure_of("a reason of a later version") is Cure.NONE


def test_the_same_bytes_are_found_where_they_lie_again(story: Story, graph: CypherGraph) -> None:
    start = len(story.records)
    for value in (b"garbage", b"other", b"garbage", None, b"", None, b"garbage"):
        story.append(raw(story, value))
    first, other, second, null, empty, *_ = story.records[start:]
    assert sent_again(graph, first) == [(start + 2, "unreadable"), (start + 6, "unreadable")]
    assert sent_again(graph, second) == [(start + 6, "unreadable")]
    assert sent_again(graph, other) == sent_again(graph, null) == sent_again(graph, empty) == []
