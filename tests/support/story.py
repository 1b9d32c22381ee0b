"""A run told event by event into an in-memory graph, with keys for everyone in it. No broker, no clock.

Ids and times come from a counter, so that a story gives the same bytes in every test run.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from forktrail_projectors.graph.memory import MemoryGraph
from forktrail_projectors.graph.protocol import Graph
from forktrail_projectors.projector import Projector
from forktrail_projectors.receipts import Statement, sign_receipt
from forktrail_projectors.record import LogRecord, Verdict
from forktrail_projectors.state import EdgeKey, EdgesKey, NodeKey, Row
from forktrail_schemas import events
from forktrail_schemas.events.base import Event
from forktrail_schemas.headers import headers_of
from forktrail_schemas.ids import derived_id, uuid7
from forktrail_schemas.signatures import SigningKey
from forktrail_schemas.wire import build, encode

E = TypeVar("E", bound=Event)

TOPIC_ID = "topic-of-the-story"
EVIDENCE_SHA256 = "e" * 64
EVIDENCE_BYTES = 100
EVIDENCE = {"sha256": EVIDENCE_SHA256, "size": EVIDENCE_BYTES, "media_type": "application/json"}


def fixed_key(number: int) -> SigningKey:
    """A key that is the same in every test run."""
    return SigningKey.from_private_bytes(bytes([number]) * 32)


ADMIN, OPERATOR, REVIEWER, RUNNER, STRANGER = (fixed_key(number) for number in range(1, 6))
HOLDERS = {
    ADMIN.key_id: "ada",
    OPERATOR.key_id: "olga",
    REVIEWER.key_id: "ravi",
    RUNNER.key_id: "runner-1",
    STRANGER.key_id: "stranger",
}


class Story:
    """A log and the graph folded from it."""

    def __init__(self, run: str = "story", graph: Graph | None = None) -> None:
        self.run = run
        self.graph: Graph = MemoryGraph() if graph is None else graph
        self.projector = Projector(self.graph, TOPIC_ID)
        self.records: list[LogRecord] = []
        self._moments = 0

    def event(
        self,
        cls: type[E],
        actor: str = "rita",
        kind: str = "human",
        /,
        *,
        event_id: str | None = None,
        causes: Sequence[str] = (),
        **fields: Any,
    ) -> E:
        """An event with a fresh id, unless one is given; nothing is written."""
        self._moments += 1
        meta = {
            "event_id": event_id or uuid7(self._moments, self._moments.to_bytes(10, "big")),
            "run": self.run,
            "occurred_at": 1_700_000_000_000_000 + self._moments,
            "actor": {"kind": kind, "id": actor},
            "causes": list(causes),
        }
        return build(cls, {"meta": meta, **fields})

    def record(self, event: Event, key: SigningKey | None = None) -> LogRecord:
        """The record that the event would be, at the end of the log."""
        value = encode(event)
        headers: Sequence[tuple[str, bytes]] = headers_of(event, key.sign(value) if key else None)
        return LogRecord(
            offset=len(self.records),
            timestamp_ms=event.meta.occurred_at // 1000,
            key=event.subject_id.encode(),
            value=value,
            headers=tuple(headers),
        )

    def append(self, record: LogRecord) -> Verdict:
        """Put a record at the end of the log and fold it."""
        self.records.append(record)
        return self.projector.apply([record])[0]

    def tell(self, event: Event, key: SigningKey | None = None) -> Verdict:
        """Write an event and fold it."""
        return self.append(self.record(event, key))

    def signed(self, cls: type[E], key: SigningKey, kind: str = "human", /, **fields: Any) -> tuple[E, Verdict]:
        """Write an event signed by a key, in its holder's name."""
        event = self.event(cls, HOLDERS[key.key_id], kind, **fields)
        return event, self.tell(event, key)

    def rows(self) -> dict[NodeKey | EdgeKey, Row]:
        """Every row of the graph."""
        return dict(self.graph.rows())

    def related(self, table: str, source: NodeKey) -> list[NodeKey]:
        """The nodes that a node's relations of one table lead to."""
        key = EdgesKey(table, "source", source)
        return [edge.target for edge in self.graph.edges([key])[key]]

    def row(self, table: str, id: str | int) -> Row:
        """A row of the graph; fails where there is none."""
        key = NodeKey(table, id)
        return self.graph.nodes([key])[key]

    def open(self, goal: str = "find what breaks") -> None:
        """RunOpened, and a key for the operator, the reviewer and the runner."""
        self.signed(events.RunOpened, ADMIN, goal=goal, revision="r1", admin_public_key=ADMIN.public_key)
        for key, role in ((OPERATOR, "operator"), (REVIEWER, "reviewer"), (RUNNER, "runner")):
            self.add_key(key, role)

    def register(
        self,
        test_id: str,
        *,
        asset: str = "gateway",
        requires: Sequence[str] = (),
        enables: Sequence[str] = (),
        impact: int = 50,
        requests_max: int = 2,
    ) -> Verdict:
        """TestRegistered."""
        return self.signed(
            events.TestRegistered,
            ADMIN,
            test_id=test_id,
            title=f"Test {test_id}",
            asset_id=asset,
            requires=list(requires),
            enables=list(enables),
            impact=impact,
            requests_max=requests_max,
            definition_sha256="d" * 64,
        )[1]

    def report(self, test_id: str) -> str:
        """ReportFiled; returns the id of the case it opens, if it opens one."""
        event = self.event(events.ReportFiled, test_id=test_id, summary="look here")
        self.tell(event)
        return derived_id("case", event.meta.event_id)

    def propose(self, test_id: str, findings: Sequence[str], as_of: int | None = None) -> tuple[str, Verdict]:
        """TestProposed by an agent; returns the id of the case it would open."""
        event = self.event(
            events.TestProposed,
            "planner",
            "agent",
            test_id=test_id,
            revision=str(self.row("Run", "run")["active_revision"]),
            finding_ids=list(findings),
            as_of=as_of,
            rationale="highest impact",
        )
        return derived_id("case", event.meta.event_id), self.tell(event)

    def decide(self, case_id: str, decision: str = "approve", key: SigningKey = OPERATOR) -> Verdict:
        """ApprovalDecided on a case."""
        return self.signed(
            events.ApprovalDecided,
            key,
            subject={"kind": "case", "id": case_id},
            decision=decision,
            reason="",
        )[1]

    def start(self, case_id: str, key: SigningKey = RUNNER) -> Verdict:
        """TestStarted under the case's approval."""
        approval = self.row("Case", case_id)["approval"] or "approval-00000000"
        return self.signed(events.TestStarted, key, "service", case_id=case_id, approval_id=approval)[1]

    def observation(self, case_id: str, outcome: str, key: SigningKey = RUNNER) -> events.ObservationRecorded:
        """An ObservationRecorded with a right receipt, not written."""
        case = self.row("Case", case_id)
        statement = Statement(EVIDENCE_SHA256, case_id, str(case["test"]), str(case["revision"]), outcome)
        return self.event(
            events.ObservationRecorded,
            HOLDERS[key.key_id],
            "service",
            case_id=case_id,
            test_id=case["test"],
            revision=case["revision"],
            outcome=outcome,
            reason="rule 1",
            evidence=EVIDENCE,
            requests=2,
            interrupted=False,
            receipt=sign_receipt(statement, key),
        )

    def review(self, case_id: str, decision: str = "accept", key: SigningKey = REVIEWER) -> tuple[str, Verdict]:
        """ReviewDecided; returns the id of the finding it would make."""
        observation = self.row("Case", case_id)["observation"] or "observation-00000000"
        event, verdict = self.signed(
            events.ReviewDecided,
            key,
            case_id=case_id,
            observation_id=observation,
            decision=decision,
            note="",
        )
        return derived_id("finding", event.meta.event_id), verdict

    def advance(self, to_revision: str) -> Verdict:
        """RevisionAdvanced from the active revision."""
        active = self.row("Run", "run")["active_revision"]
        return self.signed(
            events.RevisionAdvanced, OPERATOR, from_revision=active, to_revision=to_revision, reason="shipped"
        )[1]

    def retry(self, case_id: str) -> Verdict:
        """RetryRequested."""
        return self.signed(events.RetryRequested, OPERATOR, case_id=case_id, reason="again")[1]

    def withdraw(self, finding_id: str) -> Verdict:
        """FindingWithdrawn."""
        return self.signed(events.FindingWithdrawn, OPERATOR, finding_id=finding_id, reason="was wrong")[1]

    def budget(self, name: str, limit: int | None) -> Verdict:
        """BudgetSet."""
        return self.signed(events.BudgetSet, ADMIN, name=name, limit=limit)[1]

    def set(self, name: str, value: str) -> Verdict:
        """SettingChanged."""
        return self.signed(events.SettingChanged, ADMIN, name=name, value=value)[1]

    def add_key(self, key: SigningKey, *roles: str, holder: str | None = None, kind: str | None = None) -> Verdict:
        """KeyRegistered; a runner's holder is a service, unless another kind is given."""
        return self.signed(
            events.KeyRegistered,
            ADMIN,
            key_id=key.key_id,
            public_key=key.public_key,
            holder=holder or HOLDERS[key.key_id],
            holder_kind=kind or ("service" if "runner" in roles else "human"),
            roles=list(roles),
        )[1]

    def revoke(self, key: SigningKey) -> Verdict:
        """KeyRevoked."""
        return self.signed(events.KeyRevoked, ADMIN, key_id=key.key_id, reason="lost")[1]

    def close(self) -> Verdict:
        """RunClosed."""
        return self.signed(events.RunClosed, ADMIN, reason="done")[1]

    def settle(self, case_id: str, outcome: str = "reproduced") -> str:
        """Approve, start, observe and accept a proposed case; returns the id of the finding it makes, if any."""
        assert self.decide(case_id).valid
        assert self.start(case_id).valid
        assert self.tell(self.observation(case_id, outcome), RUNNER).valid
        finding, verdict = self.review(case_id)
        assert verdict.valid
        return finding
