"""The evidence document: the same bytes for the same transcript, and nothing else is read back."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from forktrail_lab.exchange.transcript import (
    Exchange,
    ExchangeError,
    ExchangeErrorCode,
    Hop,
    ReceivedResponse,
    SentRequest,
    Transcript,
    evidence_bytes,
    parse_evidence,
)
from forktrail_schemas.errors import Corruption

# Written by hand after RFC 8785: keys sorted, no space, UTF-8 as it is.
STORED = (
    '{"case_id":"case-1","definition_sha256":"' + "0" * 64 + '","exchanges":[{"error":null,"hops":[{"received":{"body":'
    '{"base64":"/wBh"},"headers":[["X-Service-Revision","r1"]],"status":200,"truncated":false},"sent":{"body":'
    '{"text":"h\u00e9"},"headers":[["x-key","<identity guest>"]],"method":"POST","url":"http://127.0.0.1:1/"}}],'
    '"request_id":"first"},{"error":{"code":"not_sent","message":"told"},"hops":[],"request_id":"second"}],'
    '"format":"forktrail.evidence/1","interrupted":false,"revision":"r1","target":"http://127.0.0.1:1",'
    '"test_id":"probe"}'
).encode()


def sample() -> Transcript:
    sent = SentRequest(
        method="POST", url="http://127.0.0.1:1/", headers=(("x-key", "<identity guest>"),), body="h\u00e9".encode()
    )
    received = ReceivedResponse(status=200, headers=(("X-Service-Revision", "r1"),), body=b"\xff\x00a", truncated=False)
    error = ExchangeError(code=ExchangeErrorCode.NOT_SENT, message="told")
    return Transcript(
        case_id="case-1",
        test_id="probe",
        revision="r1",
        definition_sha256="0" * 64,
        target="http://127.0.0.1:1",
        exchanges=(
            Exchange(request_id="first", hops=(Hop(sent=sent, received=received),), error=None),
            Exchange(request_id="second", hops=(), error=error),
        ),
    )


def test_the_evidence_document_is_the_canonical_json_written_by_hand() -> None:
    assert evidence_bytes(sample()) == STORED


def test_the_evidence_document_is_read_back_to_an_equal_transcript_and_to_the_same_bytes() -> None:
    transcript = sample()
    stored = evidence_bytes(transcript)
    assert parse_evidence(stored) == transcript
    assert evidence_bytes(parse_evidence(stored)) == stored


def test_an_interrupted_run_has_a_document_without_exchanges() -> None:
    interrupted = sample().model_copy(update={"exchanges": (), "interrupted": True})
    assert json.loads(evidence_bytes(interrupted))["exchanges"] == []
    assert parse_evidence(evidence_bytes(interrupted)).interrupted


@pytest.mark.parametrize(
    "change",
    [
        lambda stored: b"",
        lambda stored: stored[:-1],
        lambda stored: stored + b"\n",
        lambda stored: json.dumps(json.loads(stored)).encode(),
        lambda stored: stored.replace(b"evidence/1", b"evidence/2"),
        lambda stored: stored.replace(b'"format":"forktrail.evidence/1",', b""),
        lambda stored: stored.replace(b'"status":200', b'"status":"200"'),
        lambda stored: stored.replace(b'"status":200', b'"status":200,"status":200'),
        lambda stored: stored.replace(b'"truncated":false', b'"truncated":0'),
        lambda stored: stored.replace(b'"interrupted":false', b'"interrupted":true'),
        lambda stored: stored.replace(b'"case_id"', b'"a":1,"case_id"'),
        lambda stored: stored.replace(b'{"base64":"/wBh"}', b'{"base64":"/wBi!"}'),
        lambda stored: stored.replace(b'{"base64":"/wBh"}', b'{"base64":"YWJj"}'),
        lambda stored: stored.replace(b'{"base64":"/wBh"}', b'{"text":"a","base64":"/wBh"}'),
        lambda stored: stored.replace(b'{"base64":"/wBh"}', b'"/wBh"'),
        lambda stored: stored.replace(b'{"base64":"/wBh"}', b'{"text":"\\ud800"}'),
    ],
)
def test_stored_evidence_that_is_not_exactly_what_was_written_is_corruption(change: Callable[[bytes], bytes]) -> None:
    stored = evidence_bytes(sample())
    assert change(stored) != stored
    with pytest.raises(Corruption):
        parse_evidence(change(stored))
