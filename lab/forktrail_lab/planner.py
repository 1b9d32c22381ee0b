"""The planner as a behavior: where the run's setting says so, each new finding has the next test proposed.

    forktrail set $RUN propose-tests=on-finding
    forktrail behaviors run $RUN --pack forktrail_lab.planner

It decides as `forktrail investigate` does, and it stops there: a person approves before anything runs. Another case
that is opened meanwhile overtakes it, as the log has it.
"""

from __future__ import annotations

from forktrail_behaviors.behavior import behavior
from forktrail_behaviors.context import Context
from forktrail_behaviors.given import Node
from forktrail_behaviors.pack import Pack
from forktrail_projectors.discovery import RANKED, SUPPORT, Candidate, candidate_of
from forktrail_projectors.rules.log import ON_FINDING
from forktrail_schemas.events import TestProposed

_STATE = """
MATCH (r:Run) OPTIONAL MATCH (s:Setting {id: 'propose-tests'})
RETURN r.active_revision AS revision, r.status AS status, r.last_case_offset AS last_case_offset, s.value AS propose
"""


def proposal(chosen: Candidate, considered: int, revision: str, as_of: int) -> dict[str, object]:
    """The fields of a TestProposed.

    Args:
        considered: how many tests were eligible.
        as_of: a case that was opened from this offset on overtakes it.
    """
    tests = "1 eligible test" if considered == 1 else f"{considered} eligible tests"
    return {
        "test_id": chosen.test_id,
        "revision": revision,
        "finding_ids": list(chosen.finding_ids),
        "as_of": as_of,
        "rationale": f"highest impact ({chosen.impact}) of {tests}",
    }


@behavior(
    when="MATCH (f:Finding) WHERE f.withdrawn = false",
    emits=[TestProposed],
    repeats="a proposal makes no finding: a person, a runner and a reviewer stand between",
)
async def propose_next_test(ctx: Context, f: Node) -> None:
    """Propose the eligible test of highest impact, if there is one."""
    (run,) = await ctx.query(_STATE)
    if run.status != "open" or run.propose != ON_FINDING:
        return
    ranked = await ctx.query(RANKED, revision=run.revision)
    if not ranked:
        return
    rows = await ctx.query(SUPPORT, tests=(ranked[0].test,), revision=run.revision)
    if not rows or any(row.finding is None for row in rows):
        return  # its support has gone since
    chosen = candidate_of(rows)
    ctx.emit(TestProposed, **proposal(chosen, len(ranked), run.revision, run.last_case_offset + 1))


PACK = Pack("planner", behaviors=[propose_next_test])
