from __future__ import annotations

import random
import tracemalloc
from typing import Any

import pytest
from pydantic import ValidationError

from forktrail_schemas import events
from forktrail_schemas.catalog import schema_of
from forktrail_schemas.errors import EventUnreadable, InvalidEvent
from forktrail_schemas.events import (
    EVENT_TYPES,
    BudgetSet,
    GoalSet,
    ReportFiled,
    RunAnnounced,
    TestProposed,
    TestRegistered,
)
from forktrail_schemas.events.base import Event
from forktrail_schemas.wire import HEADER_BYTES, VALUE_BYTES_MAX, build, decode, encode
from support import avro
from support.samples import EVENT_ID, SAMPLES, meta, sample

every_type = pytest.mark.parametrize("cls", EVENT_TYPES, ids=lambda cls: str(cls.__name__))


def header(cls: type[Event]) -> bytes:
    return b"\xc3\x01" + schema_of(cls).fingerprint


def minimal_meta(kind: str = "00") -> bytes:
    """Event id, run "r", time 1, an actor "a" of the kind given in hex, no causes, three nulls."""
    return b"\x48" + EVENT_ID.encode() + bytes.fromhex(f"02 72  02  {kind} 02 61  00  00 00 00")


def minimal(cls: type[Event], **fields: Any) -> Event:
    small = {"event_id": EVENT_ID, "run": "r", "occurred_at": 1, "actor": {"kind": "human", "id": "a"}}
    return build(cls, {"meta": small, **fields})


def test_an_event_has_the_bytes_that_the_specification_gives() -> None:
    report = build(
        ReportFiled,
        {
            "meta": {
                "event_id": EVENT_ID,
                "run": "r",
                "occurred_at": 300,
                "actor": {"kind": "agent", "id": "a"},
                "causes": [EVENT_ID],
            },
            "test_id": "t",
            "summary": "é",
        },
    )
    body = (
        b"\x48" + EVENT_ID.encode()  # 36 bytes: zig-zag 72
        + b"\x02r"  # 1 byte
        + b"\xd8\x04"  # 300: zig-zag 600 = 0b100_1011000, low seven bits first
        + b"\x04"  # agent is symbol 2
        + b"\x02a"
        + b"\x02\x48" + EVENT_ID.encode() + b"\x00"  # a block of one item, then the empty block
        + b"\x00\x00\x00"  # goal, execution, frame: branch 0, null
        + b"\x02t"
        + b"\x04\xc3\xa9"  # two bytes of UTF-8
        + b"\x00"  # no details
    )  # fmt: skip
    assert encode(report) == header(ReportFiled) + body


def test_the_marker_and_the_fingerprint_stand_before_the_body() -> None:
    assert encode(minimal(GoalSet, text=""))[:2] == bytes.fromhex("c301")
    assert encode(minimal(GoalSet, text=""))[2:] == schema_of(GoalSet).fingerprint + minimal_meta() + b"\x00"


@pytest.mark.parametrize(
    ("limit", "encoded"),
    [
        (None, "00"),
        (0, "02 00"),
        (63, "02 7e"),
        (64, "02 80 01"),
        (2**63 - 1, "02 fe ff ff ff ff ff ff ff ff 01"),
    ],
)
def test_a_nullable_long_is_its_branch_and_zig_zag(limit: int | None, encoded: str) -> None:
    value = encode(minimal(BudgetSet, name="n", limit=limit))
    assert value == header(BudgetSet) + minimal_meta() + b"\x02n" + bytes.fromhex(encoded)


def test_an_array_in_several_blocks_with_sizes_is_read_as_the_specification_allows() -> None:
    blocks = bytes.fromhex("02 02 78  01 04 02 79  00")  # one item; minus one item, of two bytes; the end
    value = header(TestRegistered) + minimal_meta() + b"\x02t\x02T\x02a" + blocks + b"\x00\x00\x00"
    decoded = decode(value + b"\x80\x01" + b"ab" * 32)
    assert isinstance(decoded, TestRegistered)
    assert decoded.requires == ("x", "y")


