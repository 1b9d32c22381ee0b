"""A run's graph against a real log: opened, caught up, rebuilt, refused; and records that should not be there."""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Iterator

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions

from forktrail_projectors import opening
from forktrail_projectors.graph.cypher import CypherGraph
from forktrail_projectors.graph.engine import database_files
from forktrail_projectors.graph.memory import MemoryGraph
from forktrail_projectors.graph.protocol import Cursor
from forktrail_projectors.owner import turn
from forktrail_projectors.projection import fold_in_memory, graph_file, open_projection
from forktrail_projectors.projector import Projector
from forktrail_projectors.reader import LogReader
from forktrail_projectors.record import UNREADABLE_HEADERS, LogRecord
from forktrail_projectors.rules.context import RUN
from forktrail_projectors.state import Changes, EdgeKey, NodeKey, Row
from forktrail_schemas import events
from forktrail_schemas.errors import (
    Corruption,
    ForeignTransaction,
    GraphBehind,
    GraphBusy,
    GraphError,
    GraphMismatch,
    GraphUnavailable,
    NotFound,
)
from forktrail_schemas.settings import Settings
from forktrail_schemas.topics import run_topic
from support.raw import make_run, produce_with_header_name, reported, told, transaction, write
from support.story import ADMIN, OPERATOR, REVIEWER, RUNNER, STRANGER, Story
from support.workbench import wait_until


def test_an_unknown_run_is_not_found(settings: Settings) -> None:
    with pytest.raises(NotFound), open_projection(settings, "run-that-never-was"):
        pass


def test_a_projection_is_folded_to_the_end_the_log_has(settings: Settings) -> None:
    story = reported(settings.bootstrap_servers)
    with open_projection(settings, story.run) as projection:
        position = projection.position()
        assert position.next_offset == position.end == len(story.records)
        assert position.state_digest == story.projector.state_digest
        assert [projection.verdict(offset).kind for offset in range(position.end)] == ["valid"] * len(story.records)
        with pytest.raises(GraphBehind):
            projection.verdict(position.end)


def test_a_deleted_graph_is_folded_anew_to_the_same_digest(settings: Settings) -> None:
    story = reported(settings.bootstrap_servers)
    with open_projection(settings, story.run) as projection:
        before = projection.position()
    for path in database_files(graph_file(settings, story.run)):
        path.unlink()
    with pytest.raises(GraphUnavailable), open_projection(settings, story.run, fold=False):
        pass
    with open_projection(settings, story.run) as projection:
        assert projection.position() == before


def test_a_rebuild_gives_the_live_digest_and_keeps_the_old_graph_aside(settings: Settings) -> None:
    story = reported(settings.bootstrap_servers)
    with open_projection(settings, story.run) as projection:
        live = projection.position()
    said: list[str] = []
    with open_projection(settings, story.run, rebuild=True, say=said.append) as projection:
        assert projection.position() == live
        assert projection.sound()
    assert len(said) == 1
    assert "rebuilt from the log: asked for" in said[0]
    assert list(settings.graphs_dir.glob(f"{story.run}.aside-*"))


def test_singles_batches_doubles_memory_and_disk_fold_to_one_digest(settings: Settings) -> None:
    story = reported(settings.bootstrap_servers)
    with LogReader(settings.bootstrap_servers, story.run) as reader:
        records = [record for batch in reader.read(0, reader.end()) for record in batch]
    singles, doubles, whole = (Projector(MemoryGraph(), "any") for _ in range(3))
    for record in records:
        singles.apply([record])
        doubles.apply([record])
        assert doubles.apply([record]) == doubles.apply([record, record])[:1]
    whole.apply(records)
    _, memory = fold_in_memory(settings, story.run)
    with open_projection(settings, story.run) as projection:
        disk = projection.position()
    digests = {folded.state_digest for folded in (singles, doubles, whole, memory)}
    assert digests == {disk.state_digest}


