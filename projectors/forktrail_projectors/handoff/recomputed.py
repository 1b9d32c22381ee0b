"""What a packet's records amount to: folded by the log's own rules, and summed up the way a packet says it.

It is the other way to a packet's contents: `packet` asks the graph in Cypher, this folds the records that the packet
carries and reads the rows. Where both are right they say the same, to the byte.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from forktrail_projectors.fold import decode_record, fold, known_keys
from forktrail_projectors.graph.memory import MemoryGraph
from forktrail_projectors.record import LogRecord
from forktrail_projectors.rules.context import number, text
from forktrail_projectors.rules.support import is_current
from forktrail_projectors.state import EdgeKey, NodeKey, Overlay, Row
from forktrail_projectors.why_not import Gap, WhyNot
from forktrail_schemas.errors import Corruption

Part = dict[str, Any]


def recomputed(records: Sequence[LogRecord]) -> Part:
    """Every part of a packet that its records alone decide, named as in the packet.

    Beside them stands `admin_key`, the id of the key that opened the run: everything rests on it.

    Raises:
        Corruption: a record breaks the rules, or none opens the run.
    """
    return _Account(_folded(records)).parts(signed=sum(bool(record.headers) for record in records))


def recomputed_from(graph: MemoryGraph, signed: int) -> Part:
    """The same parts from a run's whole graph, of which `signed` records are in a packet with their signature."""
    nodes, edges = {}, []
    for key, row in graph.rows():
        if isinstance(key, NodeKey):
            nodes[key] = row
        else:
            edges.append(key)
    return _Account(_Rows(nodes, tuple(edges))).parts(signed)


@dataclass(frozen=True)
class _Rows:
    """The rows that folding left."""

    nodes: dict[NodeKey, Row]
    edges: tuple[EdgeKey, ...]

    def all(self, table: str) -> list[Row]:
        """A table's rows, by id."""
        return [self.nodes[key] for key in sorted(key for key in self.nodes if key.table == table)]

    def one(self, table: str, id: object) -> Row:
        """The row that another one names."""
        return self.nodes[NodeKey(table, str(id))]

    def targets(self, table: str, source: NodeKey) -> list[str]:
        """Ids at the far end of a node's relations, sorted."""
        return sorted(str(edge.target.id) for edge in self.edges if (edge.table, edge.source) == (table, source))

    def sources(self, table: str, target: NodeKey) -> list[str]:
        """Ids at the near end, sorted."""
        return sorted(str(edge.source.id) for edge in self.edges if (edge.table, edge.target) == (table, target))


def _folded(records: Iterable[LogRecord]) -> _Rows:
    overlay = Overlay(MemoryGraph())
    for record in records:
        decoded = decode_record(record)
        overlay.prefetch(list(known_keys(decoded)))
        verdict = fold(decoded, overlay)
        if verdict.kind != "valid":
            detail = f" ({verdict.detail})" if verdict.detail else ""
            raise Corruption(f"record {record.offset} is {verdict.kind}: {verdict.reason}{detail}")
    nodes = {key: change.after for key, change in overlay.changes.nodes.items()}
    if NodeKey("Run", "run") not in nodes:
        raise Corruption("no record of it opens the run")
    return _Rows(nodes, tuple(overlay.changes.edges))


