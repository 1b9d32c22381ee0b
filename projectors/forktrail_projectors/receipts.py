"""Receipts: a runner's signed statement of what it observed, as a DSSE envelope.

The payload is the RFC 8785 canonical JSON of the statement, so that anyone can make it again from an observation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import rfc8785

from forktrail_schemas.errors import InvalidInput
from forktrail_schemas.events import ObservationRecorded
from forktrail_schemas.signatures import SigningKey, parse_envelope, verify

PAYLOAD_TYPE = "application/vnd.forktrail.receipt+json"
FORMAT = "forktrail.receipt/1"


class Key(Protocol):
    """A registered public key."""

    @property
    def key_id(self) -> str: ...

    @property
    def public_key(self) -> str: ...


@dataclass(frozen=True)
class Statement:
    """What a receipt is signed over."""

    evidence_sha256: str
    case_id: str
    test_id: str
    revision: str
    outcome: str

    def payload(self) -> bytes:
        """The bytes to sign."""
        return rfc8785.dumps(
            {
                "format": FORMAT,
                "evidence_sha256": self.evidence_sha256,
                "case_id": self.case_id,
                "test_id": self.test_id,
                "revision": self.revision,
                "outcome": self.outcome,
            }
        )


def sign_receipt(statement: Statement, key: SigningKey) -> str:
    """The receipt: a DSSE envelope as JSON."""
    payload = statement.payload()
    return key.sign(payload, PAYLOAD_TYPE).to_json_with(payload)


def fault_of(receipt: str, statement: Statement, key: Key) -> str | None:
    """What is wrong with a receipt for this statement by this key, or None."""
    try:
        payload, signature = parse_envelope(receipt)
    except InvalidInput as error:
        return error.message
    if signature.key_id != key.key_id:
        return f"signed by key {signature.key_id}"
    if signature.payload_type != PAYLOAD_TYPE:
        return f"its payload type is not {PAYLOAD_TYPE}"
    if payload != statement.payload():
        return "it states something else"
    return None if verify(signature, payload, key.public_key) else "its signature is wrong"


def receipt_fault(event: ObservationRecorded, key: Key) -> str | None:
    """What is wrong with an observation's receipt, or None."""
    statement = Statement(event.evidence.sha256, event.case_id, event.test_id, event.revision, event.outcome)
    return fault_of(event.receipt, statement, key)
