from __future__ import annotations

from collections.abc import Iterator

import pytest

from forktrail_schemas import versions
from forktrail_schemas.body import plain_fields
from forktrail_schemas.catalog import schema_of
from forktrail_schemas.errors import EventUnreadable, InvalidEvent
from forktrail_schemas.events import EARLIER_VERSIONS, ReportFiled, ReportFiledV1
from forktrail_schemas.record import Record
from forktrail_schemas.versions import version_reader
from forktrail_schemas.wire import HEADER_BYTES, build, decode, encode, writer_schema
from support import avro
from support.samples import EVENT_ID, meta

V1_HEADER = b"\xc3\x01" + bytes.fromhex("4b2452d1c7774236")  # as release 0.1.0 wrote it
META = b"\x48" + EVENT_ID.encode() + bytes.fromhex("02 72  02  02 02 61  00  00 00 00")


def value_of_version_1(summary: str) -> bytes:
    """A report as a service that knows version 1 alone writes it: by hand."""
    return V1_HEADER + META + avro.string("t") + avro.string(summary)


def test_a_value_of_version_1_is_read_as_version_2() -> None:
    report = decode(value_of_version_1("seen\nin the log"))
    assert type(report) is ReportFiled
    assert (report.test_id, report.summary, report.details) == ("t", "seen", "seen\nin the log")
    assert report.meta.event_id == EVENT_ID


def test_its_schema_and_fields_stay_those_of_version_1() -> None:
    value = value_of_version_1("seen\nin the log")
    assert writer_schema(value) is schema_of(ReportFiledV1)
    fields = plain_fields(writer_schema(value), value, HEADER_BYTES)
    assert (fields["summary"], "details" in fields) == ("seen\nin the log", False)


def test_a_service_of_version_1_still_writes_it() -> None:
    small = {"event_id": EVENT_ID, "run": "r", "occurred_at": 1, "actor": {"kind": "service", "id": "a"}}
    report = build(ReportFiledV1, {"meta": small, "test_id": "t", "summary": "seen"})
    assert encode(report) == value_of_version_1("seen")


def test_what_was_wrong_under_version_1_is_not_made_right() -> None:
    """Version 2's upcaster would drop the NUL; but a record is what it was written as."""
    with pytest.raises(InvalidEvent) as caught:
        decode(value_of_version_1("a\0b\nc"))
    assert (caught.value.code, caught.value.message) == (
        "invalid_data",
        "forktrail.ReportFiled: summary breaks its schema",
    )


def test_a_value_of_version_1_is_used_up_to_its_last_byte() -> None:
    value = value_of_version_1("seen")
    for length in range(HEADER_BYTES, len(value)):
        with pytest.raises(EventUnreadable) as caught:
            decode(value[:length])
        assert caught.value.code == "truncated"
    with pytest.raises(EventUnreadable) as caught:
        decode(value + b"\x00")
    assert caught.value.code == "trailing_bytes"


@pytest.mark.parametrize("cls", EARLIER_VERSIONS, ids=lambda cls: str(cls.__name__))
def test_no_reader_ever_gives_an_earlier_version(cls: type[Record]) -> None:
    record = build(cls, {"meta": meta(), "test_id": "t", "summary": "seen"})
    assert type(decode(encode(record))) not in EARLIER_VERSIONS


@pytest.fixture
def without_upcasters(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Version 1 and 2 as if Avro's resolution were all there is between them."""
    versions._step.cache_clear()
    monkeypatch.setattr(versions, "UPCASTERS", {})
    yield
    versions._step.cache_clear()


@pytest.mark.usefixtures("without_upcasters")
def test_without_an_upcaster_avro_resolves_what_defaults_can() -> None:
    read = version_reader(schema_of(ReportFiledV1))
    report = read(value_of_version_1("seen"), HEADER_BYTES)
    assert isinstance(report, ReportFiled)
    assert (report.summary, report.details) == ("seen", "")
    with pytest.raises(InvalidEvent) as caught:  # which is why this step has an upcaster
        read(value_of_version_1("seen\nin the log"), HEADER_BYTES)
    assert caught.value.message == "forktrail.ReportFiled: summary breaks its schema"
