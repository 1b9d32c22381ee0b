from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from forktrail_projectors import merkle
from forktrail_projectors.fold import FOLD_VERSION, decode_record, fold, known_keys
from forktrail_projectors.graph.cypher import CypherGraph
from forktrail_projectors.graph.memory import MemoryGraph
from forktrail_projectors.projector import Projector
from forktrail_projectors.record import LogRecord, Verdict
from forktrail_projectors.rules.book import RULES
from forktrail_projectors.rules.context import Context, Refused
from forktrail_projectors.state import EdgeKey, NodeKey, Overlay
from forktrail_schemas import events
from forktrail_schemas.errors import ForeignTransaction
from forktrail_schemas.events import EVENT_TYPES, RunAnnounced
from forktrail_schemas.wire import build, encode
from support.driver import Driver
from support.story import ADMIN, OPERATOR, TOPIC_ID, Story

SEEDS = (1, 2)
each_seed = pytest.mark.parametrize("seed", SEEDS)


@cache
def long_story(seed: int) -> Story:
    """Some 300 events, right and wrong; not to be told on."""
    return Driver(seed).tell(360)


def folded(records: list[LogRecord], batch: int) -> tuple[Projector, MemoryGraph, list[Verdict]]:
    graph = MemoryGraph()
    projector = Projector(graph, TOPIC_ID)
    verdicts = [
        verdict for at in range(0, len(records), batch) for verdict in projector.apply(records[at : at + batch])
    ]
    return projector, graph, verdicts


@each_seed
def test_the_long_story_is_one_worth_telling(seed: int) -> None:
    rows = [row for key, row in long_story(seed).rows().items() if key[0] == "Event"]
    assert len(rows) > 200
    assert {row["verdict"] for row in rows} == {"valid", "duplicate", "void", "unreadable", "unhandled"}
    valid = {row["type"] for row in rows if row["verdict"] == "valid"}
    assert {f"forktrail.{name}" for name in ("ReviewDecided", "TestProposed", "RevisionAdvanced")} <= valid
    assert sum(row["verdict"] == "valid" for row in rows) > 80


@each_seed
@pytest.mark.parametrize("batch", [7, 100, 1_000])
def test_folding_in_batches_equals_folding_one_by_one(seed: int, batch: int) -> None:
    story = long_story(seed)
    one_by_one = [story.projector.apply([record])[0] for record in story.records]  # read back: all are folded
    projector, graph, verdicts = folded(story.records, batch)
    assert dict(graph.rows()) == story.rows()
    assert projector.cursor == story.projector.cursor
    assert projector.state_digest == story.projector.state_digest
    assert verdicts == one_by_one


@each_seed
@pytest.mark.parametrize("batch", [1, 2, 7, 1_000])
def test_each_record_handed_over_twice_changes_nothing(seed: int, batch: int) -> None:
    story = long_story(seed)
    twice = [record for record in story.records for _ in range(2)]
    projector, graph, verdicts = folded(twice, batch)
    assert dict(graph.rows()) == story.rows()
    assert projector.cursor == story.projector.cursor
    assert verdicts[::2] == verdicts[1::2] == story.projector.apply(story.records)


@each_seed
def test_whole_batches_handed_over_again_change_nothing(seed: int) -> None:
    story = long_story(seed)
    graph = MemoryGraph()
    projector = Projector(graph, TOPIC_ID)
    for at in range(0, len(story.records), 50):
        projector.apply(story.records[at : at + 50])
        projector.apply(story.records[max(0, at - 30) : at + 20])
    assert dict(graph.rows()) == story.rows()
    assert projector.cursor == story.projector.cursor


@each_seed
@pytest.mark.parametrize("offset", [1, 133])
def test_a_fold_taken_up_at_any_offset_ends_the_same(seed: int, offset: int) -> None:
    story = long_story(seed)
    graph = MemoryGraph()
    Projector(graph, TOPIC_ID).apply(story.records[:offset])
    later = Projector(graph, "the topic of a graph that has a cursor stays")
    later.apply(story.records[offset:])
    assert dict(graph.rows()) == story.rows()
    assert later.cursor == story.projector.cursor


