"""Signatures: DSSE over exact bytes, with Ed25519.

Source: DSSE protocol v1.0.2 (PAE: pre-authentication encoding); RFC 8032 (Ed25519).
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from dataclasses import dataclass

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from forktrail_schemas.errors import InvalidInput

EVENT_PAYLOAD_TYPE = "application/avro"
PUBLIC_KEY_BYTES = 32
ENVELOPE_LENGTH_MAX = 4_096
ENVELOPE_BRACKETS_MAX = 16
# What a header may name goes into verdicts and keys, so it is held to what every engine and encoding can carry.
_KEY_ID = re.compile(r"[0-9a-f]{64}")
_MEDIA_TYPE = re.compile(r"[\x21-\x7e]{1,128}")


@dataclass(frozen=True)
class Signature:
    """A DSSE signature, apart from what it signs."""

    payload_type: str
    key_id: str
    signature: bytes

    def to_json(self) -> str:
        """The envelope without its payload, compact."""
        return json.dumps(self._envelope(), separators=(",", ":"))

    def to_json_with(self, payload: bytes) -> str:
        """The whole DSSE envelope, payload included, compact."""
        envelope = {"payload": base64.b64encode(payload).decode(), **self._envelope()}
        return json.dumps(envelope, separators=(",", ":"))

    def _envelope(self) -> dict[str, object]:
        signature = base64.b64encode(self.signature).decode()
        return {"payloadType": self.payload_type, "signatures": [{"keyid": self.key_id, "sig": signature}]}


class SigningKey:
    """An Ed25519 private key with the ids it is known by. Its repr shows only the key id."""

    def __init__(self, private: Ed25519PrivateKey) -> None:
        self._private = private
        self.public_key = private.public_key().public_bytes_raw().hex()
        self.key_id = key_id(self.public_key)

    def __repr__(self) -> str:
        return f"SigningKey({self.key_id})"

    @staticmethod
    def generate() -> SigningKey:
        """A new random key."""
        return SigningKey(Ed25519PrivateKey.generate())

    def sign(self, payload: bytes, payload_type: str = EVENT_PAYLOAD_TYPE) -> Signature:
        """Sign bytes under a payload type."""
        return Signature(payload_type, self.key_id, self._private.sign(pae(payload_type, payload)))

    def private_bytes(self) -> bytes:
        """The raw private key; for the key file alone."""
        return self._private.private_bytes_raw()

    @staticmethod
    def from_private_bytes(raw: bytes) -> SigningKey:
        """The key of raw private bytes."""
        return SigningKey(Ed25519PrivateKey.from_private_bytes(raw))


def key_id(public_key: str) -> str:
    """The id of a raw public key in hex: the SHA-256 of its bytes."""
    return hashlib.sha256(bytes.fromhex(public_key)).hexdigest()


def pae(payload_type: str, payload: bytes) -> bytes:
    """DSSE's pre-authentication encoding."""
    kind = payload_type.encode()
    return b"DSSEv1 %d %s %d %s" % (len(kind), kind, len(payload), payload)


def verify(signature: Signature, payload: bytes, public_key: str) -> bool:
    """Whether the signature is the public key's over the payload. Never raises on bad bytes."""
    try:
        key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(public_key))
        key.verify(signature.signature, pae(signature.payload_type, payload))
    except (InvalidSignature, ValueError):
        return False
    return True


def parse_signature(text: bytes | str) -> Signature:
    """Read a DSSE envelope's signature, with or without its payload.

    Raises:
        InvalidInput: it isn't a DSSE envelope with exactly one signature, its key id a SHA-256 and its payload type a
            media type. The message says the same on every version of Python, since the fold keeps it.
    """
    # How deep a JSON reader goes, and how long a number it takes, depends on its caller's stack and on its environment;
    # an envelope needs neither, and what the fold makes of a record must depend on nothing but the record.
    data = text.encode("utf-8", "replace") if isinstance(text, str) else text
    if len(data) > ENVELOPE_LENGTH_MAX or data.count(b"{") + data.count(b"[") > ENVELOPE_BRACKETS_MAX:
        raise InvalidInput("not a DSSE envelope with one signature", code="bad_signature")
    try:
        envelope = json.loads(text)
        (entry,) = envelope["signatures"]
        signature = base64.b64decode(entry["sig"], validate=True)
        payload_type, key = envelope["payloadType"], entry["keyid"]
        if not _KEY_ID.fullmatch(key) or not _MEDIA_TYPE.fullmatch(payload_type):
            raise ValueError("keyid must be a SHA-256 in hex, payloadType a media type")
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise InvalidInput("not a DSSE envelope with one signature", code="bad_signature") from error
    return Signature(payload_type, key, signature)


def parse_envelope(text: bytes | str) -> tuple[bytes, Signature]:
    """Read a whole DSSE envelope: payload and signature (not yet verified).

    Raises:
        InvalidInput: it isn't one.
    """
    signature = parse_signature(text)
    try:
        payload = base64.b64decode(json.loads(text)["payload"], validate=True)
    except (ValueError, KeyError, TypeError) as error:
        raise InvalidInput("a DSSE envelope without a payload in base64", code="bad_signature") from error
    return payload, signature
