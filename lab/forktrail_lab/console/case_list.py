"""The cases of a run, a row each."""

from __future__ import annotations

from forktrail_lab.console.session import RunSession
from forktrail_projectors.discovery import missing_support
from forktrail_projectors.rules.context import text
from forktrail_projectors.rules.evidence import ACCEPTED, APPROVED, DENIED, OBSERVED, PROPOSED, REJECTED, RUNNING

STATUSES = (PROPOSED, APPROVED, DENIED, RUNNING, OBSERVED, ACCEPTED, REJECTED)
COLUMNS = (
    "case_id", "test", "revision", "status", "outcome", "proposer", "approver", "runner", "reviewer", "finding",
    "remark",
)  # fmt: skip

_CASES = """
MATCH (c:`Case`) WHERE $status = '' OR c.status = $status
RETURN c.id, c.test, c.revision, c.status, c.outcome, c.proposer, c.approver, c.runner, c.reviewer, c.retried
ORDER BY c.created_offset
"""
_HOLDERS = "MATCH (k:`Key`) RETURN k.id, k.holder"
_FINDINGS = "MATCH (f:Finding) RETURN f.case_id, f.id, f.withdrawn_by"
# What can't become of a case whose support is gone.
_STUCK = {PROPOSED: "can't be approved now", APPROVED: "can't run now"}


def case_rows(session: RunSession, status: str | None = None) -> list[tuple[object, ...]]:
    """The cases in the order they were opened, all or those of one status; see COLUMNS.

    A runner is named by its key's holder. The remark says what the rest doesn't: that the finding was withdrawn, or
    that what the case needs to go on is no longer provided.
    """
    revision = text(session.run, "active_revision")
    cases = session.query(_CASES, status=status or "").rows
    holders = {row[0]: row[1] for row in session.query(_HOLDERS).rows}
    findings = {row[0]: (row[1], row[2]) for row in session.query(_FINDINGS).rows}
    waiting = {id: str(test) for id, test, where, now, *_, retried in cases if _waits(where, now, revision, retried)}
    missing = missing_support(session.projection.graph, revision, waiting.values())
    rows: list[tuple[object, ...]] = []
    for *facts, runner, reviewer, _ in cases:
        finding, withdrawn_by = findings.get(facts[0], (None, None))
        lacks = missing.get(waiting.get(facts[0], ""), ())
        remark = None if withdrawn_by is None else f"finding withdrawn by {withdrawn_by}"
        if lacks:
            remark = f"support gone ({', '.join(lacks)}): {_STUCK[str(facts[3])]}"
        rows.append((*facts, holders.get(runner), reviewer, finding, remark))
    return rows


def _waits(revision: object, status: object, active: str, retried: object) -> bool:
    """Whether a case is one that may still be approved or run, as long as its support stands."""
    return revision == active and status in _STUCK and not retried