@each_seed
def test_the_kept_digest_is_that_of_every_row(seed: int) -> None:
    story = long_story(seed)
    assert story.projector.recomputed_digest() == story.projector.state_digest


@each_seed
def test_prefetching_every_key_or_none_makes_no_difference(seed: int) -> None:
    """Which keys a rule names beforehand is speed, never meaning."""
    graph = MemoryGraph()
    verdicts = []
    cursor = long_story(seed).projector.cursor
    for record in long_story(seed).records:
        overlay = Overlay(graph)
        verdicts.append(fold(decode_record(record), overlay))
        graph.commit(overlay.changes, cursor)
    assert dict(graph.rows()) == long_story(seed).rows()
    assert verdicts == long_story(seed).projector.apply(long_story(seed).records)


@each_seed
def test_the_cursor_is_past_the_last_record_with_its_hash_and_the_logs_root(seed: int) -> None:
    story = long_story(seed)
    cursor = story.projector.cursor
    leaves = [merkle.record_hash(record) for record in story.records]
    frontier = merkle.grow((), 0, (bytes.fromhex(leaf) for leaf in leaves))
    assert (cursor.topic_id, cursor.next_offset, cursor.record_hash) == (TOPIC_ID, len(leaves), leaves[-1])
    assert (cursor.frontier, cursor.fold_version) == (frontier, FOLD_VERSION)


def test_every_event_type_has_a_rule() -> None:
    assert RULES.keys() == set(EVENT_TYPES)


def test_a_graph_on_disk_ends_as_the_one_in_memory(tmp_path: Path) -> None:
    story = long_story(1)
    graph = CypherGraph.open(tmp_path / "run.graph")
    projector = Projector(graph, TOPIC_ID)
    assert projector.apply(story.records) == story.projector.apply(story.records)
    assert dict(graph.rows()) == story.rows()
    assert projector.cursor == story.projector.cursor
    assert projector.recomputed_digest() == story.projector.state_digest
    graph.close()


def test_a_graph_on_disk_that_is_closed_between_batches_ends_the_same(tmp_path: Path) -> None:
    records = long_story(1).records[:120]
    memory, memory_graph, expected = folded(records, 1_000)
    verdicts = []
    for at in range(0, len(records), 60):
        graph = CypherGraph.open(tmp_path / "run.graph")
        projector = Projector(graph, TOPIC_ID)
        batch = records[at : at + 60]
        verdicts += projector.apply([*batch, *batch])[: len(batch)]
        rows = dict(graph.rows())
        graph.close()
    assert rows == dict(memory_graph.rows())
    assert projector.cursor == memory.cursor
    assert verdicts == expected


# Purity: what is around the process makes no difference.

FOLD_FILE = """
import json, sys
from forktrail_projectors.graph.memory import MemoryGraph
from forktrail_projectors.projector import Projector
from forktrail_projectors.record import LogRecord

def data(text):
    return None if text is None else bytes.fromhex(text)

records = [
    LogRecord(offset, time, data(key), data(value), tuple((name, data(text)) for name, text in headers))
    for offset, time, key, value, headers in json.load(open(sys.argv[1], encoding="utf-8"))
]
graph = MemoryGraph()
projector = Projector(graph, "topic")
for at in range(0, len(records), 64):
    projector.apply(records[at : at + 64])
print(projector.state_digest, projector.recomputed_digest(), projector.cursor.accumulator)
"""


def written(records: list[LogRecord], path: Path) -> Path:
    def text(data: bytes | None) -> str | None:
        return None if data is None else data.hex()

    rows = [
        (r.offset, r.timestamp_ms, text(r.key), text(r.value), [(name, text(value)) for name, value in r.headers])
        for r in records
    ]
    path.write_text(json.dumps(rows), encoding="utf-8")
    return path


def test_hash_seed_time_zone_locale_and_folder_make_no_difference(tmp_path: Path) -> None:
    story = long_story(1)
    log = written(story.records, tmp_path / "log.json")
    digest = story.projector.state_digest
    places = [
        {"PYTHONHASHSEED": "1", "TZ": "Asia/Kathmandu", "LC_ALL": "C"},
        {"PYTHONHASHSEED": "4242", "TZ": "America/St_Johns", "LC_ALL": "C.UTF-8", "PYTHONUTF8": "0"},
    ]
    for number, place in enumerate(places):
        folder = tmp_path / f"folder-{number}"
        folder.mkdir()
        command = [sys.executable, "-c", FOLD_FILE, str(log)]
        done = subprocess.run(
            command, cwd=folder, env={**os.environ, **place}, capture_output=True, text=True, check=True
        )
        assert done.stdout.split() == [digest, digest, story.projector.cursor.accumulator]


