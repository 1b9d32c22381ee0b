"""The eligible tests of a graph, found by looking at every row: the answer that discovery's is held against."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from forktrail_projectors.state import EdgeKey, NodeKey, Row

# Test id, depth of a finding of it, and the (finding, capability) pairs it rests on.
Eligible = tuple[str, int, list[tuple[str, str]]]


def eligible_by_search(rows: Iterable[tuple[NodeKey | EdgeKey, Row]], revision: str) -> list[Eligible]:
    """By impact descending, then id; what counts as eligible is said in `forktrail_projectors.discovery`."""
    tests: dict[str, int] = {}
    depths: dict[str, int] = {}
    attempts: dict[str, bool] = {}
    requires: defaultdict[str, list[str]] = defaultdict(list)
    provides: list[tuple[str, str]] = []
    attempted: list[tuple[str, str]] = []
    for key, row in rows:
        if isinstance(key, NodeKey):
            if key.table == "TestCase":
                tests[str(key.id)] = int(str(row["impact"]))
            elif key.table == "Finding" and row["revision"] == revision and not row["withdrawn"]:
                depths[str(key.id)] = int(str(row["depth"]))
            elif key.table == "Case":
                attempts[str(key.id)] = row["revision"] == revision and not row["retried"]
        elif key.table == "REQUIRES":
            requires[str(key.source.id)].append(str(key.target.id))
        elif key.table == "ENABLES":
            provides.append((str(key.source.id), str(key.target.id)))
        elif key.table == "ATTEMPTS":
            attempted.append((str(key.source.id), str(key.target.id)))
    providers: defaultdict[str, list[str]] = defaultdict(list)
    for finding, capability in provides:
        if finding in depths:
            providers[capability].append(finding)
    taken = {test for case, test in attempted if attempts[case]}
    found = []
    for test in sorted(tests, key=lambda test: (-tests[test], test)):
        needed = requires[test]
        if needed and test not in taken and all(providers[capability] for capability in needed):
            pairs = sorted((finding, capability) for capability in needed for finding in providers[capability])
            found.append((test, 1 + max(depths[finding] for finding, _ in pairs), pairs))
    return found
