from __future__ import annotations

import base64
import json
from dataclasses import replace
from typing import Any

import pytest

from forktrail_projectors.receipts import PAYLOAD_TYPE, Statement, fault_of, receipt_fault, sign_receipt
from support.story import ADMIN, RUNNER, STRANGER, Story

STATEMENT = Statement("e" * 64, "case-0123456789abcdef0123", "gateway", "r1", "reproduced")
RECEIPT = sign_receipt(STATEMENT, RUNNER)


def test_a_statement_is_canonical_json() -> None:
    # RFC 8785: keys sorted, no white space.
    assert STATEMENT.payload() == (
        b'{"case_id":"case-0123456789abcdef0123","evidence_sha256":"' + b"e" * 64 + b'",'
        b'"format":"forktrail.receipt/1","outcome":"reproduced","revision":"r1","test_id":"gateway"}'
    )


def test_a_receipt_is_a_dsse_envelope_over_the_statement() -> None:
    envelope = json.loads(RECEIPT)
    assert envelope["payloadType"] == "application/vnd.forktrail.receipt+json"
    assert base64.b64decode(envelope["payload"]) == STATEMENT.payload()
    assert [entry["keyid"] for entry in envelope["signatures"]] == [RUNNER.key_id]


def test_a_right_receipt_has_no_fault() -> None:
    assert fault_of(RECEIPT, STATEMENT, RUNNER) is None


@pytest.mark.parametrize(
    "change",
    [
        {"evidence_sha256": "f" * 64},
        {"case_id": "case-0123456789abcdef0124"},
        {"test_id": "invoice"},
        {"revision": "r2"},
        {"outcome": "not_reproduced"},
    ],
)
def test_a_receipt_for_anything_else_is_at_fault(change: dict[str, str]) -> None:
    assert fault_of(RECEIPT, replace(STATEMENT, **change), RUNNER) == "it states something else"


def changed(**changes: Any) -> str:
    return json.dumps({**json.loads(RECEIPT), **changes})


def test_a_receipt_of_another_key_is_at_fault() -> None:
    assert fault_of(sign_receipt(STATEMENT, STRANGER), STATEMENT, RUNNER) == f"signed by key {STRANGER.key_id}"


def test_a_receipt_that_claims_the_key_without_its_signature_is_at_fault() -> None:
    forged = json.loads(sign_receipt(STATEMENT, STRANGER))["signatures"][0]["sig"]
    receipt = changed(signatures=[{"keyid": RUNNER.key_id, "sig": forged}])
    assert fault_of(receipt, STATEMENT, RUNNER) == "its signature is wrong"


def test_a_receipt_under_another_payload_type_is_at_fault() -> None:
    payload = STATEMENT.payload()
    receipt = RUNNER.sign(payload, "application/avro").to_json_with(payload)
    assert fault_of(receipt, STATEMENT, RUNNER) == f"its payload type is not {PAYLOAD_TYPE}"


def test_a_receipt_relabelled_with_the_right_payload_type_is_at_fault() -> None:
    payload = STATEMENT.payload()
    receipt = json.loads(RUNNER.sign(payload, "application/avro").to_json_with(payload))
    assert fault_of(json.dumps({**receipt, "payloadType": PAYLOAD_TYPE}), STATEMENT, RUNNER) == "its signature is wrong"


def test_a_statement_in_another_spelling_is_at_fault() -> None:
    payload = json.dumps(json.loads(STATEMENT.payload()), indent=1).encode()
    receipt = RUNNER.sign(payload, PAYLOAD_TYPE).to_json_with(payload)
    assert fault_of(receipt, STATEMENT, RUNNER) == "it states something else"


@pytest.mark.parametrize("receipt", ["", "{}", "[]", "é", changed(payload="é"), changed(payload=None), "[" * 65_536])
def test_what_is_no_envelope_is_at_fault_and_never_raises(receipt: str) -> None:
    assert fault_of(receipt, STATEMENT, RUNNER) is not None


def test_an_observation_is_held_to_its_own_fields() -> None:
    story = Story()
    story.open()
    story.register("gateway")
    case = story.report("gateway")
    observation = story.observation(case, "reproduced")
    assert receipt_fault(observation, RUNNER) is None
    assert receipt_fault(observation, ADMIN) is not None
    for change in (
        {"outcome": "inconclusive"},
        {"revision": "r2"},
        {"test_id": "other"},
        {"case_id": "case-" + "0" * 20},
    ):
        assert receipt_fault(observation.model_copy(update=change), RUNNER) == "it states something else"
    evidence = observation.evidence.model_copy(update={"sha256": "f" * 64})
    assert receipt_fault(observation.model_copy(update={"evidence": evidence}), RUNNER) == "it states something else"
