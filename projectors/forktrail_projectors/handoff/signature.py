"""A packet's detached signature: a DSSE envelope without payload, over the exact bytes of the packet's file.

It says who hands the run on. Whose the key is, what it may do and whether it was revoked, the packet's own records say.
Its payload type is its own, so that no signature of an event or a receipt passes for one, nor the other way round.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from forktrail_projectors.handoff.packet import Packet
from forktrail_schemas.errors import Corruption, InvalidInput
from forktrail_schemas.signatures import SigningKey, parse_signature, verify

PACKET_PAYLOAD_TYPE = "application/vnd.forktrail.handoff+json"
SIGNATURE_SUFFIX = ".sig"
_HINT = "ask whoever hands the run on to sign the packet anew"


@dataclass(frozen=True)
class PacketSigner:
    """Whose key signed a packet, as the packet's records have it."""

    key_id: str
    holder: str
    roles: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.holder} ({', '.join(self.roles)}), key {self.key_id}"


def sign_packet(data: bytes, packet: Packet, key: SigningKey) -> str:
    """Sign the bytes of a packet's file; returns the envelope, one line without its end.

    Args:
        data: all bytes of the file, the line end included.
        packet: what they hold.

    Raises:
        InvalidInput: the key isn't registered in the packet's run, or it was revoked.
    """
    registered = _registered(packet, key.key_id)
    if registered is None or registered["revoked"]:
        what = "was revoked in" if registered else "is not registered in"
        raise InvalidInput(
            f"key {key.key_id} {what} {packet['run']}: nobody would take its signature",
            code="unknown_signer",
            hint=f"`forktrail key list {packet['run']}` shows whose keys are",
        )
    return key.sign(data, PACKET_PAYLOAD_TYPE).to_json()


def check_signature(data: bytes, envelope: bytes, packet: Packet, signer: str | None = None) -> PacketSigner:
    """Check the detached signature of a packet that holds.

    Args:
        data: all bytes of the packet's file.
        envelope: the signature's file.
        packet: what the packet's file holds, checked.
        signer: whose it has to be: a holder's name, or a key id; None takes any key of the run.

    Raises:
        Corruption: the envelope is none, not a packet's, not over these bytes, by a key that the run doesn't know or
            has revoked, or by another than the one asked for (code `signature_invalid`).
    """
    try:
        signature = parse_signature(envelope)
    except InvalidInput as error:
        raise _refused(f"it is {error.message}") from error
    if signature.payload_type != PACKET_PAYLOAD_TYPE:
        raise _refused(f"its payload type is {signature.payload_type}, a packet's is {PACKET_PAYLOAD_TYPE}")
    key = _registered(packet, signature.key_id)
    if key is None:
        raise _refused(f"{packet['run']} knows no key {signature.key_id}")
    found = PacketSigner(signature.key_id, str(key["holder"]), tuple(key["roles"]))
    if not verify(signature, data, str(key["public_key"])):
        raise _refused(f"it is not over these bytes: the packet was changed, or it is another packet's, by {found}")
    if key["revoked"]:
        raise _refused(f"it is by {found}, which was revoked")
    if signer is not None and signer not in (found.key_id, found.holder):
        raise _refused(f"it is by {found}, not by {signer}")
    return found


def _registered(packet: Packet, key_id: str) -> dict[str, Any] | None:
    return next((key for key in packet["keys"] if key["key_id"] == key_id), None)


def _refused(what: str) -> Corruption:
    return Corruption(f"the packet's signature doesn't hold: {what}", code="signature_invalid", hint=_HINT)
