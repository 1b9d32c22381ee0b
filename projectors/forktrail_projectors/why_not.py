"""Why a test isn't eligible: what it lacks, and what was tried of it. Asked of the graph alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from forktrail_projectors.discovery import run_state
from forktrail_projectors.graph.protocol import Queryable
from forktrail_projectors.state import Value
from forktrail_schemas.errors import NotFound

# How a reason begins that names findings of other revisions.
HISTORY = "  history, not current: "

_TEST = "MATCH (t:TestCase {id: $test}) RETURN t.asset, t.impact"
_REQUIRED = """
MATCH (t:TestCase {id: $test})-[:REQUIRES]->(c:Capability)
RETURN c.id AS capability ORDER BY capability
"""
_PROVIDERS = """
MATCH (t:TestCase {id: $test})-[:REQUIRES]->(c:Capability)<-[:ENABLES]-(f:Finding)
RETURN c.id AS capability, f.id AS finding, f.revision AS revision, f.withdrawn AS withdrawn
ORDER BY capability, finding
"""
_SOURCES = """
MATCH (t:TestCase {id: $test})-[:REQUIRES]->(c:Capability)<-[:WOULD_ENABLE]-(s:TestCase)
RETURN c.id AS capability, s.id AS source ORDER BY capability, source
"""
_STANDING = """
MATCH (t:TestCase {id: $test})<-[:ATTEMPTS]-(a:`Case`)
WHERE a.revision = $revision AND NOT a.retried
OPTIONAL MATCH (f:Finding)-[:FOUND_IN]->(a)
RETURN a.id, a.status, a.outcome, a.reviewer, f.withdrawn_by ORDER BY a.id
"""
# The sources of what a test requires that were tried in this revision without a finding that counts, and to the end.
_SPENT = """
MATCH (t:TestCase {id: $test})-[:REQUIRES]->(c:Capability)<-[:WOULD_ENABLE]-(s:TestCase)<-[:ATTEMPTS]-(a:`Case`)
WHERE a.revision = $revision AND NOT a.retried AND a.status IN $ended AND coalesce(a.outcome, '') <> 'inconclusive'
OPTIONAL MATCH (f:Finding)-[:FOUND_IN]->(a)
RETURN c.id AS capability, s.id AS source, a.status AS status, f.withdrawn_by AS withdrawn_by
ORDER BY capability, source
"""
# What is said of a case that isn't run yet and whose support is gone.
OPEN = {
    "proposed": "waits for approval, but its support is gone: it can't be approved now",
    "approved": "is approved, but its support is gone: it can't run now",
}
# Statuses after which an attempt changes no more; but an inconclusive one can be retried.
ENDED = ("denied", "accepted", "rejected")


@dataclass(frozen=True)
class Gap:
    """A required capability that no current finding provides.

    Attributes:
        would_provide: tests whose finding would, whether or not they can be tried now.
        historic: findings that did in another revision.
        withdrawn: findings that did until they were withdrawn.
        spent: those of `would_provide` that were tried in this revision and can't be tried again in it.
    """

    capability: str
    would_provide: tuple[str, ...]
    historic: tuple[str, ...]
    withdrawn: tuple[str, ...]
    spent: tuple[Spent, ...] = ()


@dataclass(frozen=True)
class Spent:
    """A test that would provide a capability and can't be tried again before the next revision.

    Attributes:
        status: how its attempt ended.
        withdrawn_by: who withdrew its finding; None where it made none.
    """

    test_id: str
    status: str
    withdrawn_by: str | None

    def in_words(self) -> str:
        """Why it provides nothing."""
        if self.withdrawn_by is not None:
            return f"the finding of {self.test_id} was withdrawn by {self.withdrawn_by}"
        why = {"denied": "was denied", "rejected": "was rejected by its reviewer"}.get(self.status, "made no finding")
        return f"{self.test_id} {why}"


@dataclass(frozen=True)
class Standing:
    """The attempt that stands in a test's way in the active revision; `outcome` and `reviewer` once there are any.

    Attributes:
        withdrawn_by: who withdrew its finding, if somebody did.
        supported: whether everything that its test requires is provided now.
    """

    case_id: str
    status: str
    outcome: str | None
    reviewer: str | None
    withdrawn_by: str | None = None
    supported: bool = True

    def in_words(self) -> str:
        """How far it came. An observation that nobody accepted is never told as a finding."""
        told = {
            "proposed": "waits for a person's approval",
            "approved": "is approved and waits for a runner",
            "denied": "was denied; that stands until the next revision",
            "running": "is being run",
            "observed": f"was observed {self.outcome} and waits for review",
            "accepted": f"was observed {self.outcome}, accepted by {self.reviewer}",
            "rejected": f"was observed {self.outcome}, and {self.reviewer} rejected that",
        }[self.status]
        if self.outcome == "inconclusive":
            return f"{self.case_id} {told}; `forktrail retry` lets it be tried again"
        if self.withdrawn_by is not None:
            fallen = f"its finding was withdrawn by {self.withdrawn_by}"
            return f"{self.case_id} {told}; {fallen}; it can be tested again in the next revision"
        if not self.supported and self.status in OPEN:
            return f"{self.case_id} {OPEN[self.status]}"
        if self.status in ("accepted", "rejected"):
            return f"{self.case_id} {told}; that stands until the next revision"
        return f"{self.case_id} {told}"


@dataclass(frozen=True)
class WhyNot:
    """Why a test is not eligible in the active revision.

    Attributes:
        standing: the attempt that stands in its way, or None.
        needs_report: True where it requires nothing, so that only a report opens it.
    """

    test_id: str
    revision: str
    gaps: tuple[Gap, ...]
    standing: Standing | None
    needs_report: bool

    @property
    def eligible(self) -> bool:
        """Whether the planner would consider it."""
        return not self.gaps and self.standing is None and not self.needs_report

    def outlook(self) -> list[str]:
        """What of the reasons can't change before the next revision, in words."""
        return [
            f"  {spent.in_words()}; it can be tested again in the next revision"
            for spent in sorted({spent for gap in self.gaps for spent in gap.spent}, key=lambda spent: spent.test_id)
        ]

    def reasons(self) -> list[str]:
        """The reasons in words, the most telling first; a packet carries them, so that what they say is kept."""
        lines = []
        for gap in self.gaps:
            line = f"support missing: {gap.capability}"
            if gap.would_provide:
                line += f" (a finding of {', '.join(gap.would_provide)} would provide it)"
            lines.append(line)
            if gap.historic:
                lines.append(HISTORY + ", ".join(gap.historic))
            if gap.withdrawn:
                lines.append(f"  withdrawn: {', '.join(gap.withdrawn)}")
        if self.standing is not None:
            lines.append(f"attempted in {self.revision}: {self.standing.in_words()}")
        if self.needs_report and self.standing is None:
            lines.append("it requires nothing: a report opens it")
        return lines


