"""A packet's detached signature: whose it is, and everything that is no signature of this packet."""

from __future__ import annotations

import base64
import json

import pytest
import rfc8785

from forktrail_projectors.handoff.check import check_packet
from forktrail_projectors.handoff.packet import Packet
from forktrail_projectors.handoff.signature import PACKET_PAYLOAD_TYPE, check_signature, sign_packet
from forktrail_projectors.receipts import PAYLOAD_TYPE as RECEIPT_PAYLOAD_TYPE
from forktrail_schemas.errors import Corruption, InvalidInput
from forktrail_schemas.signatures import EVENT_PAYLOAD_TYPE, Signature, SigningKey, verify
from support.packets import packet_of, tell_rich
from support.story import ADMIN, HOLDERS, OPERATOR, REVIEWER, RUNNER, STRANGER, Story, fixed_key

NOBODY = fixed_key(9)


@pytest.fixture(scope="module")
def packet() -> Packet:
    """Of a run that has keys for all but NOBODY, and has revoked the stranger's."""
    story = Story("handed-over")
    tell_rich(story)
    return packet_of(story)


@pytest.fixture(scope="module")
def data(packet: Packet) -> bytes:
    """The packet's file."""
    return rfc8785.dumps(packet) + b"\n"


def envelope_of(signature: Signature) -> bytes:
    return signature.to_json().encode()


def refused(data: bytes, envelope: bytes, packet: Packet, signer: str | None = None) -> str:
    with pytest.raises(Corruption) as raised:
        check_signature(data, envelope, packet, signer)
    assert raised.value.code == "signature_invalid"
    assert raised.value.exit_code == 4
    assert "\n" not in str(raised.value)
    return raised.value.message


@pytest.mark.parametrize(
    ("key", "roles"),
    [(ADMIN, ("admin",)), (OPERATOR, ("operator",)), (REVIEWER, ("reviewer",)), (RUNNER, ("runner",))],
)
def test_it_says_whose_key_signed_and_what_that_may_do(
    key: SigningKey, roles: tuple[str, ...], data: bytes, packet: Packet
) -> None:
    envelope = sign_packet(data, packet, key).encode()
    holder = HOLDERS[key.key_id]
    for signer in (None, holder, key.key_id):
        found = check_signature(data, envelope, packet, signer)
        assert (found.key_id, found.holder, found.roles) == (key.key_id, holder, roles)
        assert str(found) == f"{holder} ({', '.join(roles)}), key {key.key_id}"


def test_it_is_dsse_over_the_exact_bytes_detached(data: bytes, packet: Packet) -> None:
    """As the DSSE protocol 1.0.2 words it: SIGNATURE = Sign(PAE(UTF8(PAYLOAD_TYPE), SERIALIZED_BODY))."""
    envelope = json.loads(sign_packet(data, packet, OPERATOR))
    assert envelope.keys() == {"payloadType", "signatures"}
    assert envelope["payloadType"] == "application/vnd.forktrail.handoff+json"
    (entry,) = envelope["signatures"]
    assert entry["keyid"] == OPERATOR.key_id
    pae = b"DSSEv1 38 application/vnd.forktrail.handoff+json " + str(len(data)).encode() + b" " + data
    OPERATOR._private.public_key().verify(base64.b64decode(entry["sig"]), pae)  # raises where it is another


@pytest.mark.parametrize("signer", ["ravi", REVIEWER.key_id, OPERATOR.key_id[:12], "", "Olga"])
def test_another_signer_than_the_one_asked_for_is_refused(signer: str, data: bytes, packet: Packet) -> None:
    envelope = sign_packet(data, packet, OPERATOR).encode()
    assert f"it is by olga (operator), key {OPERATOR.key_id}, not by {signer}" in refused(
        data, envelope, packet, signer
    )


