"""The plan's verdicts are those that the fold gives; a producer that is started again finds its place in the plan."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from chaos.plan import EVENTS_PER_REVISION, Plan, PlanFile, PlanReader, signing_keys
from chaos.producer import sent_of
from forktrail_projectors.graph.memory import MemoryGraph
from forktrail_projectors.projector import Projector
from forktrail_projectors.record import LogRecord

RUN, SEED = "run-0123456789ab", 11
EVENTS = 2 * EVENTS_PER_REVISION


def test_the_fold_gives_every_event_and_its_copy_the_verdict_that_the_plan_expects() -> None:
    keys = signing_keys()
    sent = [sent_of(planned, keys) for planned in Plan(RUN, SEED).take(EVENTS)]
    records = [LogRecord(offset, *event.content) for offset, event in enumerate([*sent, *sent])]
    verdicts = Projector(MemoryGraph(), "topic").apply(records)
    first = [(event.expected.kind, event.expected.reason, event.event_id) for event in sent]
    second = [(event.expected.again, event.expected.reason, event.event_id) for event in sent]
    assert [(verdict.kind, verdict.reason, verdict.event_id) for verdict in verdicts] == first + second


def test_a_plan_walks_cases_to_findings_and_holds_every_kind_of_wrong_event() -> None:
    keys = signing_keys()
    sent = [sent_of(planned, keys) for planned in Plan(RUN, SEED).take(EVENTS)]
    graph = MemoryGraph()
    Projector(graph, "topic").apply([LogRecord(offset, *event.content) for offset, event in enumerate(sent)])
    rows = Counter(key.table for key, _ in graph.rows())
    assert min(rows[table] for table in ("Case", "Observation", "Review", "Finding")) > 50
    reasons = {event.expected.reason for event in sent}
    assert reasons == {"", "already_reviewed", "unknown_case", "role_missing"}


def test_a_plan_is_the_same_however_it_is_taken(tmp_path: Path) -> None:
    file = PlanFile(tmp_path / "plan.jsonl", Plan(RUN, SEED))
    reader = PlanReader(file.path, 0)
    file.extend(70)
    taken = reader.take(50) + reader.take(50)
    assert len(taken) == 70
    assert reader.take(10) == []
    file.extend(30)
    assert taken + reader.take(100) == list(Plan(RUN, SEED).take(100))
    assert PlanReader(file.path, 40).take(10) == list(Plan(RUN, SEED).take(50))[40:]


def test_half_a_line_waits_for_its_other_half_and_the_end_ends_it(tmp_path: Path) -> None:
    whole = tmp_path / "whole.jsonl"
    file = PlanFile(whole, Plan(RUN, SEED))
    file.extend(2)
    file.end()
    lines = whole.read_bytes()
    growing = tmp_path / "growing.jsonl"
    growing.write_bytes(lines[: len(lines) // 3])
    reader = PlanReader(growing, 0)
    taken = reader.take(5)
    with growing.open("ab") as rest:
        rest.write(lines[len(lines) // 3 :])
    taken += reader.take(5)
    assert taken == list(Plan(RUN, SEED).take(2))
    assert reader.ended
