"""Checks a handoff packet with nothing but its file: digest, signatures, receipts, and that each finding is earned."""

from __future__ import annotations

import base64
import binascii
import json
from dataclasses import dataclass
from typing import TypeVar

import rfc8785

from forktrail_projectors.handoff import DIGEST_FIELD, FORMAT, Packet, packet_sha256, receipt_problem, summary_of
from forktrail_schemas.errors import Corruption, EventUnreadable, InvalidEvent, InvalidInput
from forktrail_schemas.events import (
    ApprovalDecided,
    KeyRegistered,
    ObservationRecorded,
    ReviewDecided,
    RunOpened,
)
from forktrail_schemas.events.base import Event
from forktrail_schemas.ids import derived_id
from forktrail_schemas.signatures import EVENT_PAYLOAD_TYPE, key_id, parse_signature, verify
from forktrail_schemas.wire import decode

E = TypeVar("E", bound=Event)


@dataclass(frozen=True)
class Checked:
    """A packet that held.

    Attributes:
        packet_sha256: its digest, recomputed.
        signatures: signed records verified.
        receipts: receipts verified.
        summary: the counts, recomputed.
    """

    packet_sha256: str
    signatures: int
    receipts: int
    summary: dict[str, int]


def check_packet(data: bytes) -> Checked:
    """Check a packet's bytes.

    What it can't tell: that nothing was left out, and that the stored evidence itself still has the digests named
    (`forktrail evidence verify` can, where the store is).

    Raises:
        InvalidInput: it isn't a handoff packet.
        Corruption: it is one, and something in it doesn't hold; the message says what.
    """
    packet = _parsed(data)
    try:
        return _checked(packet)
    except (KeyError, TypeError, AttributeError, binascii.Error) as error:
        raise _broken(f"a part is missing or has the wrong shape: {error!r}") from error


def _parsed(data: bytes) -> Packet:
    try:
        packet = json.loads(data)
        canonical = rfc8785.dumps(packet)
    except (ValueError, RecursionError, rfc8785.CanonicalizationError) as error:
        raise InvalidInput(
            f"not a handoff packet: {error}", hint="give a file that `forktrail handoff` wrote"
        ) from error
    if not isinstance(packet, dict) or packet.get("format") != FORMAT:
        raise InvalidInput(f"not a {FORMAT} packet", hint="give a file that `forktrail handoff` wrote")
    if canonical != data.rstrip(b"\n"):
        raise _broken("it is not in canonical form (RFC 8785)")
    return packet


def _checked(packet: Packet) -> Checked:
    digest = packet_sha256(packet)
    if packet[DIGEST_FIELD] != digest:
        raise _broken(f"{DIGEST_FIELD} is not the digest of the rest ({digest})")
    events = _Records(packet["run"], packet["records"])
    for key in packet["keys"]:
        if events.keys.get(key["key_id"]) != (key["public_key"], key["holder"], tuple(key["roles"])):
            raise _broken(f"key {key['key_id']} is not the one that the run registered")
    observations = [*packet["negative_observations"], *packet["inconclusive_observations"]]
    for row in observations:
        events.check_observation(row, row["evidence"]["sha256"], row["receipt"], row["id"])
    for finding in packet["findings"]:
        events.check_finding(finding)
    if packet["summary"] != summary_of(packet):
        raise _broken("the summary doesn't count what the packet lists")
    if packet["audit"]["valid"] is not True:
        raise _broken("its own audit says that something didn't hold when it was written")
    return Checked(digest, events.signatures, len(observations) + len(packet["findings"]), packet["summary"])


