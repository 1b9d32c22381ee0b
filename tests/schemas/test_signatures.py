from __future__ import annotations

import base64
import hashlib
import json

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from forktrail_schemas.errors import InvalidInput
from forktrail_schemas.signatures import Signature, SigningKey, key_id, pae, parse_envelope, parse_signature, verify

# RFC 8032, section 7.1, TEST 1 and TEST 2: secret key, public key, message, signature.
RFC_8032 = [
    (
        "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
        "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
        "",
        "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555"
        "fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b",
    ),
    (
        "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
        "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
        "72",
        "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
        "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00",
    ),
]
KEY = SigningKey.from_private_bytes(bytes.fromhex(RFC_8032[0][0]))
OTHER = SigningKey.from_private_bytes(bytes.fromhex(RFC_8032[1][0]))


def test_pae_is_the_protocols_published_example() -> None:
    # DSSE v1.0.2, protocol.md, "Test Vectors".
    assert pae("http://example.com/HelloWorld", b"hello world") == (
        b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"
    )


def test_pae_counts_bytes_and_takes_any() -> None:
    assert pae("é", b"\x00\xff") == b"DSSEv1 2 \xc3\xa9 2 \x00\xff"
    assert pae("", b"") == b"DSSEv1 0  0 "


@pytest.mark.parametrize(("secret", "public", "message", "signature"), RFC_8032)
def test_keys_and_signatures_are_those_of_rfc_8032(
    secret: str, public: str, message: str, signature: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = SigningKey.from_private_bytes(bytes.fromhex(secret))
    assert key.public_key == public
    assert key.private_bytes().hex() == secret
    assert key.key_id == hashlib.sha256(bytes.fromhex(public)).hexdigest()
    # The vectors sign bare messages; Forktrail signs the encoding of one, which stands aside here.
    monkeypatch.setattr("forktrail_schemas.signatures.pae", lambda payload_type, payload: payload)
    assert key.sign(bytes.fromhex(message)).signature.hex() == signature
    assert verify(Signature("", key.key_id, bytes.fromhex(signature)), bytes.fromhex(message), public)


def test_what_is_signed_is_the_pae_of_payload_type_and_payload() -> None:
    signature = KEY.sign(b"hello", "text/plain")
    public = Ed25519PublicKey.from_public_bytes(bytes.fromhex(KEY.public_key))
    public.verify(signature.signature, b"DSSEv1 10 text/plain 5 hello")
    assert KEY.sign(b"hello").payload_type == "application/avro"


def test_a_signature_is_good_for_its_bytes_type_and_key_alone() -> None:
    good = KEY.sign(b"payload")
    assert verify(good, b"payload", KEY.public_key)
    assert not verify(good, b"payloae", KEY.public_key)
    assert not verify(good, b"payload", OTHER.public_key)
    assert not verify(Signature("text/plain", good.key_id, good.signature), b"payload", KEY.public_key)


def test_a_signature_with_any_bit_changed_is_bad() -> None:
    good = KEY.sign(b"payload")
    for bit in range(512):
        changed = (int.from_bytes(good.signature) ^ 1 << bit).to_bytes(64)
        assert not verify(Signature(good.payload_type, good.key_id, changed), b"payload", KEY.public_key), bit


@pytest.mark.parametrize("signature", [b"", b"\0" * 63, b"\0" * 64, b"\xff" * 64, b"\0" * 1_000])
@pytest.mark.parametrize("public_key", [KEY.public_key, "", "zz", "ff" * 32, "00" * 31])
def test_bad_bytes_never_raise(signature: bytes, public_key: str) -> None:
    assert not verify(Signature("application/avro", KEY.key_id, signature), b"payload", public_key)


def test_a_key_shows_no_secret() -> None:
    assert repr(KEY) == f"SigningKey({KEY.key_id})"
    assert SigningKey.generate().key_id != SigningKey.generate().key_id
    assert key_id(KEY.public_key) == KEY.key_id


def test_a_header_is_a_dsse_envelope_without_its_payload() -> None:
    signature = KEY.sign(b"payload")
    assert json.loads(signature.to_json()) == {
        "payloadType": "application/avro",
        "signatures": [{"keyid": KEY.key_id, "sig": base64.b64encode(signature.signature).decode()}],
    }
    assert parse_signature(signature.to_json()) == signature
    assert parse_signature(signature.to_json().encode()) == signature


def test_a_whole_envelope_holds_its_payload_in_base64() -> None:
    envelope = KEY.sign(b"\x00payload").to_json_with(b"\x00payload")
    assert json.loads(envelope)["payload"] == base64.b64encode(b"\x00payload").decode()
    assert parse_envelope(envelope) == (b"\x00payload", KEY.sign(b"\x00payload"))
    assert parse_signature(envelope) == KEY.sign(b"\x00payload")


def envelope(keyid: object = KEY.key_id, sig: object = "", payload_type: object = "application/avro") -> str:
    return json.dumps({"payloadType": payload_type, "payload": "", "signatures": [{"keyid": keyid, "sig": sig}]})


BROKEN = [
    b"",
    b"{",
    b"null",
    b"[]",
    b"\xff\xfe",
    b"7" * 5_000,
    b"[" * 100_000,
    b"{}",
    b'{"signatures": []}',
    b'{"signatures": [1]}',
    b'{"signatures": null, "payloadType": "application/avro"}',
    b'{"payloadType": "application/avro", "signatures": [{}]}',
    b'{"payloadType": "application/avro", "signatures": [{}, {}]}',
    envelope(keyid=None),
    envelope(keyid=7),
    envelope(keyid=""),
    envelope(keyid="\ud800"),
    envelope(keyid="a" * 63 + "\0"),
    envelope(keyid=KEY.key_id.upper()),
    envelope(keyid=KEY.key_id + "\n"),
    envelope(sig=None),
    envelope(sig="*"),
    envelope(sig="é"),
    envelope(sig="A"),
    envelope(payload_type=None),
    envelope(payload_type="\ud800"),
    envelope(payload_type="a\0b"),
    envelope(payload_type=""),
    envelope(payload_type="x" * 129),
]


@pytest.mark.parametrize("text", BROKEN, ids=lambda text: ascii(text)[:40])
def test_what_is_no_envelope_is_a_bad_signature_in_the_same_words(text: bytes | str) -> None:
    """The message ends in the state digest: no words of json or base64, which change with Python."""
    for parse in (parse_signature, parse_envelope):
        with pytest.raises(InvalidInput) as caught:
            parse(text)
        assert (caught.value.code, caught.value.message) == (
            "bad_signature",
            "not a DSSE envelope with one signature",
        )


@pytest.mark.parametrize("payload", [None, 7, "*", "é", "A", "\ud800", ["A"]])
def test_an_envelope_without_a_payload_in_base64_is_a_bad_signature(payload: object) -> None:
    whole = {**json.loads(envelope()), "payload": payload}
    with pytest.raises(InvalidInput) as caught:
        parse_envelope(json.dumps(whole))
    assert caught.value.code == "bad_signature"
    del whole["payload"]
    with pytest.raises(InvalidInput):
        parse_envelope(json.dumps(whole))
