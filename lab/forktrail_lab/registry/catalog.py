"""The registry that a run was opened with, and whether the graph agrees with it."""

from __future__ import annotations

from pathlib import Path

from forktrail_lab.registry.file import definition_sha256, find_test, load_registry, parse_registry, requests_max
from forktrail_lab.registry.model import RegisteredTest, Registry
from forktrail_producers.blobs import BlobStore
from forktrail_projectors.discovery import Candidate
from forktrail_projectors.graph.protocol import Queryable
from forktrail_schemas.errors import GraphCatalogMismatch, InvalidInput, NotFound

_REGISTRY = "MATCH (r:Run) RETURN r.registry_sha256"
_TEST = """
MATCH (t:TestCase {id: $test})
RETURN t.asset AS asset, t.impact AS impact, t.requests_max AS requests_max, t.definition_sha256 AS definition_sha256
"""
_LINKS = "MATCH (t:TestCase {{id: $test}})-[:{relation}]->(c:Capability) RETURN c.id ORDER BY c.id"


def registry_of_run(graph: Queryable, blobs: BlobStore, override: Path | None = None) -> Registry:
    """The registry of a run: the file given, or the bytes that the run was opened with.

    Raises:
        NotFound: no such file.
        InvalidInput: it isn't a registry, or the run was opened without one and no file is given.
        EvidenceMissing: the bytes are not in the blob store.
    """
    if override is not None:
        return load_registry(override).registry
    rows = graph.query(_REGISTRY).rows
    digest = rows[0][0] if rows else None
    if digest is None:
        raise InvalidInput("the run was opened without a registry", hint="name one with --registry FILE")
    return parse_registry(blobs.get(str(digest)), source=f"the run's registry {str(digest)[:12]}")


def confirmed_test(graph: Queryable, registry: Registry, test_id: str) -> RegisteredTest:
    """A test's definition, once graph and registry say the same of it.

    Raises:
        GraphCatalogMismatch: they don't; the message names what differs.
    """
    try:
        test = find_test(registry, test_id)
    except NotFound as error:
        raise _mismatch(test_id, "the registry has no such test") from error
    table = graph.query(_TEST, {"test": test_id})
    if not table.rows:
        raise _mismatch(test_id, "the graph has no such test")
    in_graph = dict(zip(table.columns, table.rows[0], strict=True))
    in_registry = {
        "asset": test.asset,
        "impact": test.impact,
        "requests_max": requests_max(test),
        "definition_sha256": definition_sha256(test, registry),
    }
    for relation, field in (("REQUIRES", "requires"), ("WOULD_ENABLE", "enables")):
        rows = graph.query(_LINKS.format(relation=relation), {"test": test_id}).rows
        in_graph[field] = [row[0] for row in rows]
        in_registry[field] = sorted(getattr(test, field))
    for field, expected in in_registry.items():
        if in_graph[field] != expected:
            raise _mismatch(test_id, f"{field} is {in_graph[field]!r} in the graph and {expected!r} in the registry")
    return test


def confirmed_candidate(graph: Queryable, registry: Registry, candidate: Candidate) -> RegisteredTest:
    """A candidate's definition, once graph and registry say the same of it, what meets its requirements included.

    Raises:
        GraphCatalogMismatch: they don't.
    """
    test = confirmed_test(graph, registry, candidate.test_id)
    met = sorted({pair.capability for pair in candidate.support})
    if met != sorted(test.requires):
        raise _mismatch(candidate.test_id, f"its support covers {met!r} and it requires {sorted(test.requires)!r}")
    return test


def _mismatch(test_id: str, what: str) -> GraphCatalogMismatch:
    return GraphCatalogMismatch(
        f"test {test_id}: {what}", hint="use the registry file that the run was opened with, or open a new run"
    )
