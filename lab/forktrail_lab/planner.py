"""The planner as a behavior: where the run's setting says so, each new finding has the next test proposed.

    forktrail set $RUN propose-tests=on-finding
    forktrail behaviors run $RUN --pack forktrail_lab.planner

It decides as `forktrail investigate` does, or has a model choose (`forktrail set $RUN planner-model=analyst`, and
`--models FILE`): among the graph's candidates alone, or its execution fails and the log says so. It stops there: a
person approves before anything runs. Another case that is opened meanwhile overtakes it, as the log has it.
"""

from __future__ import annotations

import json

from pydantic import BaseModel, Field

from forktrail_behaviors.behavior import behavior
from forktrail_behaviors.context import Context
from forktrail_behaviors.given import Node, Rows
from forktrail_behaviors.pack import Pack
from forktrail_projectors.discovery import RANKED, SUPPORT, Candidate, candidate_of
from forktrail_projectors.rules.log import NO_MODEL, ON_FINDING
from forktrail_schemas.errors import ForktrailError
from forktrail_schemas.events import TestProposed
from forktrail_schemas.values import TEXT_LENGTH_MAX

_STATE = """
MATCH (r:Run) OPTIONAL MATCH (s:Setting {id: 'propose-tests'})
OPTIONAL MATCH (m:Setting {id: 'planner-model'})
RETURN r.active_revision AS revision, r.status AS status, r.last_case_offset AS last_case_offset, s.value AS propose,
       m.value AS model
"""
# A model sees so many candidates, those of highest impact first, and must be as sure as this.
CANDIDATES_MAX, CONFIDENCE_MIN = 50, 0.5
PROMPT = (
    "You plan an authorized security investigation. Choose the registered test to run next, among the candidates alone;"
    " answer with its test_id, how sure you are from 0 to 1, and why in one sentence. Choose null where none is worth"
    " running."
)


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


class Choice(BaseModel):
    """What a model is asked for.

    Attributes:
        test_id: one of the candidates; None for none of them.
        confidence: from 0 to 1.
    """

    test_id: str | None
    confidence: float = Field(ge=0, le=1)
    why: str


class NotACandidate(ForktrailError):
    """A model chose a test that isn't among the graph's candidates; nothing is proposed, and the log says why."""

    code = "not_a_candidate"


@behavior(
    when="MATCH (f:Finding) WHERE f.withdrawn = false",
    emits=[TestProposed],
    repeats="a proposal makes no finding: a person, a runner and a reviewer stand between",
)
async def propose_next_test(ctx: Context, f: Node) -> None:
    """Propose the eligible test of highest impact, if there is one, or the one that the run's model chooses."""
    (run,) = await ctx.query(_STATE)
    if run.status != "open" or run.propose != ON_FINDING:
        return
    ranked = await ctx.query(RANKED, revision=run.revision)
    if not ranked:
        return
    chosen, why = ranked[0].test, ""
    if run.model not in (None, NO_MODEL):
        choice = await _choice(ctx, run.model, ranked)
        if choice.test_id is None:
            return
        chosen, why = choice.test_id, f"{run.model} chose it ({choice.confidence:g}): {choice.why}"
    rows = await ctx.query(SUPPORT, tests=(chosen,), revision=run.revision)
    if not rows or any(row.finding is None for row in rows):
        return  # its support has gone since
    told = proposal(candidate_of(rows), len(ranked), run.revision, run.last_case_offset + 1)
    ctx.emit(TestProposed, **told | ({"rationale": why[:TEXT_LENGTH_MAX]} if why else {}))


async def _choice(ctx: Context, model: str, ranked: Rows) -> Choice:
    """What a model chooses among the candidates.

    Raises:
        Abstained: it isn't sure enough.
        NotACandidate: it chose another test.
    """
    content = {"candidates": [{"test_id": one.test, "impact": one.impact} for one in ranked[:CANDIDATES_MAX]]}
    messages = [{"role": "system", "content": PROMPT}, {"role": "user", "content": json.dumps(content)}]
    choice = await ctx.model(model, messages=messages, schema=Choice, abstain_below=CONFIDENCE_MIN)
    if choice.test_id is not None and choice.test_id not in {one.test for one in ranked[:CANDIDATES_MAX]}:
        raise NotACandidate(f"{model} chose {choice.test_id[:80]!r}, which is not among {len(ranked)} candidates")
    return choice


PACK = Pack("planner", behaviors=[propose_next_test])
