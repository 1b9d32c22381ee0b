from __future__ import annotations

import pytest

from forktrail_schemas.events import ApprovalDecided, GoalSet
from forktrail_schemas.headers import contradiction, headers_of, signature_header
from forktrail_schemas.signatures import SigningKey
from forktrail_schemas.wire import build
from support.samples import CASE_ID, EVENT_ID, meta, sample

APPROVAL = build(ApprovalDecided, sample(ApprovalDecided))
# 1,700,000,000 seconds is 2023-11-14 22:13:20 UTC; the names are those of the CloudEvents 1.0.2 Kafka binding, 3.2.
EXPECTED = {
    "ce_specversion": b"1.0",
    "ce_id": EVENT_ID.encode(),
    "ce_type": b"forktrail.ApprovalDecided",
    "ce_source": b"/forktrail/human/rita",
    "ce_subject": CASE_ID.encode(),
    "ce_time": b"2023-11-14T22:13:20.000001Z",
    "content-type": b"application/avro",
}


def test_an_event_has_the_cloud_events_headers() -> None:
    assert dict(headers_of(APPROVAL)) == EXPECTED


def test_a_source_is_a_uri_reference_whatever_the_actors_name() -> None:
    fields = sample(GoalSet, meta=meta(actor={"kind": "service", "id": "a/b c?é"}))
    assert dict(headers_of(build(GoalSet, fields)))["ce_source"] == b"/forktrail/service/a%2Fb%20c%3F%C3%A9"


def test_a_signature_is_the_last_header() -> None:
    signature = SigningKey.from_private_bytes(b"\1" * 32).sign(b"value")
    assert headers_of(APPROVAL, signature)[-1] == ("forktrail-signature", signature.to_json().encode())


def test_the_right_headers_contradict_nothing() -> None:
    assert contradiction(APPROVAL, headers_of(APPROVAL)) is None


@pytest.mark.parametrize("left_out", EXPECTED)
def test_an_absent_header_contradicts_nothing(left_out: str) -> None:
    assert contradiction(APPROVAL, [item for item in EXPECTED.items() if item[0] != left_out]) is None


def test_no_headers_contradict_nothing() -> None:
    assert contradiction(APPROVAL, []) is None


@pytest.mark.parametrize("name", [name for name in EXPECTED if name != "ce_source"])
@pytest.mark.parametrize("value", [b"", b"other", b"\xff\xfe", None, b"0"])
def test_a_header_that_says_otherwise_is_named(name: str, value: bytes | None) -> None:
    assert contradiction(APPROVAL, [*EXPECTED.items(), (name, value)]) == name


def test_the_first_of_two_contradictions_is_named() -> None:
    assert contradiction(APPROVAL, [("ce_type", b"x"), ("ce_id", b"x")]) == "ce_type"


@pytest.mark.parametrize("name", ["ce_source", "ce_other", "traceparent", "CE_ID"])
def test_a_header_that_the_value_does_not_speak_of_contradicts_nothing(name: str) -> None:
    assert contradiction(APPROVAL, [(name, b"\xff anything")]) is None


@pytest.mark.parametrize(
    "time",
    [
        "2023-11-14T22:13:20.000001Z",
        "2023-11-14T22:13:20.000001+00:00",
        "2023-11-14T22:13:20.000001-00:00",
        "2023-11-14T23:13:20.000001+01:00",
        "2023-11-14T12:43:20.000001-09:30",
        "2023-11-14t22:13:20.000001z",
    ],
)
def test_another_spelling_of_the_same_time_agrees(time: str) -> None:
    assert contradiction(APPROVAL, [("ce_time", time.encode())]) is None


@pytest.mark.parametrize(
    "time",
    [
        "2023-11-14T22:13:20.000002Z",
        "2023-11-14T22:13:20Z",
        "2023-11-14T22:13:20.000001",  # no zone
        "2023-11-14T22:13:20.000001+01:00",
        "2023-11-14",
        "20231114T221320.000001Z",  # ISO 8601 but not RFC 3339
        "2023-11-14 22:13:20.000001Z",
        "2023-W46-2T22:13:20.000001Z",
        "2023-11-14T22:13:20,000001Z",
        "2023-02-30T00:00:00Z",
        "0000-00-00T00:00:00Z",
        "٢٠٢٣-11-14T22:13:20.000001Z",
        "0001-01-01T00:00:00+23:59",
        "9999-12-31T23:59:59-23:59",
    ],
)
def test_another_time_or_none_that_rfc_3339_has_contradicts(time: str) -> None:
    assert contradiction(APPROVAL, [("ce_time", time.encode())]) == "ce_time"


def test_hour_24_is_no_time_on_any_python() -> None:
    midnight = build(GoalSet, sample(GoalSet, meta=meta(occurred_at=1_700_006_400_000_000)))
    assert contradiction(midnight, [("ce_time", b"2023-11-15T00:00:00Z")]) is None
    assert contradiction(midnight, [("ce_time", b"2023-11-14T24:00:00Z")]) == "ce_time"


def test_a_time_past_what_rfc_3339_can_write_is_its_last_moment() -> None:
    late = build(GoalSet, sample(GoalSet, meta=meta(occurred_at=2**63 - 1)))
    headers = headers_of(late)
    assert dict(headers)["ce_time"] == b"9999-12-31T23:59:59.999999Z"
    assert contradiction(late, headers) is None


def test_the_last_signature_counts() -> None:
    name = "forktrail-signature"
    assert signature_header([]) is None
    assert signature_header([(name, b"1"), ("x", b"2"), (name, b"3"), ("y", b"4")]) == b"3"
    assert signature_header([(name, b"1"), (name, None)]) is None
