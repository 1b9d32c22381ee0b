"""The handoff packet: what a run has established, in one file that can be checked without anything else.

It is canonical JSON (RFC 8785) with `packet_sha256` over the rest, and carries the signed records that its findings and
observations rest on, so that `handoff.check` needs only the file.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from typing import Any

import rfc8785

from forktrail_producers.blobs import BlobStore
from forktrail_projectors.discovery import Candidate, RunState, all_eligible_tests, run_state
from forktrail_projectors.fold import FOLD_VERSION
from forktrail_projectors.graph.protocol import Queryable
from forktrail_projectors.receipts import Statement, fault_of
from forktrail_projectors.record import LogRecord
from forktrail_projectors.rules.context import Signer
from forktrail_projectors.state import Value
from forktrail_projectors.view import RunView
from forktrail_projectors.why_not import why_not
from forktrail_schemas.errors import Corruption
from forktrail_schemas.events import (
    KeyRegistered,
    KeyRevoked,
    RevisionAdvanced,
    RunOpened,
    SettingChanged,
    TestRegistered,
)
from forktrail_schemas.headers import signature_header
from forktrail_schemas.signatures import EVENT_PAYLOAD_TYPE, parse_signature, verify

FORMAT = "forktrail.handoff/1"
DIGEST_FIELD = "packet_sha256"

Packet = dict[str, Any]

_FINDINGS = """
MATCH (f:Finding)-[:FOUND_IN]->(c:`Case`)
MATCH (o:Observation {id: f.observation})
WHERE f.revision = $revision AND NOT f.withdrawn
RETURN f.id AS id, f.title AS title, f.test AS test_id, f.asset AS asset_id, f.revision AS revision,
       f.impact AS impact, f.depth AS depth, f.researcher AS researcher, c.approver AS approver,
       c.reviewer AS reviewer, c.id AS case_id, o.id AS observation_id
ORDER BY id
"""
_OBSERVATIONS = """
MATCH (o:Observation)-[:OBSERVES]->(c:`Case`)
WHERE o.revision = $revision AND NOT c.retried
RETURN o.id AS id, o.case_id AS case_id, o.test AS test_id, o.revision AS revision, o.outcome AS outcome,
       o.reason AS reason, o.interrupted AS interrupted, o.runner AS runner, o.receipt AS receipt,
       o.evidence_sha256 AS evidence_sha256, o.evidence_bytes AS evidence_bytes,
       o.evidence_media_type AS evidence_media_type, c.status AS case_status
ORDER BY id
"""
_ENABLES = """
MATCH (f:Finding)-[:ENABLES]->(c:Capability) WHERE f.revision = $revision
RETURN f.id AS finding, c.id AS other ORDER BY finding, other
"""
_RESTS_ON = """
MATCH (f:Finding)-[:FOUND_IN]->(c:`Case`)-[:RESTS_ON]->(b:Finding) WHERE f.revision = $revision
RETURN f.id AS finding, b.id AS other ORDER BY finding, other
"""
_TESTS = "MATCH (t:TestCase) RETURN t.id AS id ORDER BY id"
_GOAL = "MATCH (g:Goal {id: $goal}) RETURN g.text"
_KEYS = """
MATCH (k:`Key`)
RETURN k.id AS key_id, k.public_key AS public_key, k.holder AS holder, k.holder_kind AS holder_kind, k.roles AS roles,
       k.revoked AS revoked
