"""The producer on a real Kafka: what it refuses before sending, and what it promises after."""

from __future__ import annotations

import pytest
from confluent_kafka.admin import AdminClient

from forktrail_producers import producer as producer_module
from forktrail_producers.producer import Producer, meta
from forktrail_projectors.reader import LogReader
from forktrail_schemas import events
from forktrail_schemas.errors import InvalidEvent, LogUnavailable, NotFound
from forktrail_schemas.events.base import Event
from forktrail_schemas.headers import signature_header
from forktrail_schemas.signatures import SigningKey, parse_signature, verify
from forktrail_schemas.topics import run_topic
from forktrail_schemas.wire import build, decode
from support.raw import make_run


def report(run: str, summary: str = "look") -> Event:
    fields = {"meta": meta(run, "service", "scanner-7"), "test_id": "gateway", "summary": summary}
    return build(events.ReportFiled, fields)


def test_an_emitted_event_is_on_the_log_with_key_headers_and_time(kafka: str) -> None:
    run = make_run(kafka)
    event = report(run)
    with Producer(kafka) as producer:
        assert producer.emit(event) == 0
    with LogReader(kafka, run) as reader:
        assert reader.end() == 1
        record = reader.record_at(0)
    assert decode(record.value or b"") == event
    assert record.key == b"gateway"
    assert record.timestamp_ms == event.meta.occurred_at // 1000
    headers = dict(record.headers)
    assert headers["ce_id"] == event.meta.event_id.encode()
    assert headers["ce_type"] == b"forktrail.ReportFiled"
    assert headers["content-type"] == b"application/avro"


def test_events_keep_their_order_and_get_dense_offsets(kafka: str) -> None:
    run = make_run(kafka)
    batch = [report(run, str(number)) for number in range(2_500)]
    with Producer(kafka) as producer:
        assert producer.emit_all((event, None) for event in batch) == list(range(2_500))
    with LogReader(kafka, run) as reader:
        found = [decode(record.value or b"") for records in reader.read(0, reader.end()) for record in records]
    assert found == batch


def test_a_signature_is_over_exactly_the_bytes_that_were_sent(kafka: str) -> None:
    run = make_run(kafka)
    key = SigningKey.generate()
    with Producer(kafka) as producer:
        producer.emit(report(run), key)
    with LogReader(kafka, run) as reader:
        record = reader.record_at(0)
    header = signature_header(record.headers)
    assert header is not None
    assert verify(parse_signature(header), record.value or b"", key.public_key)


def test_an_event_that_needs_a_signature_is_not_sent_without_one(kafka: str) -> None:
    run = make_run(kafka)
    closing = build(events.RunClosed, {"meta": meta(run, "human", "ada"), "reason": ""})
    with Producer(kafka) as producer, pytest.raises(InvalidEvent, match="admin"):
        producer.emit(closing)
    with LogReader(kafka, run) as reader:
        assert reader.end() == 0


def test_a_workers_event_is_sent_unsigned_too_since_its_run_may_have_no_workers_key(kafka: str) -> None:
    run = make_run(kafka)
    claim = build(events.WorkerClaimed, {"meta": meta(run, "service", "w"), "worker": "w", "epoch": 1})
    with Producer(kafka) as producer:
        assert producer.emit_all([(claim, None), (claim, SigningKey.generate())]) == [0, 1]
    with LogReader(kafka, run) as reader:
        signed = [signature_header(reader.record_at(offset).headers) is not None for offset in (0, 1)]
    assert signed == [False, True]


def test_one_bad_event_of_several_keeps_all_from_being_sent(kafka: str) -> None:
    run = make_run(kafka)
    closing = build(events.RunClosed, {"meta": meta(run, "human", "ada"), "reason": ""})
    with Producer(kafka) as producer, pytest.raises(InvalidEvent):
        producer.emit_all([(report(run), None), (closing, None)])
    with LogReader(kafka, run) as reader:
        assert reader.end() == 0


def test_an_unknown_run_is_not_found_and_is_not_made(kafka: str) -> None:
    for _ in range(2):
        with Producer(kafka) as producer, pytest.raises(NotFound):
            producer.emit(report("run-that-never-was"))


def test_a_kafka_that_does_not_answer_is_said_with_what_to_do() -> None:
    with Producer("127.0.0.1:1") as producer, pytest.raises(LogUnavailable, match=r"127\.0\.0\.1:1"):
        producer.emit(report("any-run"))


def test_a_run_whose_topic_is_deleted_meanwhile_is_not_found(kafka: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(producer_module, "DELIVERY_TIMEOUT_SECONDS", 2.0)
    run = make_run(kafka)
    with Producer(kafka) as producer:
        producer.emit(report(run))
        admin = AdminClient({"bootstrap.servers": kafka})
        admin.delete_topics([run_topic(run)])[run_topic(run)].result()
        with pytest.raises((LogUnavailable, NotFound)):
            producer.emit(report(run))
        with pytest.raises(NotFound):
            producer.emit(report(run))