def test_no_fold_says_behind_and_never_answers_from_an_old_graph(settings: Settings) -> None:
    story = reported(settings.bootstrap_servers)
    with open_projection(settings, story.run):
        pass
    with open_projection(settings, story.run, fold=False) as projection:
        assert projection.position().next_offset == len(story.records)
    late = story.record(story.event(events.GoalSet, text="more"))
    write(settings.bootstrap_servers, story.run, [late])
    with (
        pytest.raises(GraphBehind, match="synchronization is in progress"),
        open_projection(settings, story.run, fold=False),
    ):
        pass


def test_a_graph_of_another_topic_is_a_mismatch_until_it_is_rebuilt(settings: Settings) -> None:
    one, other = reported(settings.bootstrap_servers), reported(settings.bootstrap_servers)
    with open_projection(settings, one.run), open_projection(settings, other.run):
        pass
    for path in database_files(graph_file(settings, one.run)):
        path.replace(path.with_name(path.name.replace(one.run, other.run)))
    for fold in (True, False):
        with pytest.raises(GraphMismatch), open_projection(settings, other.run, fold=fold):
            pass
    with open_projection(settings, other.run, rebuild=True) as projection:
        assert projection.position().state_digest == other.projector.state_digest


def test_a_damaged_graph_is_set_aside_and_rebuilt_with_a_line_that_says_so(settings: Settings) -> None:
    story = reported(settings.bootstrap_servers)
    with open_projection(settings, story.run):
        pass
    path = graph_file(settings, story.run)
    path.write_bytes(path.read_bytes()[:1_000])
    with pytest.raises(GraphUnavailable), open_projection(settings, story.run, fold=False):
        pass
    said: list[str] = []
    with open_projection(settings, story.run, say=said.append) as projection:
        assert projection.position().state_digest == story.projector.state_digest
    assert len(said) == 1
    assert "doesn't open" in said[0]