ORDER BY key_id
"""
# The records a packet carries: all that its findings and observations rest on, whole enough to be folded again.
_CASES = "MATCH (c:`Case`) WHERE c.revision = $revision RETURN c.id AS id, c.created_offset AS at"
_CURRENT_OR_FALLEN = "MATCH (f:Finding) WHERE f.revision = $revision RETURN f.id AS id"
_GOAL_SET = "MATCH (g:Goal {id: $goal}) RETURN g.created_offset AS at"
_RECORDS = """
MATCH (e:Event) WHERE e.verdict = 'valid' AND (e.type IN $types OR e.subject IN $subjects)
RETURN e.offset AS at
"""
# Carried whatever the findings are: who may sign, what may be tested, and what revision is active.
_ALWAYS = tuple(
    cls.TYPE for cls in (RunOpened, KeyRegistered, KeyRevoked, SettingChanged, TestRegistered, RevisionAdvanced)
)


def build_packet(projection: RunView, blobs: BlobStore) -> Packet:
    """Make the packet of a run as it stands: recompute signatures, receipts and evidence digests, and say what held.

    Raises:
        GraphError: the graph can't answer.
        LogUnavailable: Kafka doesn't answer.
    """
    graph = projection.graph
    state = run_state(graph)
    now: Mapping[str, Value] = {"revision": state.active_revision}
    keys = {str(key["key_id"]): key for key in _objects(graph, _KEYS)}
    checked = [_checked_observation(row, keys, blobs) for row in _objects(graph, _OBSERVATIONS, now)]
    candidates = all_eligible_tests(graph, state.active_revision)
    records = _records(projection, state)
    findings = _findings(graph, now, {str(observation["id"]): observation for observation in checked})
    position = projection.position()
    packet: Packet = {
        "format": FORMAT,
        "run": projection.run,
        "goal": {"id": state.goal_id, "text": str(graph.query(_GOAL, {"goal": state.goal_id}).rows[0][0])},
        "active_revision": state.active_revision,
        "log": {"next_offset": position.next_offset, "root": position.log_root},
        "state_digest": position.state_digest,
        "fold_version": FOLD_VERSION,
        "findings": findings,
        "candidate_paths": [_candidate(candidate) for candidate in candidates],
        "blocked": _blocked(graph),
        "negative_observations": [row for row in checked if row["outcome"] == "not_reproduced"],
        "inconclusive_observations": [row for row in checked if row["outcome"] == "inconclusive"],
        "keys": list(keys.values()),
        "records": [_packed(record) for record in records],
    }
    packet["audit"] = _audit(checked, records, keys)
    packet["summary"] = {
        "confirmed_current": len(packet["findings"]),
        "negative_current": len(packet["negative_observations"]),
        "inconclusive_current": len(packet["inconclusive_observations"]),
        "eligible_followups": len(packet["candidate_paths"]),
    }
    packet[DIGEST_FIELD] = packet_sha256(packet)
    return packet


def packet_bytes(packet: Packet) -> bytes:
    """The packet as it is written: RFC 8785, no line end."""
    return rfc8785.dumps(packet)


def packet_sha256(packet: Packet) -> str:
    """Hex SHA-256 of the canonical JSON of everything but the digest itself."""
    rest = {name: value for name, value in packet.items() if name != DIGEST_FIELD}
    return hashlib.sha256(rfc8785.dumps(rest)).hexdigest()


def _findings(graph: Queryable, now: Mapping[str, Value], observations: dict[str, Packet]) -> list[Packet]:
    enables = _grouped(graph, _ENABLES, now)
    rests_on = _grouped(graph, _RESTS_ON, now)
    findings = _objects(graph, _FINDINGS, now)
    for finding in findings:
        finding["capabilities"] = enables.get(str(finding["id"]), [])
        finding["rests_on"] = rests_on.get(str(finding["id"]), [])
        observation = observations[str(finding["observation_id"])]
        finding["evidence"] = observation["evidence"]
        finding["receipt"] = observation["receipt"]
    return findings


def _checked_observation(row: Packet, keys: Mapping[str, Packet], blobs: BlobStore) -> Packet:
    """An observation with its receipt checked and its evidence digest recomputed from the stored bytes."""
    evidence = {
        "sha256": row.pop("evidence_sha256"),
        "size": row.pop("evidence_bytes"),
        "media_type": row.pop("evidence_media_type"),
    }
    try:
        size_fits = len(blobs.get(str(evidence["sha256"]))) == evidence["size"]
        fault = None if size_fits else "its size is another"
    except Corruption as error:
        fault = error.code
    receipt, runner = str(row.pop("receipt")), str(row.pop("runner"))
    wrong = _receipt_fault(row, str(evidence["sha256"]), receipt, keys[runner])
    return {
        **row,
        "evidence": evidence,
        "evidence_check": {"valid": fault is None, "fault": fault},
        "receipt": {"envelope": receipt, "key_id": runner, "valid": wrong is None, "fault": wrong},
    }


def _receipt_fault(observation: Packet, evidence_sha256: str, receipt: str, key: Packet) -> str | None:
    names = ("case_id", "test_id", "revision", "outcome")
    statement = Statement(evidence_sha256, *(str(observation[name]) for name in names))
    return fault_of(receipt, statement, Signer(str(key["key_id"]), str(key["public_key"])))


def _audit(observations: list[Packet], records: list[LogRecord], keys: Mapping[str, Packet]) -> Packet:
    signed = [record for record in records if signature_header(record.headers) is not None]
    signatures_right = sum(_signature_right(record, keys) for record in signed)
    receipts_right = sum(bool(row["receipt"]["valid"]) for row in observations)
    evidence_right = sum(bool(row["evidence_check"]["valid"]) for row in observations)
    checked = len(signed) + 2 * len(observations)
    return {
        "checked": checked,
        "valid": signatures_right + receipts_right + evidence_right == checked,
        "signatures": {"checked": len(signed), "valid": signatures_right},
        "receipts": {"checked": len(observations), "valid": receipts_right},
        "evidence_digests": {"checked": len(observations), "valid": evidence_right},
    }


def _signature_right(record: LogRecord, keys: Mapping[str, Packet]) -> bool:
    header = signature_header(record.headers)
    assert header is not None
    signature = parse_signature(header)
    key = keys.get(signature.key_id)
    return (
        key is not None
        and signature.payload_type == EVENT_PAYLOAD_TYPE
        and verify(signature, record.value or b"", str(key["public_key"]))
    )


def _records(projection: RunView, state: RunState) -> list[LogRecord]:
    """The records that the packet rests on, read from the log itself."""
    graph = projection.graph
    now: Mapping[str, Value] = {"revision": state.active_revision}
    cases = _objects(graph, _CASES, now)
    findings = _objects(graph, _CURRENT_OR_FALLEN, now)
    subjects = tuple(str(row["id"]) for row in (*cases, *findings))
    rows = [
        *cases,
        *_objects(graph, _GOAL_SET, {"goal": state.goal_id}),
        *_objects(graph, _RECORDS, {"types": _ALWAYS, "subjects": subjects}),
    ]
    offsets = {int(row["at"]) for row in rows}
    found = projection.reader.read(min(offsets), max(offsets) + 1)
    return [record for batch in found for record in batch if record.offset in offsets]


def _packed(record: LogRecord) -> Packet:
    """A record as a packet carries it: exact value bytes, and its signature in the one form that we write."""
    header = signature_header(record.headers)
    return {
        "offset": record.offset,
        "value": base64.b64encode(record.value or b"").decode(),
        "signature": None if header is None else parse_signature(header).to_json(),
    }


def _candidate(candidate: Candidate) -> Packet:
    return {
        "test_id": candidate.test_id,
        "asset_id": candidate.asset_id,
        "impact": candidate.impact,
        "depth": candidate.depth,
        "support": [{"finding_id": pair.finding_id, "capability": pair.capability} for pair in candidate.support],
    }


def _blocked(graph: Queryable) -> list[Packet]:
    """Tests that nothing was tried of and that aren't eligible, each with why."""
    answers = [why_not(graph, str(row["id"])) for row in _objects(graph, _TESTS)]
    return [
        {"test_id": answer.test_id, "missing": [gap.capability for gap in answer.gaps], "reasons": answer.reasons()}
        for answer in answers
        if not answer.eligible and answer.standing is None
    ]


def _grouped(graph: Queryable, cypher: str, parameters: Mapping[str, Value]) -> dict[str, list[str]]:
    groups: dict[str, list[str]] = {}
    for row in _objects(graph, cypher, parameters):
        groups.setdefault(str(row["finding"]), []).append(str(row["other"]))
    return groups


def _objects(graph: Queryable, cypher: str, parameters: Mapping[str, Value] | None = None) -> list[Packet]:
    table = graph.query(cypher, parameters)
    return [dict(zip(table.columns, row, strict=True)) for row in table.rows]
