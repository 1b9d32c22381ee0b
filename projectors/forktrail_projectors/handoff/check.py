"""Checks a handoff packet with nothing but its file.

The records that a packet carries are folded by the same rules as a log: signatures, roles, approvals, receipts and
reviews are checked there. What they amount to is then compared with what the packet says, to the byte.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import rfc8785

from forktrail_projectors.fold import FOLD_VERSION
from forktrail_projectors.handoff.packet import DIGEST_FIELD, FORMAT, Packet, packet_sha256
from forktrail_projectors.handoff.recomputed import recomputed
from forktrail_projectors.record import LogRecord
from forktrail_projectors.why_not import HISTORY
from forktrail_schemas.errors import Corruption, InvalidInput
from forktrail_schemas.headers import SIGNATURE
from forktrail_schemas.signatures import parse_signature

_SHA256 = re.compile("[0-9a-f]{64}")
SHOWN_MAX = 80
_HINT = "ask for it again at its source"


@dataclass(frozen=True)
class Checked:
    """A packet that held.

    Attributes:
        packet_sha256: its digest, recomputed.
        admin_key: id of the key that its trust starts in, for comparing with the one the run's admin names.
        signatures: signed records verified.
        receipts: receipts verified.
        summary: the counts, recomputed.
        run: the run that it says it is of.
        next_offset, log_root, state_digest: where in the log it says it stands. The file alone can't tell whether it
            does, nor whether it left a record out or the log went on since; `check_against_log` can.
        packet: the packet itself.
    """

    packet_sha256: str
    admin_key: str
    signatures: int
    receipts: int
    summary: dict[str, int]
    run: str
    next_offset: int
    log_root: str
    state_digest: str
    packet: Packet


def check_packet(data: bytes) -> Checked:
    """Check a packet's bytes.

    What the file alone can't tell:

    - whose the admin's key is, that `admin_key` is the id of;
    - that no record was left out: a withdrawal, say, or a newer revision;
    - `log` and `state_digest`, which are of the whole log, and the offsets of records, but for their order;
    - of reports and proposals, which need no signature, what no signed record repeats: their words, times and author
      are as claimed;
    - in the reasons of a blocked test, which findings of other revisions once met it;
    - that the stored evidence still has the digests named (`forktrail evidence verify` can, where the store is).

    Raises:
        InvalidInput: it isn't a handoff packet, or one of another version.
        Corruption: it is one, and something in it doesn't hold; the message says what.
    """
    packet = _parsed(data)
    try:
        return _checked(packet)
    except Corruption as error:
        raise Corruption(f"the packet doesn't hold: {error.message}", code="packet_invalid", hint=_HINT) from error


def _parsed(data: bytes) -> Packet:
    hint = "give a file that `forktrail handoff` wrote"
    try:
        packet = json.loads(data)
        canonical = rfc8785.dumps(packet)
    except (ValueError, RecursionError, rfc8785.CanonicalizationError) as error:
        raise InvalidInput(f"not a handoff packet: {_shortened(str(error))}", hint=hint) from error
    if not isinstance(packet, dict) or packet.get("format") != FORMAT:
        raise InvalidInput(f"not a {FORMAT} packet", hint=hint)
    if packet.get("fold_version") != FOLD_VERSION:
        raise InvalidInput(
            f"the packet was made by fold version {packet.get('fold_version')!r}, this is {FOLD_VERSION}",
            hint="verify it with the version of Forktrail that wrote it",
        )
    if canonical != data.removesuffix(b"\n"):
        raise Corruption("the packet doesn't hold: it is not in canonical form (RFC 8785)", code="packet_invalid")
    return packet


def _checked(packet: Packet) -> Checked:
    digest = packet_sha256(packet)
    if packet.get(DIGEST_FIELD) != digest:
        raise Corruption(f"{DIGEST_FIELD} is not the digest of the rest ({digest})")
    records = [_record(packed, place) for place, packed in enumerate(_list(packet.get("records"), "records"))]
    for earlier, later in pairwise(records):
        if earlier.offset >= later.offset:
            raise Corruption(f"record {later.offset} is out of order")
    parts = recomputed(records)
    if _log(packet.get("log"))["next_offset"] <= records[-1].offset:
        raise Corruption("$.log.next_offset is before the end of its records")
    _sha256(packet.get("state_digest"), "state_digest")
    compare(packet, parts)
    audit, summary, admin_key = parts["audit"], parts["summary"], parts["admin_key"]
    return Checked(
        packet_sha256=digest,
        admin_key=admin_key,
        signatures=audit["signatures"]["checked"],
        receipts=audit["receipts"]["checked"],
        summary=summary,
        run=packet["run"],
        next_offset=packet["log"]["next_offset"],
        log_root=packet["log"]["root"],
        state_digest=packet["state_digest"],
        packet=packet,
    )


def compare(packet: Packet, parts: Packet) -> None:
    """Hold a packet against what records amount to.

    Raises:
        Corruption: naming the first place where they differ.
    """
    expected = {
        **parts,
        "blocked": _with_history(parts["blocked"], packet.get("blocked")),
        "format": FORMAT,
        "fold_version": FOLD_VERSION,
        "log": _log(packet.get("log")),
        **{name: packet.get(name) for name in ("records", "state_digest", DIGEST_FIELD)},
    }
    del expected["admin_key"]
    difference = _difference(packet, expected, "$")
    if difference is not None:
        raise Corruption(difference)


def _record(packed: Any, place: int) -> LogRecord:
    """A record as it lay on the log: its value, and the signature of its headers."""
    if not isinstance(packed, dict) or packed.keys() != {"offset", "value", "signature"}:
        raise Corruption(f"$.records[{place}] is not a record")
    offset, encoded, signature = packed["offset"], packed["value"], packed["signature"]
    if not _is_count(offset) or not isinstance(encoded, str) or not isinstance(signature, str | None):
        raise Corruption(f"$.records[{place}] is not a record")
    try:
        value = base64.b64decode(encoded, validate=True)
        plain = base64.b64encode(value).decode() == encoded
        plain = plain and (signature is None or parse_signature(signature).to_json() == signature)
    except (binascii.Error, ValueError, InvalidInput):
        plain = False
    if not plain:
        raise Corruption(f"record {offset} is not written as a packet writes it")
    headers = () if signature is None else ((SIGNATURE, signature.encode()),)
    return LogRecord(offset, 0, None, value, headers)


def _log(said: Any) -> Packet:
    """The log's end and root as the packet says them."""
    if not isinstance(said, dict) or not _is_count(said.get("next_offset")):
        raise Corruption("$.log names no offset")
    return {"next_offset": said["next_offset"], "root": _sha256(said.get("root"), "log.root")}


