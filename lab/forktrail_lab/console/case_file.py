"""All that a run knows of one case: what it sends, what it rests on, and who decided what about it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from forktrail_lab.console.definition import bounds_in_words, request_parts, rules_in_words
from forktrail_lab.console.output import time_text
from forktrail_lab.console.reading import event_of
from forktrail_lab.console.session import RunSession
from forktrail_lab.registry.catalog import confirmed_test, registry_of_run
from forktrail_producers.blobs import BlobStore
from forktrail_projectors.receipts import Statement, fault_of
from forktrail_projectors.rules.context import Signer, number, text
from forktrail_projectors.rules.support import is_current
from forktrail_projectors.state import EdgesKey, End, NodeKey, Row
from forktrail_schemas.errors import Corruption, GraphCatalogMismatch, InvalidInput
from forktrail_schemas.events import TestProposed

Part = dict[str, object]


@dataclass(frozen=True)
class CaseFile:
    """A case and what stands behind it; a part is None where there is no such thing (yet).

    Attributes:
        sends: the definition; where it isn't to be had, `fault` says why and the rest is empty.
        rests_on: the findings that met the test's requirements when the case was opened.
    """

    case: Part
    test: Part
    sends: Part
    opened: Part
    rests_on: list[Part]
    approval: Part | None
    observation: Part | None
    review: Part | None
    finding: Part | None


def case_file(session: RunSession, case: Row, blobs: BlobStore, registry_file: Path | None = None) -> CaseFile:
    """Bring together what graph, log and blob store hold of a case.

    Args:
        registry_file: read the definition from there, not from the registry that the run was opened with.

    Raises:
        NotFound: no such registry file.
        InvalidInput: the registry file isn't one.
        GraphCatalogMismatch: the registry file defines the test otherwise than the run.
    """
    key = NodeKey("Case", text(case, "id"))
    findings = _neighbours(session, "RESTS_ON", "source", key)
    made = _neighbours(session, "FOUND_IN", "target", key)
    test, sends = _definition(session, case, blobs, registry_file)
    return CaseFile(
        case=_case(session, case),
        test=test,
        sends=sends,
        opened=_opened(session, case),
        rests_on=[_finding(session, row) for row in findings],
        approval=None if case["approval"] is None else _approval(session, text(case, "approval")),
        observation=None if case["observation"] is None else _observation(session, text(case, "observation")),
        review=None if case["reviewer"] is None else _review(session, text(case, "observation")),
        finding=_finding(session, made[0]) if made else None,
    )


def _case(session: RunSession, case: Row) -> Part:
    active = text(session.run, "active_revision")
    return {
        "id": case["id"],
        "test": case["test"],
        "revision": case["revision"],
        "revision_active": case["revision"] == active,
        "status": case["status"],
        "outcome": case["outcome"],
        "runner": None if case["runner"] is None else session.existing("Key", text(case, "runner"))["holder"],
        "depth": case["depth"],
        "retried": case["retried"],
    }


def _definition(session: RunSession, case: Row, blobs: BlobStore, registry_file: Path | None) -> tuple[Part, Part]:
    """The test, and what it sends; without its registry, what the log says of it."""
    row = session.existing("TestCase", text(case, "test"))
    key = NodeKey("TestCase", text(case, "test"))
    test: Part = {
        "id": row["id"],
        "title": row["title"],
        "description": None,
        "asset": row["asset"],
        "impact": row["impact"],
        "requires": _ids(session, "REQUIRES", "source", key),
        "enables": _ids(session, "WOULD_ENABLE", "source", key),
    }
    graph = session.projection.graph
    try:
        registry = registry_of_run(graph, blobs, registry_file)
        defined = confirmed_test(graph, registry, text(case, "test"))
    except (Corruption, InvalidInput, GraphCatalogMismatch) as error:
        if registry_file is not None:
            raise
        return test, {"fault": str(error), "requests": [], "bounds": None, "rules": []}
    sends: Part = {
        "fault": None,
        "requests": [request_parts(request, registry) for request in defined.requests],
        "bounds": bounds_in_words(defined),
        "rules": rules_in_words(defined),
    }
    return test | {"description": defined.description}, sends


def _opened(session: RunSession, case: Row) -> Part:
    """Who opened the case, and in what words: a report's, or a proposal's rationale, which only the log has."""
    reports = _neighbours(session, "OPENED", "target", NodeKey("Case", text(case, "id")))
    more: Part = {}
    if reports:
        words = reports[0]["summary"]
        more = {"details": reports[0]["details"]} if reports[0]["details"] else {}
    else:
        value = session.projection.reader.record_at(number(case, "created_offset")).value or b""
        proposal = event_of(session.projection.graph, value)
        words = proposal.rationale if isinstance(proposal, TestProposed) else None
    return {"by": case["proposer"], "how": case["opened_by"], "words": words, **more, **_when(session, case)}


def _approval(session: RunSession, id: str) -> Part:
    row = session.existing("Approval", id)
    return {
        "id": id,
        "decision": row["decision"],
        "by": row["approver"],
        "key_holder": _signer(session, row),
        "reason": row["reason"],
        **_when(session, row),
    }


def _observation(session: RunSession, id: str) -> Part:
    row = session.existing("Observation", id)
    key = session.existing("Key", text(row, "runner"))
    statement = Statement(*(text(row, name) for name in ("evidence_sha256", "case_id", "test", "revision", "outcome")))
    fault = fault_of(text(row, "receipt"), statement, Signer(text(key, "id"), text(key, "public_key")))
    return {
        "id": id,
        "outcome": row["outcome"],
        "reason": row["reason"],
        "runner": key["holder"],
        "requests": row["requests"],
        "interrupted": row["interrupted"],
        "evidence_sha256": row["evidence_sha256"],
        "evidence_bytes": row["evidence_bytes"],
        "receipt_valid": fault is None,
        "receipt_fault": fault,
        **_when(session, row),
    }


def _review(session: RunSession, observation: str) -> Part:
    (row,) = _neighbours(session, "REVIEWS", "target", NodeKey("Observation", observation))
    return {
        "id": row["id"],
        "decision": row["decision"],
        "by": row["reviewer"],
        "key_holder": _signer(session, row),
        "note": row["note"],
        **_when(session, row),
    }


def _finding(session: RunSession, row: Row) -> Part:
    return {
        "id": row["id"],
        "test": row["test"],
        "revision": row["revision"],
        "current": is_current(row, text(session.run, "active_revision")),
        "withdrawn": row["withdrawn"],
        "withdrawn_by": row["withdrawn_by"],
        "withdrawn_reason": row["withdrawn_reason"],
        "capabilities": _ids(session, "ENABLES", "source", NodeKey("Finding", text(row, "id"))),
    }


def _when(session: RunSession, row: Row) -> Part:
    offset = number(row, "created_offset")
    return {"at": time_text(session.existing("Event", offset)["occurred_at"]), "offset": offset}


def _signer(session: RunSession, row: Row) -> object:
    """Whom the key that signed a row's event is registered for."""
    signer = session.existing("Event", number(row, "created_offset"))["signer"]
    return None if signer is None else session.existing("Key", str(signer))["holder"]


def _neighbours(session: RunSession, table: str, end: End, node: NodeKey) -> list[Row]:
    keys = _keys(session, table, end, node)
    rows = session.projection.graph.nodes(keys)
    return [rows[key] for key in keys]


def _ids(session: RunSession, table: str, end: End, node: NodeKey) -> list[str]:
    return [str(key.id) for key in _keys(session, table, end, node)]


def _keys(session: RunSession, table: str, end: End, node: NodeKey) -> list[NodeKey]:
    """The nodes at the other end of a node's relations, sorted."""
    wanted = EdgesKey(table, end, node)
    edges = session.projection.graph.edges([wanted])[wanted]
    return [edge.target if end == "source" else edge.source for edge in edges]
