"""What would lose its support if a finding were withdrawn. Asked of the graph alone; changes nothing."""

from __future__ import annotations

from dataclasses import dataclass

from forktrail_projectors.discovery import run_state
from forktrail_projectors.graph.protocol import Queryable
from forktrail_schemas.errors import NotFound

_FINDING = "MATCH (f:Finding {id: $finding}) RETURN f.revision, f.withdrawn, f.test"
_CAPABILITIES = """
MATCH (f:Finding {id: $finding})-[:ENABLES]->(c:Capability) RETURN c.id AS capability ORDER BY capability
"""
_OTHER_PROVIDERS = """
MATCH (f:Finding {id: $finding})-[:ENABLES]->(c:Capability)<-[:ENABLES]-(o:Finding)
WHERE o.id <> $finding AND o.revision = $revision AND NOT o.withdrawn
RETURN c.id AS capability, o.id AS finding ORDER BY capability, finding
"""
_DEPENDENTS = """
MATCH (f:Finding {id: $finding})-[:ENABLES]->(:Capability)<-[:REQUIRES]-(t:TestCase)-[:REQUIRES]->(c:Capability)
RETURN DISTINCT t.id AS test, c.id AS capability ORDER BY test, capability
"""
_PROVIDED = """
MATCH (f:Finding)-[:ENABLES]->(c:Capability) WHERE f.revision = $revision AND NOT f.withdrawn
RETURN DISTINCT c.id AS capability ORDER BY capability
"""
_RESTING = """
MATCH (f:Finding {id: $finding})<-[:RESTS_ON]-(a:`Case`)<-[:FOUND_IN]-(o:Finding)
WHERE o.revision = $revision AND NOT o.withdrawn
RETURN DISTINCT o.id AS finding ORDER BY finding
"""
_UNRUN = """
MATCH (a:`Case`)
WHERE a.revision = $revision AND NOT a.retried AND a.status IN ['proposed', 'approved'] AND a.test IN $tests
RETURN a.id, a.test, a.status ORDER BY a.created_offset
"""


@dataclass(frozen=True)
class Loss:
    """What a withdrawal would do.

    Attributes:
        current: whether the finding counts now; if it doesn't, nothing is lost.
        tests: tests that have all their support now and would not any more, each with what it would lack.
        short_already: tests that need what would be lost, and lack other support anyway.
        kept: capabilities that other current findings provide too, with those findings.
        cases: proposed or approved cases of `tests`, which could then be neither approved nor run: id, test, status.
        resting: current findings whose cases rested on this one. They keep their own evidence, and are worth a look.
    """

    finding_id: str
    current: bool
    tests: tuple[tuple[str, tuple[str, ...]], ...]
    short_already: tuple[str, ...]
    kept: tuple[tuple[str, tuple[str, ...]], ...]
    resting: tuple[str, ...]
    cases: tuple[tuple[str, str, str], ...] = ()


def loss_of(graph: Queryable, finding_id: str) -> Loss:
    """What would lose support if the finding were withdrawn now.

    Raises:
        NotFound: no such finding.
    """
    found = graph.query(_FINDING, {"finding": finding_id}).rows
    if not found:
        raise NotFound(f"there is no finding {finding_id!r}")
    revision = run_state(graph).active_revision
    current = found[0][0] == revision and not found[0][1]
    if not current:
        return Loss(finding_id, False, (), (), (), ())
    here = {"finding": finding_id}
    now = {"finding": finding_id, "revision": revision}
    kept: dict[str, list[str]] = {}
    for capability, other in graph.query(_OTHER_PROVIDERS, now).rows:
        kept.setdefault(str(capability), []).append(str(other))
    lost = {str(row[0]) for row in graph.query(_CAPABILITIES, here).rows} - kept.keys()
    provided = {str(row[0]) for row in graph.query(_PROVIDED, {"revision": revision}).rows}
    required: dict[str, set[str]] = {}
    for test, capability in graph.query(_DEPENDENTS, here).rows:
        required.setdefault(str(test), set()).add(str(capability))
    hit = {test: capabilities & lost for test, capabilities in required.items() if capabilities & lost}
    fallen = tuple((test, tuple(sorted(lacks))) for test, lacks in hit.items() if required[test] <= provided)
    unrun = graph.query(_UNRUN, {"revision": revision, "tests": tuple(test for test, _ in fallen)}).rows
    return Loss(
        finding_id,
        True,
        fallen,
        tuple(test for test in hit if not required[test] <= provided),
        tuple((capability, tuple(findings)) for capability, findings in kept.items()),
        tuple(str(row[0]) for row in graph.query(_RESTING, now).rows),
        tuple((str(case), str(test), str(status)) for case, test, status in unrun),
    )