def test_the_run_and_topic_ids_make_no_difference_and_the_bytes_do() -> None:
    """The same story in another run differs only where the run's name is hashed with the value."""
    here, there = Story("here"), Story("gone")
    for story in (here, there):
        story.open()
    other_topic = Projector(MemoryGraph(), "another topic")
    other_topic.apply(here.records)
    assert other_topic.state_digest == here.projector.state_digest
    named = {
        (key, column)
        for key, row in here.rows().items()
        for column, value in row.items()
        if there.rows()[key][column] != value
    }
    assert {column for _, column in named} == {"run_id", "value_sha256"}


# Identity.


def opened() -> Story:
    story = Story()
    story.open()
    return story


@pytest.mark.parametrize("age", [0, 1, 300])
def test_the_same_id_with_the_same_bytes_is_a_duplicate_at_any_age(age: int) -> None:
    story = opened()
    event = story.event(events.GoalSet, text="once")
    first = story.tell(event)
    for number in range(age):
        story.tell(story.event(events.GoalSet, text=f"{number}"))
    before = story.rows()
    copy = story.tell(event)
    assert (copy.kind, copy.reason, copy.detail, copy.valid) == ("duplicate", "", f"of offset {first.offset}", True)
    assert {key: row for key, row in story.rows().items() if key in before} == before
    assert story.rows().keys() - before.keys() == {NodeKey("Event", copy.offset)}


def test_a_duplicate_is_told_by_its_value_alone() -> None:
    story = opened()
    record = story.record(story.event(events.GoalSet, text="once"))
    story.append(record)
    later = replace(record, offset=len(story.records), timestamp_ms=1, key=None, headers=())
    assert story.append(later).kind == "duplicate"


def test_the_same_id_with_other_bytes_is_void() -> None:
    story = opened()
    first = story.event(events.GoalSet, text="once")
    story.tell(first)
    goal = story.row("Run", "run")["goal"]
    second = story.event(events.GoalSet, event_id=first.meta.event_id, text="twice")
    verdict = story.tell(second)
    assert (verdict.kind, verdict.reason, verdict.detail) == ("void", "id_reused", "by offset 4")
    assert story.row("Run", "run")["goal"] == goal
    # The id stays the first event's.
    assert story.tell(first).kind == "duplicate"
    assert story.tell(second).reason == "id_reused"
    assert story.row("Identity", first.meta.event_id)["offset"] == 4


def test_a_copy_of_a_refused_event_is_a_duplicate_that_does_not_count() -> None:
    story = opened()
    story.register("t")
    event = story.event(
        events.ApprovalDecided,
        "olga",
        subject={"kind": "case", "id": "case-00000000000000000000"},
        decision="approve",
        reason="",
    )
    first = story.tell(event, OPERATOR)
    copy = story.tell(event, OPERATOR)
    assert (first.kind, first.reason, first.valid) == ("void", "unknown_case", False)
    assert (copy.kind, copy.reason, copy.valid) == ("duplicate", "unknown_case", False)
    again = story.tell(event, OPERATOR)
    assert (again.kind, again.reason, again.detail) == ("duplicate", "unknown_case", f"of offset {first.offset}")


def test_an_event_that_came_too_early_stays_refused_when_its_time_comes() -> None:
    story = opened()
    event = story.event(events.ReportFiled, test_id="t", summary="")
    assert story.tell(event).reason == "unknown_test"
    story.register("t")
    assert not story.tell(event).valid
    fresh = story.event(events.ReportFiled, test_id="t", summary="")
    assert story.tell(fresh).kind == "valid"


def test_a_copy_in_the_same_batch_is_a_duplicate() -> None:
    story = opened()
    record = story.record(story.event(events.GoalSet, text="once"))
    first, copy = story.projector.apply([record, replace(record, offset=record.offset + 1)])
    assert (first.kind, copy.kind, copy.detail) == ("valid", "duplicate", "of offset 4")