def _with_history(blocked: list[Packet], said: Any) -> list[Packet]:
    """The blocked tests, with what the packet says of other revisions put back between the reasons."""
    given = {
        str(entry.get("test_id")): entry.get("reasons") for entry in _list(said, "blocked") if isinstance(entry, dict)
    }
    return [{**entry, "reasons": _merged(entry["reasons"], given.get(entry["test_id"]))} for entry in blocked]


def _merged(reasons: list[str], said: Any) -> list[str]:
    if not isinstance(said, list):
        return reasons
    told = [line for line in said if not (isinstance(line, str) and line.startswith(HISTORY))]
    return said if told == reasons else reasons


def _difference(said: Any, expected: Any, path: str) -> str | None:
    """The first place where a packet says other than its records, in words."""
    if isinstance(said, dict) and isinstance(expected, dict):
        for name in sorted(said.keys() | expected.keys()):
            if name not in said or name not in expected:
                return f"{path}.{name} is {'missing' if name in expected else 'no part of a packet'}"
            if (found := _difference(said[name], expected[name], f"{path}.{name}")) is not None:
                return found
        return None
    if isinstance(said, list) and isinstance(expected, list):
        for place, (one, other) in enumerate(zip(said, expected, strict=False)):
            if (found := _difference(one, other, f"{path}[{place}]")) is not None:
                return found
        if len(said) != len(expected):
            return f"{path} has {len(said)} entries, and its records make {len(expected)}"
        return None
    if type(said) is type(expected) and said == expected:  # True is not 1
        return None
    return f"{path} is {_shown(said)}, and its records make it {_shown(expected)}"


def _shown(value: Any) -> str:
    return _shortened(repr(value))


def _shortened(text: str) -> str:
    return text if len(text) <= SHOWN_MAX else f"{text[:SHOWN_MAX]}…"


def _list(value: Any, name: str) -> list[Any]:
    if not isinstance(value, list):
        raise Corruption(f"$.{name} is not a list")
    return value


def _sha256(value: Any, name: str) -> str:
    if not isinstance(value, str) or _SHA256.fullmatch(value) is None:
        raise Corruption(f"$.{name} is not a SHA-256 in hex")
    return value


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
