"""A fresh investigator: proposes the next test from nothing but the graph. It keeps no memory and asks no model.

Of the eligible tests it takes the one of highest impact, checks it again against everything it can be checked against,
and puts it to a person. It decides on the log as it stood when it started: if another case was opened meanwhile, the
other won, and it says so instead of taking the second best.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from forktrail_lab.planner import proposal
from forktrail_lab.registry.catalog import confirmed_candidate, registry_of_run
from forktrail_producers.blobs import BlobStore
from forktrail_producers.producer import meta
from forktrail_projectors.discovery import Candidate, RunState, all_eligible_tests, run_state
from forktrail_projectors.projection import open_projection
from forktrail_projectors.rules.log import CASES, FINDING_DEPTH
from forktrail_projectors.submit import Submission, submit
from forktrail_projectors.view import RunView, Say
from forktrail_schemas.errors import Corruption, ForktrailError, GraphError
from forktrail_schemas.events import TestProposed
from forktrail_schemas.ids import derived_id
from forktrail_schemas.settings import Settings
from forktrail_schemas.wire import build

PROVIDER = "deterministic"
OTHER_WON = ("overtaken", "case_exists")

_SUPPORT = """
MATCH (f:Finding)-[:FOUND_IN]->(c:`Case`)
MATCH (o:Observation {id: f.observation})
MATCH (r:Review {id: f.review})
WHERE f.id IN $findings
RETURN f.id AS id, f.revision AS revision, f.withdrawn AS withdrawn, c.status AS status, o.outcome AS outcome,
       r.decision AS decision, o.evidence_sha256 AS evidence, f.created_event AS event
ORDER BY id
"""
_BUDGETS = "MATCH (b:Budget) RETURN b.id, b.`limit`, b.used"


@dataclass(frozen=True)
class Investigation:
    """What one investigator came to.

    Attributes:
        status: "proposed"; "overtaken" where another case was opened first (`won_by`); "no_candidates".
        considered: how many tests were eligible.
        candidates: their ids, best first.
    """

    status: str
    considered: int
    candidates: tuple[str, ...]
    selection: Candidate | None = None
    case_id: str | None = None
    won_by: str | None = None

    def to_json(self) -> dict[str, object]:
        """The one JSON object that an investigator prints."""
        selection = self.selection and {
            "test_id": self.selection.test_id,
            "asset_id": self.selection.asset_id,
            "finding_ids": list(self.selection.finding_ids),
        }
        return {
            "process_id": os.getpid(),
            "previous_messages": 0,
            "status": self.status,
            "provider": PROVIDER,
            "considered": self.considered,
            "candidates": list(self.candidates),
            "selection": selection,
            "case_id": self.case_id,
            "won_by": self.won_by,
        }


def investigate(
    settings: Settings,
    run: str,
    as_of: int,
    *,
    registry_file: Path | None = None,
    actor: str = "investigator",
    fold: bool = True,
    say: Say = lambda line: None,
) -> Investigation:
    """Choose the next test, check it, and propose it.

    Args:
        as_of: the log's end when the investigator started; a case opened from there on overtakes it.

    Raises:
        NotFound: no such run.
        GraphError: the graph is missing, behind, of another log, or contradicts the registry; nothing was proposed.
        Corruption: evidence that the choice would rest on is missing or altered; nothing was proposed.
        EventVoid: the log holds the proposal, and it was refused for another reason than that another won.
    """
    with open_projection(settings, run, fold=fold, say=say) as projection:
        graph = projection.graph
        state = run_state(graph)
        if state.status != "open":
            raise ForktrailError(f"{run} is {state.status}", code="run_closed", hint="open a new run")
        candidates = all_eligible_tests(graph, state.active_revision)
        names = tuple(candidate.test_id for candidate in candidates)
        if state.last_case_offset >= as_of:
            return Investigation("overtaken", len(names), names, won_by=state.last_case)
        if not candidates:
            return Investigation("no_candidates", 0, ())
        chosen = candidates[0]
        causes = _checked(projection, BlobStore(str(settings.blobs_dir)), chosen, state, registry_file)
    event = build(
        TestProposed,
        {
            "meta": meta(run, "agent", actor, causes=causes, goal=state.goal_id),
            **proposal(chosen, len(names), state.active_revision, as_of),
        },
    )
    return _concluded(submit(settings, event, say=say), event, chosen, names)


def _concluded(submission: Submission, event: TestProposed, chosen: Candidate, names: tuple[str, ...]) -> Investigation:
    verdict = submission.verdict
    if not verdict.valid and verdict.reason in OTHER_WON:
        return Investigation("overtaken", len(names), names, chosen, won_by=verdict.detail)
    submission.require_valid()
    return Investigation("proposed", len(names), names, chosen, case_id=derived_id("case", event.meta.event_id))


def _checked(
    projection: RunView, blobs: BlobStore, chosen: Candidate, state: RunState, registry_file: Path | None
) -> list[str]:
    """Check a candidate against registry, findings, evidence and budgets; returns the events it follows from."""
    graph = projection.graph
    confirmed_candidate(graph, registry_of_run(graph, blobs, registry_file), chosen)
    table = graph.query(_SUPPORT, {"findings": chosen.finding_ids})
    rows = [dict(zip(table.columns, row, strict=True)) for row in table.rows]
    if [row["id"] for row in rows] != list(chosen.finding_ids):
        raise GraphError(f"findings of {chosen.test_id} have no observation and review", code="finding_unsupported")
    for row in rows:
        stands = (row["revision"], row["withdrawn"], row["status"], row["outcome"], row["decision"]) == (
            state.active_revision,
            False,
            "accepted",
            "reproduced",
            "accept",
        )
        if not stands:
            raise GraphError(f"{row['id']} is not confirmed and current", code="finding_unsupported")
        _check_evidence(blobs, str(row["id"]), str(row["evidence"]))
    limits = {str(name): (limit, used) for name, limit, used in graph.query(_BUDGETS).rows}
    for name, amount in ((CASES, _number(limits[CASES][1]) + 1), (FINDING_DEPTH, chosen.depth)):
        limit = limits[name][0]
        if limit is not None and amount > _number(limit):
            raise ForktrailError(
                f"{chosen.test_id} would take {name} to {amount}, and {limit} are allowed",
                code="budget_exhausted",
                hint=f"raise it with `forktrail budget {projection.run} {name}=N`",
            )
    return [str(row["event"]) for row in rows]


def _check_evidence(blobs: BlobStore, finding: str, sha256: str) -> None:
    try:
        blobs.get(sha256)
    except Corruption as error:
        error.message = f"the evidence of {finding} can't be relied on: {error.message}"
        raise


def _number(value: object) -> int:
    assert isinstance(value, int)
    return value