def test_a_graph_over_which_the_engine_fails_in_the_fold_is_set_aside_and_rebuilt(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    story = reported(settings.bootstrap_servers)
    with open_projection(settings, story.run):
        pass
    story.tell(story.event(events.GoalSet, text="more"))
    write(settings.bootstrap_servers, story.run, story.records[-1:])
    failures = [GraphError("idx: 0 of the DiskArray to be accessed is >= numElements")]
    commit = CypherGraph.commit

    def failing_once(graph: CypherGraph, changes: Changes, cursor: Cursor) -> None:
        if failures:
            raise failures.pop()
        commit(graph, changes, cursor)

    monkeypatch.setattr(CypherGraph, "commit", failing_once)
    said: list[str] = []
    with open_projection(settings, story.run, say=said.append) as projection:
        assert projection.position().state_digest == story.projector.state_digest
        assert projection.sound()
    assert len(said) == 1
    assert "can't be folded on (idx: 0 of the DiskArray" in said[0]
    assert list(settings.graphs_dir.glob(f"{story.run}.aside-*"))


def test_a_graph_over_which_processes_died_in_a_row_is_set_aside_unopened(settings: Settings) -> None:
    story = reported(settings.bootstrap_servers)
    with open_projection(settings, story.run):
        pass
    note = graph_file(settings, story.run).with_name(graph_file(settings, story.run).name + ".opening")
    for deaths in range(opening.DEATHS_MAX + 1):
        note.write_bytes(b"." * deaths)
        said: list[str] = []
        with open_projection(settings, story.run, say=said.append) as projection:
            assert projection.position().state_digest == story.projector.state_digest
        assert not note.exists()
        assert len(said) == (deaths == opening.DEATHS_MAX)
    assert "2 processes in a row died over it" in said[0]


def test_rows_that_the_engine_cannot_read_are_not_sound(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    story = reported(settings.bootstrap_servers)

    def broken(graph: CypherGraph) -> Iterator[tuple[NodeKey | EdgeKey, Row]]:
        raise GraphError("'utf-8' codec can't decode byte 0xe5")

    with open_projection(settings, story.run) as projection:
        assert projection.sound()
        monkeypatch.setattr(CypherGraph, "rows", broken)
        assert not projection.sound()


def test_an_engine_that_is_not_installed_leaves_the_graph_of_the_other_where_it_is(settings: Settings) -> None:
    story = reported(settings.bootstrap_servers)
    with open_projection(settings, story.run):
        pass
    other = dataclasses.replace(settings, graph_engine="no-such-engine")
    with pytest.raises(GraphUnavailable), open_projection(other, story.run):
        pass
    said: list[str] = []
    with open_projection(settings, story.run, fold=False, say=said.append) as projection:
        assert projection.position().next_offset == len(story.records)
    assert said == []


def test_a_log_left_beside_a_deleted_graph_does_not_get_in_the_way(settings: Settings) -> None:
    story = reported(settings.bootstrap_servers)
    with open_projection(settings, story.run):
        pass
    path = graph_file(settings, story.run)
    path.unlink()
    path.with_name(path.name + ".wal").write_bytes(b"left by a process that was killed")
    for rebuild in (False, True):
        with open_projection(settings, story.run, rebuild=rebuild) as projection:
            assert projection.position().state_digest == story.projector.state_digest


def test_a_rebuild_that_fails_leaves_the_good_graph_in_its_place(settings: Settings) -> None:
    story = reported(settings.bootstrap_servers)
    with open_projection(settings, story.run):
        pass
    with transaction(settings.bootstrap_servers, story.run) as producer:
        producer.produce(run_topic(story.run), value=b"x", partition=0)
    with LogReader(settings.bootstrap_servers, story.run) as reader:  # the mark of its end comes a moment later
        wait_until(lambda: reader.end() == len(story.records) + 2)
    with pytest.raises(ForeignTransaction), open_projection(settings, story.run, rebuild=True):
        pass
    assert [path.name for path in settings.graphs_dir.iterdir() if path.suffix != ".lock"] == [
        graph_file(settings, story.run).name
    ]


def test_a_topic_of_several_partitions_is_no_run(settings: Settings) -> None:
    story = reported(settings.bootstrap_servers)
    admin = AdminClient({"bootstrap.servers": settings.bootstrap_servers})
    topic = run_topic(story.run)
    admin.create_partitions([NewPartitions(topic, 3)])[topic].result()
    deadline = time.monotonic() + 10
    while admin.list_topics(topic, timeout=10).topics[topic].partitions.keys() != {0, 1, 2}:
        assert time.monotonic() < deadline
    with pytest.raises(Corruption) as raised, open_projection(settings, story.run):
        pass
    assert raised.value.code == "topic_partitions"


def test_a_header_whose_name_is_not_utf_8_is_void_and_the_rest_goes_on(settings: Settings) -> None:
    story = reported(settings.bootstrap_servers)
    event = story.record(story.event(events.GoalSet, text="under a strange header"))
    produce_with_header_name(settings.bootstrap_servers, run_topic(story.run), event.value or b"", b"\xff\xfe")
    write(settings.bootstrap_servers, story.run, [dataclasses.replace(event, offset=event.offset + 1)])
    for _ in range(40):  # until the interpreter has specialised the call, which changes where it raises
        with LogReader(settings.bootstrap_servers, story.run) as reader:
            strange, plain = (reader.record_at(len(story.records) + n) for n in (0, 1))
        assert (strange.headers, plain.headers) == (UNREADABLE_HEADERS, event.headers)
    with open_projection(settings, story.run) as projection:
        verdicts = [projection.verdict(len(story.records) + n) for n in (0, 1)]
    assert [(verdict.kind, verdict.reason) for verdict in verdicts] == [("void", "headers_unreadable"), ("valid", "")]


def test_a_writer_whose_clock_is_a_century_ahead_is_taken_at_its_word(settings: Settings) -> None:
    story = reported(settings.bootstrap_servers)
    record = story.record(story.event(events.GoalSet, text="from the future"))
    write(settings.bootstrap_servers, story.run, [dataclasses.replace(record, timestamp_ms=4_900_000_000_000)])
    with open_projection(settings, story.run) as projection:
        assert projection.verdict(len(story.records)).kind == "valid"


def test_large_records_come_in_small_batches(settings: Settings) -> None:
    run = make_run(settings.bootstrap_servers)
    large = [LogRecord(n, 0, None, bytes(900_000)) for n in range(120)]
    write(settings.bootstrap_servers, run, large)
    with LogReader(settings.bootstrap_servers, run) as reader:
        sizes = [len(batch) for batch in reader.read(0, reader.end())]
    assert sum(sizes) == 120
    assert max(sizes) <= 50


def test_one_owner_at_a_time(settings: Settings) -> None:
    story = reported(settings.bootstrap_servers)
    with (
        open_projection(settings, story.run),
        pytest.raises(GraphBusy),
        open_projection(settings, story.run, wait_seconds=0),
    ):
        pass


def test_who_waits_long_for_an_owner_is_told_for_whom(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turn, "SILENT_SECONDS", 0.05)
    story = reported(settings.bootstrap_servers)
    lines: list[str] = []
    with (
        open_projection(settings, story.run),
        pytest.raises(GraphBusy),
        open_projection(settings, story.run, wait_seconds=0.5, say=lines.append),
    ):
        pass
    (line,) = lines
    assert line.startswith(f"process {os.getpid()} holds {story.run}.lock")


def test_a_record_written_in_a_transaction_stops_the_run_and_names_the_last_good_offset(settings: Settings) -> None:
    story = reported(settings.bootstrap_servers)
    with transaction(settings.bootstrap_servers, story.run) as producer:
        record = story.record(story.event(events.GoalSet, text="in a transaction"))
        producer.produce(run_topic(story.run), value=record.value, key=record.key, partition=0)
    with pytest.raises(ForeignTransaction) as raised, open_projection(settings, story.run):
        pass
    assert raised.value.offset == len(story.records)
    assert str(len(story.records)) in raised.value.hint


def bad_records(story: Story) -> list[tuple[LogRecord, tuple[str, str]]]:
    """Records as they must not be, each with the verdict it deserves: kind and reason."""
    offset = len(story.records)
    good_event = story.event(events.GoalSet, text="all is well")
    good = story.record(good_event)
    value = good.value or b""
    decided = story.event(
        events.ApprovalDecided,
        "olga",
        subject={"kind": "case", "id": "case-00000000000000000000"},
        decision="approve",
        reason="yes",
    )
    changed = story.event(events.SettingChanged, "rita", name="same-person-may-review", value="true")
    by_operator = story.event(events.SettingChanged, "olga", name="same-person-may-review", value="true")
    by_reviewer = decided.model_copy(
        update={"meta": decided.meta.model_copy(update={"actor": decided.meta.actor.model_copy(update={"id": "ravi"})})}
    )
    elsewhere = Story("another-run")
    elsewhere.open()
    copied = elsewhere.record(
        elsewhere.event(events.GoalSet, event_id="00000000-0000-7000-8000-00000000000a", text="from elsewhere")
    )
    approved_there = elsewhere.record(
        elsewhere.event(
            events.ApprovalDecided,
            "olga",
            event_id="00000000-0000-7000-8000-00000000000b",
            subject={"kind": "case", "id": "case-00000000000000000000"},
            decision="approve",
            reason="",
        ),
        OPERATOR,
    )
    tampered = bytearray(story.record(decided, OPERATOR).value or b"")
    tampered[-1] ^= 0x02  # the last letter of the reason
    reused = story.event(events.GoalSet, event_id=good_event.meta.event_id, text="another fact under the same id")
    listed = [
        (dataclasses.replace(good, value=b"\xc3\x01" + b"\x00" * 8 + value[10:]), ("unreadable", "unknown_schema")),
        (dataclasses.replace(good, value=value[:-3]), ("unreadable", "truncated")),
        (dataclasses.replace(good, value=value + b"\x00"), ("unreadable", "trailing_bytes")),
        (dataclasses.replace(good, value=b"not avro at all"), ("unreadable", "not_avro")),
        (dataclasses.replace(good, value=b""), ("unreadable", "not_avro")),
        (dataclasses.replace(good, value=None), ("unreadable", "no_value")),
        (dataclasses.replace(good, headers=(("ce_id", b"someone-else"),)), ("void", "header_mismatch")),
        (copied, ("void", "wrong_run")),
        (approved_there, ("void", "wrong_run")),
        (story.record(decided), ("void", "unsigned")),
        (story.record(decided, STRANGER), ("void", "unknown_key")),
        (story.record(decided, REVIEWER), ("void", "role_missing")),
        (story.record(by_reviewer, OPERATOR), ("void", "actor_mismatch")),
        (story.record(changed, ADMIN), ("void", "actor_mismatch")),
        (story.record(by_operator, OPERATOR), ("void", "role_missing")),
        (
            dataclasses.replace(story.record(decided, OPERATOR), value=bytes(tampered)),
            ("void", "bad_signature"),
        ),
        (story.record(decided, OPERATOR), ("void", "unknown_case")),
        (dataclasses.replace(good, headers=()), ("valid", "")),
        (good, ("duplicate", "")),
        (story.record(reused), ("void", "id_reused")),
        (good, ("duplicate", "")),
    ]
    return [(dataclasses.replace(record, offset=offset + n), verdict) for n, (record, verdict) in enumerate(listed)]


def test_bad_records_get_a_verdict_with_a_reason_and_the_rest_goes_on(settings: Settings) -> None:
    story = reported(settings.bootstrap_servers)
    bad = bad_records(story)
    write(settings.bootstrap_servers, story.run, [record for record, _ in bad])
    after = story.event(events.GoalSet, text="and life goes on")
    write(settings.bootstrap_servers, story.run, [story.record(after)])

    with open_projection(settings, story.run) as projection:
        verdicts = [projection.verdict(record.offset) for record, _ in bad]
        last = projection.verdict(len(story.records) + len(bad))
        live = projection.position().state_digest
    assert [(verdict.kind, verdict.reason) for verdict in verdicts] == [expected for _, expected in bad]
    assert last.kind == "valid"
    with open_projection(settings, story.run, rebuild=True) as projection:
        assert projection.position().state_digest == live


def test_a_void_event_changes_nothing_but_its_verdict(settings: Settings) -> None:
    story = reported(settings.bootstrap_servers)
    graph, _ = fold_in_memory(settings, story.run)
    before = {key: row for key, row in graph.rows() if key.table not in ("Event", "Identity")}
    # Without the one valid record among them, the copies of its id would count.
    bad = [
        record
        for record, (kind, reason) in bad_records(story)
        if kind in ("void", "unreadable") and reason != "id_reused"
    ]
    write(settings.bootstrap_servers, story.run, bad)
    graph, projector = fold_in_memory(settings, story.run)
    assert projector.cursor.next_offset == len(story.records) + len(bad)
    assert {key: row for key, row in graph.rows() if key.table not in ("Event", "Identity")} == before


def test_forged_and_borrowed_observations_are_void(settings: Settings) -> None:
    story = told(settings.bootstrap_servers)
    story.open()
    story.register("one")
    story.register("two")
    cases = [story.report("one"), story.report("two")]
    for case in cases:
        assert story.decide(case).valid
        assert story.start(case).valid
    borrowed = story.observation(cases[0], "reproduced").model_copy(
        update={"receipt": story.observation(cases[1], "reproduced").receipt}
    )
    forged = story.observation(cases[0], "reproduced", key=STRANGER)
    better = story.observation(cases[0], "not_reproduced").model_copy(update={"outcome": "reproduced"})
    verdicts = [story.tell(borrowed, RUNNER), story.tell(forged, STRANGER), story.tell(better, RUNNER)]
    assert [verdict.reason for verdict in verdicts] == ["receipt_mismatch", "unknown_key", "receipt_mismatch"]
    assert story.tell(story.observation(cases[0], "reproduced"), RUNNER).valid
    write(settings.bootstrap_servers, story.run, story.records)
    with open_projection(settings, story.run) as projection:
        assert projection.position().state_digest == story.projector.state_digest


def test_an_empty_log_folds_to_a_graph_without_a_run(settings: Settings) -> None:
    run = make_run(settings.bootstrap_servers)
    with open_projection(settings, run) as projection:
        assert projection.position().next_offset == 0
        assert projection.graph.nodes([RUN]) == {}