class _Records:
    """The signed records of a packet, verified in the order of their offsets."""

    def __init__(self, run: str, records: list[Packet]) -> None:
        self.keys: dict[str, tuple[str, str, tuple[str, ...]]] = {}
        self.signatures = 0
        self._run = run
        self._by_id: dict[str, Event] = {}
        last = -1
        for record in records:
            if record["offset"] <= last:
                raise _broken(f"record {record['offset']} is out of order")
            last = record["offset"]
            self._take(record)

    def check_observation(
        self, row: Packet, evidence: str, receipt: Packet, observation_id: str
    ) -> ObservationRecorded:
        """An observation of the packet against its record and its receipt."""
        event = self._found("observation", observation_id, ObservationRecorded)
        stated = (row["case_id"], row["test_id"], row["revision"], row["outcome"], evidence, receipt["envelope"])
        recorded = (event.case_id, event.test_id, event.revision, event.outcome, event.evidence.sha256, event.receipt)
        if stated != recorded:
            raise _broken(f"{observation_id} is not what its record says")
        public_key, holder, _ = self.keys[receipt["key_id"]]
        if holder != event.meta.actor.id:
            raise _broken(f"the receipt of {observation_id} is by another runner than its record")
        key = {"key_id": receipt["key_id"], "public_key": public_key}
        fault = receipt_problem(row, evidence, receipt["envelope"], key)
        if fault is not None:
            raise _broken(f"the receipt of {observation_id} doesn't hold: {fault}")
        return event

    def check_finding(self, finding: Packet) -> None:
        """That a finding was approved, reproduced, and accepted, by the people it names."""
        row = {**finding, "outcome": "reproduced"}
        self.check_observation(row, finding["evidence"]["sha256"], finding["receipt"], finding["observation_id"])
        review = self._found("finding", finding["id"], ReviewDecided)
        if (review.decision, review.observation_id) != ("accept", finding["observation_id"]):
            raise _broken(f"{finding['id']} rests on no accepted review of its observation")
        if review.meta.actor.id != finding["reviewer"]:
            raise _broken(f"{finding['id']} was reviewed by {review.meta.actor.id}")
        approvals = [
            event
            for event in self._by_id.values()
            if isinstance(event, ApprovalDecided)
            and (event.subject.id, event.decision) == (finding["case_id"], "approve")
        ]
        if finding["approver"] not in [approval.meta.actor.id for approval in approvals]:
            raise _broken(f"the case of {finding['id']} has no approval by {finding['approver']}")
        openings = [event for id, event in self._by_id.items() if derived_id("case", id) == finding["case_id"]]
        if [event.meta.actor.id for event in openings] != [finding["researcher"]]:
            raise _broken(f"{finding['id']} doesn't come from a report or proposal by {finding['researcher']}")

    def _take(self, record: Packet) -> None:
        value = base64.b64decode(record["value"], validate=True)
        try:
            event = decode(value)
        except (EventUnreadable, InvalidEvent) as error:
            raise _broken(f"record {record['offset']} is unreadable: {error.message}") from error
        if not isinstance(event, Event) or event.meta.run != self._run:
            raise _broken(f"record {record['offset']} is not an event of {self._run}")
        if isinstance(event, RunOpened):
            admin = (event.admin_public_key, event.meta.actor.id, ("admin",))
            self.keys.setdefault(key_id(event.admin_public_key), admin)
        if record["signature"] is not None:
            self._check_signature(record, event, value)
        elif event.ROLE is not None:
            raise _broken(f"record {record['offset']} should be signed by a {event.ROLE}")
        if isinstance(event, KeyRegistered):
            self.keys[event.key_id] = (event.public_key, event.holder, tuple(sorted(set(event.roles))))
        self._by_id[event.meta.event_id] = event

    def _check_signature(self, record: Packet, event: Event, value: bytes) -> None:
        try:
            signature = parse_signature(record["signature"])
        except InvalidInput as error:
            raise _broken(f"record {record['offset']}: {error.message}") from error
        public_key, holder, roles = self.keys.get(signature.key_id, ("", "", ()))
        right = signature.payload_type == EVENT_PAYLOAD_TYPE and verify(signature, value, public_key)
        if not right or holder != event.meta.actor.id or (event.ROLE is not None and event.ROLE not in roles):
            raise _broken(f"the signature of record {record['offset']} doesn't hold")
        self.signatures += 1

    def _found(self, kind: str, id: str, cls: type[E]) -> E:
        for event_id, event in self._by_id.items():
            if isinstance(event, cls) and derived_id(kind, event_id) == id:
                return event
        raise _broken(f"{id} has no record in the packet")


def _broken(what: str) -> Corruption:
    return Corruption(f"the packet doesn't hold: {what}", code="packet_invalid", hint="ask for it again at its source")