@every_type
def test_every_type_comes_back_as_it_was(cls: type[Event]) -> None:
    event = build(cls, sample(cls))
    decoded = decode(encode(event))
    assert type(decoded) is cls
    assert decoded == event
    assert decoded.model_dump() == event.model_dump()


def test_an_announcement_comes_back_as_it_was() -> None:
    fields = {"run": "r", "topic": "forktrail.run.r", "goal": "g", "status": "open", "opened_at": 1}
    announcement = build(RunAnnounced, fields)
    assert decode(encode(announcement)) == announcement


@pytest.mark.parametrize("value", [b"", b"\xc3", b"\xc3\x01", b"\xc3\x01" + b"\x00" * 7, b"\x00" * 40, b"hello world"])
def test_what_is_no_single_object_encoding_is_not_avro(value: bytes) -> None:
    with pytest.raises(EventUnreadable) as caught:
        decode(value)
    assert caught.value.code == "not_avro"


def test_a_confluent_framed_value_is_not_avro() -> None:
    with pytest.raises(EventUnreadable) as caught:
        decode(b"\x00\x00\x00\x00\x07" + minimal_meta() + b"\x00")
    assert caught.value.code == "not_avro"


def test_an_unknown_fingerprint_is_named() -> None:
    with pytest.raises(EventUnreadable, match="0102030405060708") as caught:
        decode(b"\xc3\x01\x01\x02\x03\x04\x05\x06\x07\x08" + minimal_meta())
    assert caught.value.code == "unknown_schema"


@every_type
def test_a_value_cut_anywhere_is_unreadable(cls: type[Event]) -> None:
    value = encode(build(cls, sample(cls)))
    for length in range(len(value)):
        with pytest.raises(EventUnreadable) as caught:
            decode(value[:length])
        assert caught.value.code == ("not_avro" if length < HEADER_BYTES else "truncated"), length


@every_type
def test_a_byte_too_many_is_unreadable(cls: type[Event]) -> None:
    with pytest.raises(EventUnreadable) as caught:
        decode(encode(build(cls, sample(cls))) + b"\x00")
    assert caught.value.code == "trailing_bytes"


def test_random_bytes_after_a_header_are_never_more_than_a_fault() -> None:
    seed = 20_250_101
    chance = random.Random(seed)
    for case in range(2_000):
        cls = EVENT_TYPES[case % len(EVENT_TYPES)]
        if case % 2:
            value = header(cls) + chance.randbytes(chance.randrange(200))
        else:  # one byte of a good value changed
            good = bytearray(encode(build(cls, sample(cls))))
            good[chance.randrange(HEADER_BYTES, len(good))] = chance.randrange(256)
            value = bytes(good)
        try:
            decoded = decode(value)
        except (EventUnreadable, InvalidEvent):
            continue
        assert type(decoded) is cls, (seed, case)
        encode(decoded)


@pytest.mark.parametrize(
    "cut",
    [
        avro.long(2**40),  # of the event id's length
        avro.long(2**62),
        avro.long(-1),
        avro.string(EVENT_ID) + b"\x02r\x02\x00\x02a" + avro.long(2**40) + avro.string(EVENT_ID),  # causes
        avro.string(EVENT_ID) + b"\x02r\x02\x00\x02a" + avro.long(-(2**40)) + avro.long(2**40) + avro.string(EVENT_ID),
    ],
    ids=["text", "longer-text", "negative-text", "items", "sized-items"],
)
def test_a_huge_declared_length_takes_no_memory(cut: bytes) -> None:
    decode(encode(minimal(GoalSet, text="")))  # whatever is loaded once is loaded
    tracemalloc.start()
    try:
        with pytest.raises(EventUnreadable) as caught:
            decode(header(GoalSet) + cut)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert caught.value.code == "truncated"
    assert peak < 1_000_000