class _Account:
    """The rows, told as a packet tells them."""

    def __init__(self, rows: _Rows) -> None:
        self._rows = rows
        self._run = rows.one("Run", "run")
        self._revision = text(self._run, "active_revision")
        self._current = [row for row in rows.all("Finding") if is_current(row, self._revision)]
        self._standing = [row for row in rows.all("Case") if row["revision"] == self._revision and not row["retried"]]

    def parts(self, signed: int) -> Part:
        goal = text(self._run, "goal")
        observed = [self._observation(case) for case in self._standing if case["observation"] is not None]
        observed.sort(key=lambda row: str(row["id"]))
        findings = [self._finding(row) for row in self._current]
        candidates = self._candidates()
        negative = [row for row in observed if row["outcome"] == "not_reproduced"]
        inconclusive = [row for row in observed if row["outcome"] == "inconclusive"]
        return {
            "admin_key": self._admin_key(),
            "run": self._run["run_id"],
            "goal": {"id": goal, "text": self._rows.one("Goal", goal)["text"]},
            "active_revision": self._revision,
            "findings": findings,
            "negative_observations": negative,
            "inconclusive_observations": inconclusive,
            "candidate_paths": candidates,
            "blocked": self._blocked({str(candidate["test_id"]) for candidate in candidates}),
            "keys": [self._key(row) for row in self._rows.all("Key")],
            "audit": {
                "checked": signed + 2 * len(observed),
                "valid": True,
                "signatures": {"checked": signed, "valid": signed},
                "receipts": {"checked": len(observed), "valid": len(observed)},
                "evidence_digests": {"checked": len(observed), "valid": len(observed)},
            },
            "summary": {
                "confirmed_current": len(findings),
                "negative_current": len(negative),
                "inconclusive_current": len(inconclusive),
                "eligible_followups": len(candidates),
            },
        }

    def _admin_key(self) -> str:
        opening = self._run["created_event"]
        return next(text(row, "id") for row in self._rows.all("Key") if row["created_event"] == opening)

    def _observation(self, case: Row) -> Part:
        row = self._rows.one("Observation", case["observation"])
        return {
            "id": row["id"],
            "case_id": row["case_id"],
            "test_id": row["test"],
            "revision": row["revision"],
            "outcome": row["outcome"],
            "reason": row["reason"],
            "interrupted": row["interrupted"],
            "case_status": case["status"],
            "evidence": {
                "sha256": row["evidence_sha256"],
                "size": row["evidence_bytes"],
                "media_type": row["evidence_media_type"],
            },
            "evidence_check": {"valid": True, "fault": None},
            "receipt": {"envelope": row["receipt"], "key_id": row["runner"], "valid": True, "fault": None},
        }

    def _finding(self, row: Row) -> Part:
        case = self._rows.one("Case", row["case_id"])
        observation = self._observation(case)
        return {
            "id": row["id"],
            "title": row["title"],
            "test_id": row["test"],
            "asset_id": row["asset"],
            "revision": row["revision"],
            "impact": row["impact"],
            "depth": row["depth"],
            "researcher": row["researcher"],
            "approver": case["approver"],
            "reviewer": case["reviewer"],
            "case_id": case["id"],
            "observation_id": row["observation"],
            "capabilities": self._rows.targets("ENABLES", NodeKey("Finding", text(row, "id"))),
            "rests_on": self._rows.targets("RESTS_ON", NodeKey("Case", text(case, "id"))),
            "evidence": observation["evidence"],
            "receipt": observation["receipt"],
        }

    def _key(self, row: Row) -> Part:
        roles = row["roles"]
        assert isinstance(roles, tuple)
        return {
            "key_id": row["id"],
            "public_key": row["public_key"],
            "holder": row["holder"],
            "holder_kind": row["holder_kind"],
            "roles": list(roles),
            "revoked": row["revoked"],
        }

    def _candidates(self) -> list[Part]:
        found = [self._candidate(test) for test in self._rows.all("TestCase") if self._standing_of(test) is None]
        return sorted((part for part in found if part), key=lambda part: (-part["impact"], part["test_id"]))

    def _candidate(self, test: Row) -> Part | None:
        """The test as a candidate; None where its support isn't whole."""
        providers = {capability: self._providers(capability) for capability in self._required(test)}
        if not providers or not all(providers.values()):
            return None
        pairs = [(finding, capability) for capability, findings in providers.items() for finding in findings]
        return {
            "test_id": test["id"],
            "asset_id": test["asset"],
            "impact": test["impact"],
            "depth": 1 + max(number(finding, "depth") for finding, _ in pairs),
            "support": [
                {"finding_id": finding, "capability": capability}
                for finding, capability in sorted((text(row, "id"), capability) for row, capability in pairs)
            ],
        }

    def _blocked(self, candidates: set[str]) -> list[Part]:
        tests = [row for row in self._rows.all("TestCase") if row["id"] not in candidates]
        answers = [self._why_not(test) for test in tests if self._standing_of(test) is None]
        return [
            {"test_id": answer.test_id, "missing": [gap.capability for gap in answer.gaps], "reasons": answer.reasons()}
            for answer in answers
        ]

    def _why_not(self, test: Row) -> WhyNot:
        required = self._required(test)
        gaps = tuple(self._gap(capability) for capability in required if not self._providers(capability))
        return WhyNot(text(test, "id"), self._revision, gaps, None, needs_report=not required)

    def _gap(self, capability: str) -> Gap:
        """What is missing. Findings of other revisions aren't named: their records are not in the packet."""
        key = NodeKey("Capability", capability)
        fallen = [
            finding
            for finding in self._rows.sources("ENABLES", key)
            if self._rows.one("Finding", finding)["revision"] == self._revision
        ]
        return Gap(capability, tuple(self._rows.sources("WOULD_ENABLE", key)), (), tuple(fallen))

    def _required(self, test: Row) -> list[str]:
        return self._rows.targets("REQUIRES", NodeKey("TestCase", text(test, "id")))

    def _providers(self, capability: str) -> list[Row]:
        ids = self._rows.sources("ENABLES", NodeKey("Capability", capability))
        return [row for row in self._current if row["id"] in ids]

    def _standing_of(self, test: Row) -> Row | None:
        return next((case for case in self._standing if case["test"] == test["id"]), None)
