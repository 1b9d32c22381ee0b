"""The cases of a run, a row each."""

from __future__ import annotations

from forktrail_lab.console.session import RunSession
from forktrail_projectors.rules.evidence import ACCEPTED, APPROVED, DENIED, OBSERVED, PROPOSED, REJECTED, RUNNING

STATUSES = (PROPOSED, APPROVED, DENIED, RUNNING, OBSERVED, ACCEPTED, REJECTED)
COLUMNS = (
    "case_id", "test", "revision", "status", "outcome", "proposer", "approver", "runner", "reviewer", "finding",
)  # fmt: skip

_CASES = """
MATCH (c:`Case`) WHERE $status = '' OR c.status = $status
RETURN c.id, c.test, c.revision, c.status, c.outcome, c.proposer, c.approver, c.runner, c.reviewer
ORDER BY c.created_offset
"""
_HOLDERS = "MATCH (k:`Key`) RETURN k.id, k.holder"
_FINDINGS = "MATCH (f:Finding) RETURN f.case_id, f.id"


def case_rows(session: RunSession, status: str | None = None) -> list[tuple[object, ...]]:
    """The cases in the order they were opened, all or those of one status; see COLUMNS.

    A runner is named by its key's holder.
    """
    holders = {row[0]: row[1] for row in session.query(_HOLDERS).rows}
    findings = {row[0]: row[1] for row in session.query(_FINDINGS).rows}
    return [
        (*facts, holders.get(runner), reviewer, findings.get(facts[0]))
        for *facts, runner, reviewer in session.query(_CASES, status=status or "").rows
    ]
