"""The benchmarks' events are what their module says: valid, the same every time, and what the tally says of them."""

from __future__ import annotations

from collections import Counter

import pytest

from benchmarks import workload
from benchmarks.workload import BULK, MIXED, Mix, Workload
from forktrail_projectors.graph.memory import MemoryGraph
from forktrail_projectors.projector import Projector
from forktrail_schemas.wire import decode

EVENTS = 3_000


@pytest.mark.parametrize("mix", [BULK, MIXED], ids=lambda mix: mix.name)
def test_the_fold_finds_every_event_valid_and_makes_what_the_tally_says(
    mix: Mix, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workload, "EVENTS_PER_REVISION", 1_000)
    stream = Workload(mix, tests=30)
    graph = MemoryGraph()
    verdicts = Projector(graph, "topic").apply(list(stream.records(EVENTS)))
    assert [verdict for verdict in verdicts if verdict.kind != "valid"] == []
    rows = list(graph.rows())
    tables = Counter(key.table for key, _ in rows)
    tally = stream.story.tally
    assert {table: tables[table] for table in tally.rows} == dict(tally.rows)
    assert Counter(row["outcome"] for key, row in rows if key.table == "Report") == tally.reports
    assert tables["CAUSED"] == stream.story.author.causes
    assert set(tally.reports) == {"case_opened", "case_exists", "support_missing"}
    assert ("Finding" in tally.rows) == (mix is MIXED)


def test_a_longer_stream_starts_as_a_shorter_one() -> None:
    short = list(Workload(MIXED, tests=20).records(500))
    stream = Workload(MIXED, tests=20)
    assert [*stream.records(300), *stream.records(400)][:500] == short


def test_the_bulk_events_have_the_size_and_the_causes_that_are_told() -> None:
    stream = Workload(BULK, tests=20)
    records = list(stream.records(EVENTS))[stream.preamble_events :]
    events = [decode(record.value or b"") for record in records]
    causes = [len(event.model_dump()["meta"]["causes"]) for event in events]
    assert sum(causes) / len(causes) == pytest.approx(1.2, abs=0.05)
    assert sum(len(record.value or b"") for record in records) / len(records) == pytest.approx(210, abs=5)
    assert all(name != "forktrail-signature" for record in records for name, _ in record.headers)


def test_bulk_and_mixed_give_as_many_records_as_asked_for() -> None:
    assert [record.offset for record in workload.bulk(100)] == list(range(100))
    assert [record.offset for record in workload.mixed(100)] == list(range(100))
