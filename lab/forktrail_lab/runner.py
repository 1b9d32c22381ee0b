"""The bounded runner: runs approved tests against registered assets, once per approval, and signs what it saw.

For each case it first puts TestStarted on the log and waits for its verdict; only the runner whose TestStarted is valid
sends anything. A runner that dies after that finds its case `running` at its next start and closes it as inconclusive.
It knows its own by a journal in the home: another home's runner with the same key may be alive, and its case with it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from forktrail_lab.console.session import require_fit, require_valid
from forktrail_lab.exchange.identities import resolve_identities
from forktrail_lab.exchange.outcome import Judgement, judge
from forktrail_lab.exchange.perform import perform
from forktrail_lab.exchange.targets import load_targets, origin_of
from forktrail_lab.exchange.transcript import EVIDENCE_MEDIA_TYPE, Transcript, evidence_bytes
from forktrail_lab.registry.catalog import confirmed_test, registry_of_run
from forktrail_lab.registry.model import RegisteredTest, Registry
from forktrail_producers.blobs import BlobStore
from forktrail_producers.producer import Producer, meta
from forktrail_projectors.discovery import missing_support
from forktrail_projectors.graph.protocol import Queryable
from forktrail_projectors.lock import owned
from forktrail_projectors.projection import open_projection
from forktrail_projectors.receipts import Statement, sign_receipt
from forktrail_projectors.rules.log import HTTP_REQUESTS
from forktrail_projectors.rules.reasons import in_words
from forktrail_projectors.state import Value
from forktrail_projectors.submit import Submission, submit
from forktrail_projectors.view import RunView, Say
from forktrail_schemas.errors import GraphBusy, NotFound
from forktrail_schemas.events import ObservationRecorded, TestStarted
from forktrail_schemas.events.base import Event
from forktrail_schemas.settings import Settings
from forktrail_schemas.signatures import SigningKey
from forktrail_schemas.wire import build

_CASE_COLUMNS = """
RETURN c.id AS id, c.test AS test, c.revision AS revision, c.approval AS approval, t.definition_sha256 AS definition,
       c.changed_event AS event, r.goal AS goal
ORDER BY c.changed_offset
"""
_APPROVED = (
    """
MATCH (r:Run) MATCH (c:`Case`)-[:ATTEMPTS]->(t:TestCase)
WHERE c.status = 'approved' AND c.revision = r.active_revision AND NOT c.id IN $passed_over
"""
    + _CASE_COLUMNS
    + "LIMIT 1"
)
_RUNNING = (
    """