def body_of(event_id: str = EVENT_ID, run: str = "r", time: int = 1, text: str = "") -> bytes:
    return (
        header(GoalSet)
        + avro.string(event_id)
        + avro.string(run)
        + avro.long(time)
        + b"\x00\x02a\x00\x00\x00\x00"
        + avro.string(text)
    )


def registered(impact: int, requests_max: int = 1) -> bytes:
    ends = avro.long(impact) + avro.long(requests_max) + avro.string("ab" * 32)
    return header(TestRegistered) + minimal_meta() + b"\x02t\x02T\x02a\x00\x00" + ends


@pytest.mark.parametrize(
    ("value", "place"),
    [
        (body_of(event_id=EVENT_ID.upper()), "meta.event_id"),
        (body_of(event_id=EVENT_ID + "\n"), "meta.event_id"),
        (body_of(event_id=""), "meta.event_id"),
        (body_of(run="Demo"), "meta.run"),
        (body_of(run="-demo"), "meta.run"),
        (body_of(run="r" * 64), "meta.run"),
        (body_of(time=-1), "meta.occurred_at"),
        (body_of(text="a\0b"), "text"),
        (body_of(text="x" * 65_537), "text"),
        (registered(101), "impact"),
        (registered(-1), "impact"),
        (registered(1, -1), "requests_max"),
        (registered(1, 2**31), "requests_max"),
        (registered(1, 2**40), "requests_max"),
    ],
)
def test_data_that_breaks_its_schemas_patterns_is_invalid(value: bytes, place: str) -> None:
    with pytest.raises(InvalidEvent) as caught:
        decode(value)
    assert caught.value.code == "invalid_data"
    assert f": {place} " in caught.value.message


@pytest.mark.parametrize("value", [body_of(text="a\nb\ttab"), body_of(run="r" * 63), registered(0, 0), registered(100)])
def test_data_at_the_edge_of_its_patterns_is_good(value: bytes) -> None:
    assert encode(decode(value)) == value


def test_text_that_is_no_utf_8_is_unreadable() -> None:
    with pytest.raises(EventUnreadable) as caught:
        decode(header(GoalSet) + minimal_meta() + b"\x04\xff\xfe")
    assert caught.value.code == "truncated"


def test_a_fault_says_nothing_in_the_words_of_a_library() -> None:
    """The fold keeps these messages, so they may not change with fastavro, pydantic or Python."""
    with pytest.raises(EventUnreadable) as cut:
        decode(encode(minimal(GoalSet, text="abc"))[:-1])
    assert cut.value.message == "forktrail.GoalSet ends or breaks inside"
    with pytest.raises(InvalidEvent) as invalid:
        decode(registered(101))
    assert invalid.value.message == "forktrail.TestRegistered: impact breaks its schema"


@pytest.mark.parametrize(
    ("cls", "change"),
    [
        (TestRegistered, {"impact": 2**31}),
        (TestRegistered, {"impact": 1.7}),
        (TestRegistered, {"impact": 1.0}),
        (TestRegistered, {"impact": True}),
        (TestRegistered, {"impact": "1"}),
        (TestRegistered, {"impact": None}),
        (TestRegistered, {"requests_max": 2**31}),
        (TestRegistered, {"title": "\ud800"}),
        (TestRegistered, {"title": b"bytes"}),
        (TestRegistered, {"title": "a\0b"}),
        (TestRegistered, {"requires": "capability"}),
        (TestRegistered, {"requires": ["a"] * 65}),
        (TestRegistered, {"requires": [1]}),
        (TestRegistered, {"requires": ["A"]}),
        (TestRegistered, {"extra": 1}),
        (TestProposed, {"as_of": 2**63}),
        (TestProposed, {"as_of": -1}),
        (TestProposed, {"as_of": 1.5}),
        (TestProposed, {"meta": meta(occurred_at=2**63)}),
        (TestProposed, {"meta": meta(extra=1)}),
        (TestProposed, {"meta": meta(actor={"kind": "robot", "id": "r"})}),
        (TestProposed, {"meta": meta(actor={"kind": "agent", "id": ""})}),
        (TestProposed, {"meta": meta(actor={"kind": "agent", "id": "a\nb"})}),
        (TestProposed, {"meta": meta(actor={"kind": "agent", "id": "a" * 257})}),
    ],
)
def test_a_value_that_the_codec_would_coerce_or_drop_is_refused_on_building(
    cls: type[Event], change: dict[str, Any]
) -> None:
    build(cls, sample(cls))
    with pytest.raises(InvalidEvent) as caught:
        build(cls, sample(cls, **change))
    assert caught.value.code == "invalid_event"


