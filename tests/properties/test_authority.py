"""Who may say what: signatures, roles, runs and places in the log, checked by Ed25519 and the log alone."""

from __future__ import annotations

import base64
import hashlib
import json
from dataclasses import dataclass, field
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from hypothesis import given

from forktrail_projectors.record import LogRecord
from forktrail_schemas import events
from forktrail_schemas.events.base import Event
from forktrail_schemas.headers import SIGNATURE
from support.ledger import event_of
from support.moves import Move, on_streams, streams
from support.tale import Tale


@dataclass
class Keys:
    """The keys that a log registered so far: public key, holder and roles by key id; and which were revoked."""

    public: dict[str, bytes] = field(default_factory=dict)
    holders: dict[str, tuple[str, str]] = field(default_factory=dict)
    roles: dict[str, set[str]] = field(default_factory=dict)
    revoked: set[str] = field(default_factory=set)

    def add(self, event: Event) -> None:
        """Take in a valid event."""
        if isinstance(event, events.RunOpened):
            actor = event.meta.actor
            self._register(event.admin_public_key, (actor.kind, actor.id), {"admin"})
        elif isinstance(event, events.KeyRegistered):
            self._register(event.public_key, (event.holder_kind, event.holder), set(event.roles))
        elif isinstance(event, events.KeyRevoked):
            self.revoked.add(event.key_id)

    def workers(self) -> set[str]:
        """The keys that may sign for a worker."""
        return {id for id, roles in self.roles.items() if "worker" in roles} - self.revoked

    def _register(self, public_key: str, holder: tuple[str, str], roles: set[str]) -> None:
        raw = bytes.fromhex(public_key)
        id = hashlib.sha256(raw).hexdigest()
        assert id not in self.public, "a key is registered once"
        self.public[id], self.holders[id], self.roles[id] = raw, holder, roles


def envelope_of(record: LogRecord) -> dict[str, Any] | None:
    """The last signature header, as JSON."""
    found = [value for name, value in record.headers if name == SIGNATURE]
    return json.loads(found[-1] or b"") if found else None


def check(keys: Keys, envelope: dict[str, Any], payload: bytes) -> str:
    """The id of the key that signed the payload; fails where the signature doesn't hold."""
    (entry,) = envelope["signatures"]
    kind = envelope["payloadType"].encode()
    signed = b"DSSEv1 %d %s %d %s" % (len(kind), kind, len(payload), payload)
    key = Ed25519PublicKey.from_public_bytes(keys.public[entry["keyid"]])
    key.verify(base64.b64decode(entry["sig"]), signed)
    assert entry["keyid"] not in keys.revoked
    return str(entry["keyid"])


@on_streams
def test_a_valid_event_is_signed_as_its_type_asks_by_a_key_that_speaks_for_its_actor(moves: list[Move]) -> None:
    tale, keys = Tale(moves), Keys()
    for record, verdict in zip(tale.records, tale.verdicts, strict=True):
        if verdict.kind != "valid":
            continue
        event = event_of(record)
        if isinstance(event, events.RunOpened):
            keys.add(event)
        envelope = envelope_of(record)
        working = event.ROLE == "worker" or event.meta.execution is not None
        if envelope is None:
            assert event.ROLE in (None, "worker")
            assert not (working and keys.workers())
        else:
            assert envelope["payloadType"] == "application/avro"
            signer = check(keys, envelope, record.value or b"")
            # What a behavior says is signed by whoever worked on it.
            behaves = event.meta.execution is not None and event.meta.actor.kind == "behavior"
            assert (behaves and "worker" in keys.roles[signer]) or keys.holders[signer] == (
                event.meta.actor.kind,
                event.meta.actor.id,
            )
            assert event.ROLE is None or event.ROLE in keys.roles[signer]
            assert not (working and keys.workers()) or "worker" in keys.roles[signer]
        if not isinstance(event, events.RunOpened):
            keys.add(event)


@on_streams
def test_an_observation_counts_only_from_the_runner_that_took_the_case_over_what_it_signed(moves: list[Move]) -> None:
    tale, keys, took = Tale(moves), Keys(), {}
    for record, verdict in zip(tale.records, tale.verdicts, strict=True):
        if verdict.kind != "valid":
            continue
        event = event_of(record)
        keys.add(event)
        if isinstance(event, events.TestStarted):
            assert event.case_id not in took, "a case is started once"
            took[event.case_id] = check(keys, envelope_of(record) or {}, record.value or b"")
        elif isinstance(event, events.ObservationRecorded):
            receipt = json.loads(event.receipt)
            payload = base64.b64decode(receipt["payload"])
            assert check(keys, receipt, payload) == took[event.case_id]
            assert json.loads(payload) == {
                "format": "forktrail.receipt/1",
                "evidence_sha256": event.evidence.sha256,
                "case_id": event.case_id,
                "test_id": event.test_id,
                "revision": event.revision,
                "outcome": event.outcome,
            }


@given(streams(), streams(parts_min=0, parts_max=10))
def test_nothing_counts_before_the_opening_after_the_end_or_for_another_run(
    moves: list[Move], later: list[Move]
) -> None:
    tale = Tale([*moves, Move("close"), *later])
    valid = [(r, v) for r, v in zip(tale.records, tale.verdicts, strict=True) if v.kind == "valid"]
    types = [verdict.type.rpartition(".")[2] for _, verdict in valid]
    assert all((type == "RunOpened") is (index == 0) for index, type in enumerate(types))
    assert "RunClosed" not in types[:-1]
    assert {event_of(record).meta.run for record, _ in valid} <= {tale.run}
    for record, verdict in valid:
        said = {name: (value or b"").decode() for name, value in record.headers if name in ("ce_id", "ce_type")}
        event = event_of(record)
        assert said in ({}, {"ce_id": event.meta.event_id, "ce_type": verdict.type}, {"ce_id": event.meta.event_id})