MATCH (r:Run) MATCH (c:`Case`)-[:ATTEMPTS]->(t:TestCase)
WHERE c.status = 'running' AND c.runner = $runner
"""
    + _CASE_COLUMNS
)
_WAITING = """
MATCH (r:Run) MATCH (c:`Case`) WHERE c.status = 'proposed' AND c.revision = r.active_revision
RETURN c.id ORDER BY c.id
"""
_REQUESTS = """
MATCH (t:TestCase {id: $test}), (b:Budget {id: $budget}) RETURN b.`limit`, b.used, t.requests_max
"""
_HOLDER = "MATCH (k:`Key` {id: $key}) RETURN k.holder_kind, k.holder"
# Why the log may refuse a TestStarted on account of the case alone; any other reason is the runner's own fault.
PASSED_OVER = frozenset(
    (
        "already_started",
        "approval_mismatch",
        "budget_exhausted",
        "not_approved",
        "revision_not_active",
        "support_missing",
    )
)


@dataclass(frozen=True)
class Case:
    """A case as the runner sees it."""

    id: str
    test_id: str
    revision: str
    approval_id: str
    definition_sha256: str
    last_event: str
    goal: str


@dataclass(frozen=True)
class Ran:
    """A case that was run, or closed because an earlier runner died in it."""

    case_id: str
    test_id: str
    outcome: str
    reason: str
    observation_offset: int
    statuses: tuple[int, ...]


@dataclass(frozen=True)
class Lane:
    """Where a runner finds what it needs, and who it is.

    Attributes:
        registry_file: None for the registry that the run was opened with.
        targets_file: where the services listen.
        allowed_hosts: `host:port` that may be asked; None for each target's own alone.
    """

    run: str
    key: SigningKey
    registry_file: Path | None
    targets_file: Path
    allowed_hosts: frozenset[str] | None


@dataclass(frozen=True)
class Journal:
    """The tests that this home's runners started under one key: a line each of the case's and TestStarted's ids.

    The event's id tells a test that was started here from one whose TestStarted the log refused here and took from
    another home's runner.
    """

    path: Path

    def add(self, case_id: str, event_id: str) -> None:
        """Write a line, durable when this returns. A line torn by a crash stays alone, on a line of its own."""
        descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        with os.fdopen(descriptor, "ab") as file:
            file.write(f"\n{case_id} {event_id}\n".encode())
            file.flush()
            os.fsync(file.fileno())
        folder = os.open(self.path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def started(self) -> frozenset[tuple[str, ...]]:
        """The pairs of ids that stand in it; none where there is no file."""
        try:
            lines = self.path.read_text(encoding="utf-8", errors="replace").splitlines()
        except FileNotFoundError:
            return frozenset()
        return frozenset(tuple(line.split()) for line in lines)


class Runner:
    """Runs the approved cases of one run, one after the other. Use inside `exclusive`.

    Attributes:
        passed_over: ids of approved cases that the log didn't let it run.
    """

    def __init__(self, settings: Settings, lane: Lane, producer: Producer, say: Say) -> None:
        self._settings = settings
        self._lane = lane
        self._producer = producer
        self._say = say
        self._blobs = BlobStore(str(settings.blobs_dir))
        self._journal = Journal(_file(settings, lane, "cases"))
        self.passed_over: set[str] = set()
        with self._open() as projection:
            self._holder = _holder(projection.graph, lane.run, lane.key)
            require_fit(projection.graph, lane.run, lane.key, TestStarted, self._holder)

    def close_interrupted(self, *, take_over: bool = False) -> list[Ran]:
        """Record each case that this home's runner left running under its key as inconclusive, `interrupted`.

        A case that runs under the key but was started elsewhere is said and left, since its runner may be alive.

        Args:
            take_over: close those too; a runner that is alive can't record then what it sees.
        """
        with self._open() as projection:
            running = _cases(projection.graph, _RUNNING, {"runner": self._lane.key.key_id})
        started = self._journal.started()
        closed: list[Ran] = []
        for case in running:
            if not take_over and (case.id, case.last_event) not in started:
                self._say(
                    f"{case.id} is left: another home's runner has it under this key; "
                    "if that runner is gone, --take-over closes it"
                )
                continue
            transcript = Transcript(
                case_id=case.id,
                test_id=case.test_id,
                revision=case.revision,
                definition_sha256=case.definition_sha256,
                target="",
                exchanges=(),
                interrupted=True,
            )
            closed.append(self._record(case, transcript, Judgement("inconclusive", "interrupted"), case.last_event))
        return closed

    def run_next(self) -> Ran | None:
        """Run the case that was approved first; None where none is approved.

        A case whose support is gone, or for whose requests the budget has no room, is said and passed over, and nothing
        is written; so is one whose TestStarted the log refuses all the same (another runner took it, say).

        Raises:
            EventVoid: the log refuses whatever this key writes: it lacks the role, say, or was revoked.
            GraphCatalogMismatch: graph and registry contradict each other about its test; nothing was sent.
            NotFound: the targets file, or the asset in it, is missing; nothing was sent.
        """
        while True:
            with self._open() as projection:
                cases = _cases(projection.graph, _APPROVED, {"passed_over": tuple(sorted(self.passed_over))})
                if not cases:
                    return None
                case = cases[0]
                reason, detail = _foreseen(projection.graph, case)
                if reason:
                    self._pass_over(case, reason, detail)
                    continue
                registry = registry_of_run(projection.graph, self._blobs, self._lane.registry_file)
                test = confirmed_test(projection.graph, registry, case.test_id)
            ran = self._run(case, test, registry)
            if ran is not None:
                return ran

    def _pass_over(self, case: Case, reason: str, detail: str) -> None:
        self.passed_over.add(case.id)
        self._say(f"{case.id} is passed over: {reason}: {in_words(reason, detail)}")

    def waiting(self) -> list[str]:
        """Cases that wait for a person."""
        with self._open() as projection:
            return [str(row[0]) for row in projection.graph.query(_WAITING).rows]

    def _run(self, case: Case, test: RegisteredTest, registry: Registry) -> Ran | None:
        identities = resolve_identities(registry, test, os.environ)
        origin = origin_of(load_targets(self._lane.targets_file), case.revision, test.asset)
        started = build(
            TestStarted,
            {"meta": self._meta(case, case.last_event), "case_id": case.id, "approval_id": case.approval_id},
        )
        self._journal.add(case.id, started.meta.event_id)
        submission = self._submit(started)
        if submission.verdict.reason in PASSED_OVER:
            self._pass_over(case, submission.verdict.reason, submission.verdict.detail)
            return None
        require_valid(submission, self._lane.run)
        transcript = perform(
            test,
            case_id=case.id,
            revision=case.revision,
            definition_sha256=case.definition_sha256,
            origin=origin,
            identities=identities,
            clock=time.monotonic,
            allowed_hosts=self._lane.allowed_hosts,
        )
        return self._record(case, transcript, judge(test, transcript), started.meta.event_id)

    def _record(self, case: Case, transcript: Transcript, judgement: Judgement, cause: str) -> Ran:
        data = evidence_bytes(transcript)
        sha256 = self._blobs.put(data)
        statement = Statement(sha256, case.id, case.test_id, case.revision, judgement.outcome)
        event = build(
            ObservationRecorded,
            {
                "meta": self._meta(case, cause),
                "case_id": case.id,
                "test_id": case.test_id,
                "revision": case.revision,
                "outcome": judgement.outcome,
                "reason": judgement.reason,
                "evidence": {"sha256": sha256, "size": len(data), "media_type": EVIDENCE_MEDIA_TYPE},
                "requests": transcript.request_count,
                "interrupted": transcript.interrupted,
                "receipt": sign_receipt(statement, self._lane.key),
            },
        )
        submission = require_valid(self._submit(event), self._lane.run)
        responses = [exchange.hops[-1].received for exchange in transcript.exchanges if exchange.hops]
        statuses = tuple(response.status for response in responses if response is not None)
        return Ran(case.id, case.test_id, judgement.outcome, judgement.reason, submission.offset, statuses)

    def _submit(self, event: Event) -> Submission:
        return submit(self._settings, event, self._lane.key, producer=self._producer, say=self._say)

    def _meta(self, case: Case, cause: str) -> dict[str, object]:
        return meta(self._lane.run, *self._holder, causes=[cause], goal=case.goal)

    def _open(self) -> AbstractContextManager[RunView]:
        return open_projection(self._settings, self._lane.run, say=self._say)


@contextmanager
def exclusive(settings: Settings, lane: Lane) -> Iterator[None]:
    """Make sure that one process of this home runs under a key in a run: another would take its cases for interrupted.

    Raises:
        GraphBusy: another process does, `code` runner_busy.
    """
    path = _file(settings, lane, "lock")
    try:
        with owned(path, wait_seconds=0):
            yield
    except GraphBusy as error:
        if path.name in error.message:
            error.code = "runner_busy"
            error.hint = "one runner at a time may use a key; give this one another key"
        raise


def _file(settings: Settings, lane: Lane, kind: str) -> Path:
    return settings.home / "runners" / f"{lane.run}-{lane.key.key_id[:16]}.{kind}"


def _holder(graph: Queryable, run: str, key: SigningKey) -> tuple[str, str]:
    """The kind and id of the actor that the runner's key speaks for."""
    rows = graph.query(_HOLDER, {"key": key.key_id}).rows
    if not rows:
        raise NotFound(
            f"key {key.key_id[:12]} is not registered in {run}", hint=f"forktrail key register {run} NAME --role runner"
        )
    return str(rows[0][0]), str(rows[0][1])


def _foreseen(graph: Queryable, case: Case) -> tuple[str, str]:
    """Reason and detail with which the log would refuse to start the case, as the graph stands; or two empty texts."""
    gaps = missing_support(graph, case.revision, [case.test_id])
    if gaps:
        return "support_missing", ", ".join(gaps[case.test_id])
    for limit, used, requests in graph.query(_REQUESTS, {"test": case.test_id, "budget": HTTP_REQUESTS}).rows:
        assert isinstance(used, int)
        assert isinstance(requests, int)
        if isinstance(limit, int) and used + requests > limit:
            return "budget_exhausted", f"{HTTP_REQUESTS}: {used + requests} of {limit}"
    return "", ""


def _cases(graph: Queryable, cypher: str, parameters: Mapping[str, Value]) -> list[Case]:
    return [Case(*(str(value) for value in row)) for row in graph.query(cypher, parameters).rows]
