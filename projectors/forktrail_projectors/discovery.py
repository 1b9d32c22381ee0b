"""Discovery: which tests are eligible now. Asked of the graph alone, with fixed queries.

A test is eligible when every capability it requires is provided by a current finding (confirmed, not withdrawn, of the
active revision) and no attempt of it stands in that revision. A test that requires nothing is opened by a report.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from forktrail_projectors.graph.protocol import Queryable
from forktrail_projectors.state import Value
from forktrail_schemas.errors import GraphUnavailable

PAGE_SIZE = 100
TESTS_PER_QUERY = 1_000
# From the findings to the tests, each capability once: there may be thousands of findings and of attempts. Between two
# nodes there is one relation at most, so plain counts are right; kuzu 0.11.3 answers NULL where they mix with DISTINCT.
# Takes the $revision; the ids of eligible tests, best first.
RANKED = """
MATCH (f:Finding)-[:ENABLES]->(c:Capability) WHERE f.revision = $revision AND NOT f.withdrawn
WITH DISTINCT c
MATCH (c)<-[:REQUIRES]-(t:TestCase)
WITH t, count(*) AS met
MATCH (t)-[:REQUIRES]->(r:Capability)
WITH t, met, count(*) AS required
WHERE met = required
  AND NOT EXISTS { MATCH (t)<-[:ATTEMPTS]-(a:`Case`) WHERE a.revision = $revision AND NOT a.retried }
RETURN t.id AS test, t.impact AS impact ORDER BY impact DESC, test
"""
# Takes ids of $tests and the $revision. OPTIONAL, since without it the engine goes through all relations instead of
# those of these tests.
SUPPORT = """
UNWIND $tests AS id
MATCH (t:TestCase) WHERE t.id = id
WITH t
OPTIONAL MATCH (t)-[:REQUIRES]->(c:Capability)
WITH t, c
OPTIONAL MATCH (c)<-[:ENABLES]-(f:Finding) WHERE f.revision = $revision AND NOT f.withdrawn
RETURN t.id AS test, t.asset AS asset, t.title AS title, t.impact AS impact, t.requests_max AS requests_max,
       t.definition_sha256 AS definition_sha256, c.id AS capability, f.id AS finding, f.depth AS depth
"""

_RUN = "MATCH (r:Run) RETURN r.active_revision, r.status, r.goal, r.last_case, r.last_case_offset"


@dataclass(frozen=True)
class RunState:
    """What the graph says of the run itself."""

    active_revision: str
    status: str
    goal_id: str
    last_case: str | None
    last_case_offset: int


@dataclass(frozen=True, order=True)
class Support:
    """A current finding that provides a required capability."""

    finding_id: str
    capability: str


@dataclass(frozen=True)
class Candidate:
    """An eligible test.

    Attributes:
        depth: that a finding of it would have: one more than the deepest finding it rests on.
        support: every (finding, capability) pair that meets its requirements, sorted.
    """

    test_id: str
    asset_id: str
    title: str
    impact: int
    requests_max: int
    definition_sha256: str
    depth: int
    support: tuple[Support, ...]

    @property
    def finding_ids(self) -> tuple[str, ...]:
        """The findings it rests on, sorted."""
        return tuple(sorted({pair.finding_id for pair in self.support}))


@dataclass(frozen=True)
class Page:
    """Some of the eligible tests, by impact descending and then id.

    Attributes:
        total: how many there are in all.
    """

    candidates: tuple[Candidate, ...]
    total: int


def run_state(graph: Queryable) -> RunState:
    """What the graph says of the run.

    Raises:
        GraphUnavailable: the log holds no valid RunOpened.
    """
    rows = graph.query(_RUN).rows
    if not rows:
        raise GraphUnavailable("the run was never opened: its log holds no valid RunOpened", code="run_not_open")
    revision, status, goal, last_case, last_case_offset = rows[0]
    return RunState(
        str(revision),
        str(status),
        str(goal),
        None if last_case is None else str(last_case),
        cast(int, last_case_offset),
    )


def eligible_tests(graph: Queryable, revision: str, *, skip: int = 0, limit: int = PAGE_SIZE) -> Page:
    """One page of the eligible tests."""
    ranked = _ranked(graph, revision)
    return Page(tuple(_candidates(graph, revision, ranked[skip : skip + limit])), len(ranked))


def all_eligible_tests(graph: Queryable, revision: str) -> list[Candidate]:
    """All eligible tests, by impact descending and then id."""
    return _candidates(graph, revision, _ranked(graph, revision))


def missing_support(graph: Queryable, revision: str, tests: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """By test, the capabilities that it requires and no current finding provides; tests that lack none are left out."""
    asked = tuple(sorted(set(tests)))
    missing: dict[str, list[str]] = {}
    for start in range(0, len(asked), TESTS_PER_QUERY):
        some: Mapping[str, Value] = {"tests": asked[start : start + TESTS_PER_QUERY], "revision": revision}
        table = graph.query(SUPPORT, some)
        for values in table.rows:
            row = dict(zip(table.columns, values, strict=True))
            if row["capability"] is not None and row["finding"] is None:
                missing.setdefault(str(row["test"]), []).append(str(row["capability"]))
    return {test: tuple(sorted(capabilities)) for test, capabilities in missing.items()}


def _ranked(graph: Queryable, revision: str) -> list[str]:
    return [str(row[0]) for row in graph.query(RANKED, {"revision": revision}).rows]


def _candidates(graph: Queryable, revision: str, tests: Sequence[str]) -> list[Candidate]:
    """The tests with what they rest on, without those whose support has gone since they were found eligible."""
    found: list[Candidate] = []
    for start in range(0, len(tests), TESTS_PER_QUERY):
        asked = tests[start : start + TESTS_PER_QUERY]
        table = graph.query(SUPPORT, {"tests": tuple(asked), "revision": revision})
        rows: dict[str, list[dict[str, object]]] = {test: [] for test in asked}
        for values in table.rows:
            row = dict(zip(table.columns, values, strict=True))
            rows[str(row["test"])].append(row)
        found += [candidate_of(members) for members in rows.values() if all(row["finding"] for row in members)]
    return found


def candidate_of(rows: Sequence[Mapping[str, object]]) -> Candidate:
    """A test, given the rows of SUPPORT for it: one for each required capability and a finding that provides it."""
    test = rows[0]
    return Candidate(
        test_id=str(test["test"]),
        asset_id=str(test["asset"]),
        title=str(test["title"]),
        impact=cast(int, test["impact"]),
        requests_max=cast(int, test["requests_max"]),
        definition_sha256=str(test["definition_sha256"]),
        depth=1 + max(cast(int, row["depth"]) for row in rows),
        support=tuple(sorted(Support(str(row["finding"]), str(row["capability"])) for row in rows)),
    )