_ANSWER = {"answer", "blob", "cost_micros", "duration_micros"}
_PROVIDER = {"provider", "model", "finish_reason", "attempts", "sent", "received"}
WITH_DEFAULT: dict[type[Event], set[str]] = {
    events.RunOpened: {"registry"},
    events.BudgetSet: {"limit"},
    events.TestProposed: {"as_of"},
    events.ReportFiled: {"details"},
    events.TypeDeclared: {"references", "sources", "targets", "personal", "merge"},
    events.BehaviorRegistered: {"emits"},
    events.BehaviorStarted: {"inputs"},
    events.ObjectPatched: {"expected_version"},
    events.ToolRequested: {"idempotency_key"},
    events.PolicySet: {"changes"},
    events.ModelRequested: {"request", "blob"},
    events.ModelResponded: {*_ANSWER, *_PROVIDER, "input_tokens", "output_tokens"},
    events.PatchProposed: {"object_id", "ends", "data", "expected_version"},
    events.ToolResponded: _ANSWER,
    events.EffectResolved: {"answer"},
}


@every_type
def test_every_field_is_asked_for(cls: type[Event]) -> None:
    for name in SAMPLES[cls].keys() - WITH_DEFAULT.get(cls, set()):
        fields = sample(cls)
        del fields[name]
        with pytest.raises(InvalidEvent, match=name):
            build(cls, fields)


@pytest.mark.parametrize(
    "change",
    [
        {"impact": 2**31},
        {"impact": 101},
        {"impact": 1.7},
        {"impact": True},
        {"title": 5},
        {"title": "\ud800"},
        {"definition_sha256": "AB" * 32},
    ],
)
def test_a_record_is_checked_however_it_is_made(change: dict[str, Any]) -> None:
    record = build(TestRegistered, sample(TestRegistered))
    with pytest.raises(ValidationError):
        record.model_copy(update=change)
    with pytest.raises(ValidationError):
        record.copy(update=change)
    with pytest.raises(ValidationError):
        TestRegistered.model_construct(**(record.__dict__ | change))
    assert record.model_copy() == record
    assert record.model_copy(update={"title": "other"}).title == "other"


@pytest.mark.parametrize("change", [{"impact": 1.7}, {"title": 5}, {"meta": {"run": "r"}}, {"requires": ("a", 1)}])
def test_what_was_put_into_a_record_around_its_checks_is_not_written(change: dict[str, Any]) -> None:
    record = build(TestRegistered, sample(TestRegistered))
    record.__dict__.update(change)
    with pytest.raises(InvalidEvent):
        encode(record)


def test_an_event_over_the_limit_is_refused() -> None:
    causes = {"causes": [EVENT_ID] * 64}
    text = "\U0001f600" * 65_536  # 262,144 bytes
    fields = sample(GoalSet, meta=meta(**causes), text=text)
    assert len(encode(build(GoalSet, fields))) < VALUE_BYTES_MAX
    execution = {
        "id": EVENT_ID,
        "behavior": "ask",
        "version": "1",
        "handler": "run",
        "match": ["m" * 256] * 4_000,  # 1,024,000 bytes
        "path": "0",
    }
    with pytest.raises(InvalidEvent, match="1,000,000 are allowed"):
        encode(build(GoalSet, sample(GoalSet, meta=meta(execution=execution), text="")))