# Relations that every event makes.


def caused(story: Story) -> set[tuple[object, object]]:
    return {
        (key.source.id, key.target.id) for key in story.rows() if isinstance(key, EdgeKey) and key.table == "CAUSED"
    }


def test_causes_that_the_log_holds_lead_to_the_event() -> None:
    story = opened()
    one = story.event(events.GoalSet, text="1")
    story.tell(one)
    causes = [one.meta.event_id, one.meta.event_id, "0" * 8 + "-0000-7000-8000-" + "0" * 12]
    two = story.event(events.GoalSet, causes=causes, text="2")
    story.tell(two)
    own = story.event(events.GoalSet, causes=[two.meta.event_id], text="3")
    itself = own.model_copy(update={"meta": own.meta.model_copy(update={"causes": (own.meta.event_id,)})})
    story.tell(itself)
    assert caused(story) == {(4, 5)}


def test_a_void_event_is_a_cause_and_has_none() -> None:
    story = opened()
    void = story.event(events.ReportFiled, test_id="nowhere", summary="")
    assert not story.tell(void).valid
    again = story.event(events.ReportFiled, causes=[void.meta.event_id], test_id="nowhere", summary="")
    assert not story.tell(again).valid
    good = story.event(events.GoalSet, causes=[void.meta.event_id], text="")
    assert story.tell(good).valid
    assert caused(story) == {(4, 6)}


def test_a_record_is_produced_by_the_event_that_made_it_alone() -> None:
    story = opened()
    story.set("same-person-may-review", "true")
    story.set("same-person-may-review", "false")
    producers = {
        key.source.id
        for key in story.rows()
        if isinstance(key, EdgeKey) and key.table == "PRODUCED" and key.target.table == "Setting"
    }
    assert producers == {4}


# The projector.


@pytest.mark.parametrize(("offsets", "last_good"), [([1], -1), ([0, 2], 0), ([0, 1, 2, 3, 5], 3)])
def test_a_gap_stops_the_run_and_names_the_last_good_offset(offsets: list[int], last_good: int) -> None:
    records = opened().records
    records += [replace(records[-1], offset=offset) for offset in (4, 5)]
    graph = MemoryGraph()
    with pytest.raises(ForeignTransaction) as caught:
        Projector(graph, TOPIC_ID).apply([records[offset] for offset in offsets])
    assert caught.value.offset == last_good
    assert graph.cursor() is None


def test_no_records_change_nothing() -> None:
    graph = MemoryGraph()
    projector = Projector(graph, TOPIC_ID)
    assert projector.apply([]) == []
    assert graph.cursor() is None
    assert projector.recomputed_digest() == projector.state_digest


def test_a_record_of_another_schema_is_unhandled() -> None:
    story = opened()
    fields = {"run": "r", "topic": "t", "goal": "", "status": "open", "opened_at": 1}
    verdict = story.append(LogRecord(4, 0, None, encode(build(RunAnnounced, fields))))
    assert verdict == Verdict(4, "unhandled", "no_rule", type="forktrail.RunAnnounced")
    assert not verdict.valid


def test_the_keys_named_beforehand_hold_no_state() -> None:
    story = opened()
    event = story.event(events.GoalSet, text="")
    record = story.record(event, ADMIN)
    assert set(known_keys(decode_record(record))) >= {
        NodeKey("Identity", event.meta.event_id),
        NodeKey("Key", ADMIN.key_id),
    }


def test_no_event_may_make_what_is_there() -> None:
    """Ids come from hashes of event ids, so no log can lead here; the rules still refuse it."""
    story = opened()
    overlay = Overlay(story.graph)
    overlay.prefetch([NodeKey("Revision", "r1"), NodeKey("Revision", "r2")])
    context = Context(story.event(events.GoalSet, text=""), 4, None, overlay)
    context.create("Revision", "r2", ordinal=2)
    for taken in ("r1", "r2"):
        with pytest.raises(Refused) as caught:
            context.create("Revision", taken, ordinal=3)
        assert caught.value.reason == "id_collision"