def why_not(graph: Queryable, test_id: str) -> WhyNot:
    """Why a test is not eligible now.

    Raises:
        NotFound: no such test is registered.
    """
    revision = run_state(graph).active_revision
    test: Mapping[str, Value] = {"test": test_id}
    if not graph.query(_TEST, test).rows:
        raise NotFound(f"no test {test_id!r} is registered")
    required = [str(row[0]) for row in graph.query(_REQUIRED, test).rows]
    providers = [(str(c), str(f), str(r), bool(w)) for c, f, r, w in graph.query(_PROVIDERS, test).rows]
    sources = [(str(c), str(s)) for c, s in graph.query(_SOURCES, test).rows]
    met = {c for c, _, found_in, withdrawn in providers if found_in == revision and not withdrawn}
    ended: Mapping[str, Value] = {"test": test_id, "revision": revision, "ended": ENDED}
    spent = [(str(row[0]), _spent(row[1:])) for row in graph.query(_SPENT, ended).rows]
    gaps = tuple(
        Gap(
            capability,
            tuple(source for c, source in sources if c == capability),
            tuple(f for c, f, found_in, withdrawn in providers if c == capability and found_in != revision),
            tuple(
                f for c, f, found_in, withdrawn in providers if (c, found_in) == (capability, revision) and withdrawn
            ),
            tuple(source for c, source in spent if c == capability),
        )
        for capability in required
        if capability not in met
    )
    standing = graph.query(_STANDING, {"test": test_id, "revision": revision}).rows
    attempt = (
        Standing(*cast("tuple[str, str, str | None, str | None, str | None]", standing[0]), supported=not gaps)
        if standing
        else None
    )
    return WhyNot(test_id, revision, gaps, attempt, needs_report=not required)


def _spent(row: Sequence[object]) -> Spent:
    source, status, withdrawn_by = row
    return Spent(str(source), str(status), None if withdrawn_by is None else str(withdrawn_by))
