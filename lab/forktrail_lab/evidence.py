"""Reads stored evidence, and recomputes it: digest, receipt and outcome, from the bytes and the registry alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from forktrail_lab.exchange.outcome import judge
from forktrail_lab.exchange.transcript import Transcript, parse_evidence
from forktrail_lab.registry.file import definition_sha256, find_test
from forktrail_lab.registry.model import Registry
from forktrail_producers.blobs import BlobStore
from forktrail_projectors.graph.protocol import Queryable
from forktrail_projectors.receipts import Statement, fault_of
from forktrail_projectors.rules.context import Signer
from forktrail_projectors.state import Row
from forktrail_schemas.errors import Corruption, NotFound

_OBSERVATIONS = """
MATCH (o:Observation)-[:OBSERVES]->(:`Case`)-[:ATTEMPTS]->(t:TestCase)
MATCH (k:`Key` {id: o.runner})
RETURN o.id AS id, o.case_id AS case_id, o.test AS test_id, o.revision AS revision, o.outcome AS outcome,
       o.evidence_sha256 AS sha256, o.evidence_bytes AS size, o.receipt AS receipt, o.requests AS requests,
       o.interrupted AS interrupted, k.id AS key_id, k.public_key AS public_key,
       t.definition_sha256 AS definition
ORDER BY o.created_offset
"""


@dataclass(frozen=True)
class EvidenceCheck:
    """What recomputing one observation gave; `faults` is empty where all of it held."""

    observation_id: str
    test_id: str
    revision: str
    outcome: str
    evidence_sha256: str
    faults: tuple[str, ...]


def stored_evidence(blobs: BlobStore, observation: Row) -> tuple[bytes, Transcript]:
    """The bytes that an observation rests on, which are those that its runner signed for, and what they say.

    Raises:
        EvidenceMissing: they are not in the store.
        Corruption: other bytes are, or such as no runner writes.
    """
    data = blobs.get(str(observation["evidence_sha256"]))
    return data, parse_evidence(data)


def confirm_of_case(transcript: Transcript, case_id: str, run: str) -> None:
    """Refuse evidence that a runner recorded for another case than its own.

    Raises:
        Corruption: it is another's (code `evidence_invalid`).
    """
    if transcript.case_id != case_id:
        raise Corruption(
            f"what was stored for {case_id} is the evidence of {transcript.case_id}",
            code="evidence_invalid",
            hint=f"`forktrail evidence verify {run}` tells all that is wrong",
        )


def check_evidence(graph: Queryable, blobs: BlobStore, registry: Registry) -> list[EvidenceCheck]:
    """Recompute every observation of a run, in the order of the log."""
    table = graph.query(_OBSERVATIONS)
    rows = [dict(zip(table.columns, row, strict=True)) for row in table.rows]
    return [
        EvidenceCheck(
            str(row["id"]),
            str(row["test_id"]),
            str(row["revision"]),
            str(row["outcome"]),
            str(row["sha256"]),
            (*_receipt_faults(row), *_evidence_faults(row, blobs, registry)),
        )
        for row in rows
    ]


def _receipt_faults(row: Mapping[str, object]) -> list[str]:
    names = ("sha256", "case_id", "test_id", "revision", "outcome")
    statement = Statement(*(str(row[name]) for name in names))
    fault = fault_of(str(row["receipt"]), statement, Signer(str(row["key_id"]), str(row["public_key"])))
    return [] if fault is None else [f"receipt: {fault}"]


def _evidence_faults(row: Mapping[str, object], blobs: BlobStore, registry: Registry) -> list[str]:
    try:
        data = blobs.get(str(row["sha256"]))
        transcript = parse_evidence(data)
    except Corruption as error:
        return [f"{error.code}: {error.message}"]
    faults = [] if len(data) == row["size"] else [f"it has {len(data)} bytes, {row['size']} were recorded"]
    for name in ("case_id", "test_id", "revision", "interrupted"):
        if getattr(transcript, name) != row[name]:
            faults.append(f"its {name} is {getattr(transcript, name)}, {row[name]} was recorded")
    if transcript.request_count != row["requests"]:
        faults.append(f"it holds {transcript.request_count} requests, {row['requests']} were recorded")
    try:
        test = find_test(registry, str(row["test_id"]))
    except NotFound as error:
        return [*faults, error.message]
    if not definition_sha256(test, registry) == row["definition"] == transcript.definition_sha256:
        faults.append("the test's definition in the registry is not the one it was run by")
    outcome = judge(test, transcript).outcome
    if outcome != row["outcome"]:
        faults.append(f"its exchanges give {outcome}, {row['outcome']} was recorded")
    return faults