def test_no_byte_of_the_file_may_be_another(data: bytes, packet: Packet) -> None:
    envelope = sign_packet(data, packet, OPERATOR).encode()
    for other in (data[:-1], data + b"\n", data.replace(b"r2", b"r3", 1), b" " + data, b""):
        assert "not over these bytes" in refused(other, envelope, packet)


def test_a_signature_of_another_packet_is_refused(data: bytes, packet: Packet) -> None:
    """Of the same run, by the same key, a moment later; both packets hold."""
    story = Story("handed-over")
    tell_rich(story)
    story.set("same-person-may-review", "false")
    later = packet_of(story)
    later_data = rfc8785.dumps(later) + b"\n"
    check_packet(later_data)
    envelope = sign_packet(later_data, later, OPERATOR).encode()
    assert check_signature(later_data, envelope, later).holder == "olga"
    assert "it is another packet's, by olga" in refused(data, envelope, packet)


def test_a_key_that_the_run_does_not_know_is_refused(data: bytes, packet: Packet) -> None:
    envelope = envelope_of(NOBODY.sign(data, PACKET_PAYLOAD_TYPE))
    assert refused(data, envelope, packet) == (
        f"the packet's signature doesn't hold: handed-over knows no key {NOBODY.key_id}"
    )


def test_a_known_key_named_by_who_has_not_got_it_is_refused(data: bytes, packet: Packet) -> None:
    stolen = Signature(PACKET_PAYLOAD_TYPE, OPERATOR.key_id, NOBODY.sign(data, PACKET_PAYLOAD_TYPE).signature)
    assert "not over these bytes" in refused(data, envelope_of(stolen), packet)


def test_a_revoked_key_is_refused_and_named(data: bytes, packet: Packet) -> None:
    assert next(key for key in packet["keys"] if key["key_id"] == STRANGER.key_id)["revoked"]
    envelope = envelope_of(STRANGER.sign(data, PACKET_PAYLOAD_TYPE))
    assert f"it is by stranger (reviewer, runner), key {STRANGER.key_id}, which was revoked" in refused(
        data, envelope, packet
    )


@pytest.mark.parametrize("payload_type", [EVENT_PAYLOAD_TYPE, RECEIPT_PAYLOAD_TYPE, "application/json"])
def test_a_signature_of_another_sort_is_refused_though_it_is_over_these_bytes(
    payload_type: str, data: bytes, packet: Packet
) -> None:
    signature = OPERATOR.sign(data, payload_type)
    assert verify(signature, data, OPERATOR.public_key)
    assert f"its payload type is {payload_type}" in refused(data, envelope_of(signature), packet)
    # Nor does it help to call it a packet's: the type is signed too.
    renamed = Signature(PACKET_PAYLOAD_TYPE, signature.key_id, signature.signature)
    assert "not over these bytes" in refused(data, envelope_of(renamed), packet)


def test_an_events_own_signature_is_no_packets(data: bytes, packet: Packet) -> None:
    header = next(record["signature"] for record in packet["records"] if record["signature"] is not None)
    assert "its payload type is application/avro" in refused(data, header.encode(), packet)


@pytest.mark.parametrize("envelope", [b"", b"{}", b"[]", b"\xff", b"-----BEGIN SIGNATURE-----", b"{" * 5_000])
def test_what_is_no_envelope_is_refused_as_any_other_signature(envelope: bytes, data: bytes, packet: Packet) -> None:
    assert "it is not a DSSE envelope with one signature" in refused(data, envelope, packet)


@pytest.mark.parametrize(("key", "said"), [(NOBODY, "is not registered in"), (STRANGER, "was revoked in")])
def test_nothing_is_signed_with_a_key_that_nobody_would_take(
    key: SigningKey, said: str, data: bytes, packet: Packet
) -> None:
    with pytest.raises(InvalidInput, match=f"{said} handed-over") as raised:
        sign_packet(data, packet, key)
    assert raised.value.code == "unknown_signer"
