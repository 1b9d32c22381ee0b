from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

import pytest

from forktrail_projectors.fold import FOLD_VERSION
from forktrail_projectors.graph.cypher import CypherGraph
from forktrail_projectors.graph.engine import open_database
from forktrail_projectors.graph.protocol import Graph
from forktrail_projectors.graph.session import Session
from forktrail_projectors.graph.stored import StoredCursor, StoredGraph
from forktrail_projectors.projector import Projector
from forktrail_projectors.row_diff import DifferenceGroup
from forktrail_projectors.state import Changes, NodeChange, NodeKey
from forktrail_projectors.upgrade import Decision, Upgrade, VerdictChange, compared
from forktrail_schemas import events
from forktrail_schemas.errors import GraphUnavailable
from support.history_stories import demo
from support.rows import ENGINE
from support.story import RUNNER, TOPIC_ID, Story

CURSOR = StoredCursor("topic", 9, FOLD_VERSION)


def comparison(before: Graph, after: Graph) -> Upgrade:
    return compared("story", CURSOR, before.rows(), after.rows())


def reviewed(*decisions: str) -> Story:
    """One observed case, reviewed by as many people as there are decisions; the first counts."""
    story = Story()
    story.open()
    story.register("root", enables=["way"])
    case = story.report("root")
    assert story.decide(case).valid
    assert story.start(case).valid
    assert story.tell(story.observation(case, "reproduced"), RUNNER).valid
    for decision in decisions:
        story.review(case, decision)
    return story


# Two graphs in memory.


def test_equal_graphs_would_change_nothing() -> None:
    upgrade = comparison(reviewed("accept").graph, reviewed("accept").graph)
    assert (upgrade.verdicts, upgrade.rows, upgrade.differs) == ((), (), False)
    assert (upgrade.fold_version, upgrade.code_fold_version, upgrade.next_offset) == (FOLD_VERSION, FOLD_VERSION, 9)


def test_an_event_that_is_decided_otherwise_is_named_with_what_follows() -> None:
    """As if the code before had taken the second review, which rejects, for the first that counts."""
    before, after = reviewed("reject"), reviewed("accept")
    upgrade = comparison(before.graph, after.graph)
    assert upgrade.differs
    assert upgrade.verdicts == ()  # both are valid, so only rows differ
    groups = {(group.table, group.kind): group for group in upgrade.rows}
    assert groups["Finding", "added"].count == 1
    assert groups["Review", "changed"].columns == ("decision",)
    assert groups["Case", "changed"].columns == ("status",)
    assert ("ENABLES", "added") in groups


def test_a_verdict_that_changes_is_told_by_offset_with_reason_before_and_after() -> None:
    story = reviewed("accept")
    offset = len(story.records)
    event = story.event(events.GoalSet, text="go on")
    record = story.record(event)
    story.append(replace(record, value=b"", headers=()))
    before = story.graph
    other = reviewed("accept")
    other.append(record)
    upgrade = comparison(before, other.graph)
    unreadable, valid = Decision("unreadable", "not_avro"), Decision("valid", "")
    assert upgrade.verdicts == (VerdictChange(offset, "forktrail.GoalSet", unreadable, valid),)
    (back,) = comparison(other.graph, before).verdicts
    assert (back.before, back.after, back.type) == (valid, unreadable, "")


def test_records_that_one_graph_lacks_have_no_verdict_there() -> None:
    story = reviewed("accept")
    upgrade = comparison(reviewed().graph, story.graph)
    (change,) = upgrade.verdicts
    assert (change.before, change.after) == (Decision("", ""), Decision("valid", ""))
    assert change.offset == len(story.records) - 1


# A graph on disk, read as it stands.


def on_disk(path: Path, story: Story) -> None:
    graph = CypherGraph.open(path, ENGINE)
    Projector(graph, TOPIC_ID).apply(story.records)
    graph.close()


def altered(path: Path, *statements: str) -> None:
    """Run statements on a graph's file, as another version of this code might have made it."""
    database = open_database(path, ENGINE)
    session = Session(database)
    for statement in statements:
        session.run(statement)
    session.close()
    database.close()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "run.graph"


def upgrade_of(file: Path, story: Story) -> Upgrade:
    stored = StoredGraph.open(file, ENGINE)
    try:
        return compared("story", stored.cursor(), stored.rows(), story.graph.rows())
    finally:
        stored.close()


def told_demo() -> Story:
    story = Story()
    demo(story)
    return story


def test_the_stored_rows_and_cursor_are_those_that_were_committed(file: Path) -> None:
    story = told_demo()
    on_disk(file, story)
    stored = StoredGraph.open(file, ENGINE)
    assert dict(stored.rows()) == story.rows()
    assert stored.cursor() == StoredCursor(TOPIC_ID, len(story.records), FOLD_VERSION)
    stored.close()


def test_reading_changes_no_file(file: Path) -> None:
    story = told_demo()
    on_disk(file, story)
    altered(file, "MATCH (g:Goal) SET g.text = 'x'")  # leaves a write-ahead log beside the file
    before = {path: path.read_bytes() for path in file.parent.iterdir()}
    assert upgrade_of(file, story).rows == (
        DifferenceGroup("Goal", "changed", ("text",), 1, (str(story.row("Run", "run")["goal"]),)),
    )
    assert {path: path.read_bytes() for path in file.parent.iterdir()} == before


def test_tables_and_columns_of_another_version_are_read_as_they_are(file: Path) -> None:
    story = told_demo()
    on_disk(file, story)
    altered(
        file,
        "CREATE NODE TABLE Old(name STRING, tags STRING[], PRIMARY KEY(name))",
        "CREATE REL TABLE ABOUT(FROM Old TO Goal, since INT64)",
        "CREATE (:Old {name: 'o', tags: ['a', 'b']})",
        "MATCH (o:Old), (g:Goal) CREATE (o)-[:ABOUT {since: 3}]->(g)",
        "ALTER TABLE Asset ADD colour STRING DEFAULT 'red'",
        "ALTER TABLE Review RENAME decision TO judgement",
        "MATCH (c:Cursor) SET c.fold_version = 0",
    )
    before = {path: path.read_bytes() for path in file.parent.iterdir()}
    upgrade = upgrade_of(file, story)
    assert {path: path.read_bytes() for path in file.parent.iterdir()} == before
    goal = str(story.row("Run", "run")["goal"])
    groups = {(group.table, group.kind): group for group in upgrade.rows}
    assert groups["Old", "removed"].examples == ("o",)
    assert groups["ABOUT", "removed"].examples == (f"o -> {goal}",)
    assert (groups["Asset", "changed"].columns, groups["Asset", "changed"].count) == (("colour",), 4)
    assert groups["Review", "changed"].columns == ("decision", "judgement")
    assert len(groups) == 4
    assert (upgrade.fold_version, upgrade.code_fold_version, upgrade.verdicts) == (0, FOLD_VERSION, ())


def test_a_file_that_holds_no_graph_of_a_run_is_refused(file: Path) -> None:
    altered(file, "CREATE NODE TABLE Thing(name STRING, PRIMARY KEY(name))")
    stored = StoredGraph.open(file, ENGINE)
    with pytest.raises(GraphUnavailable):
        stored.cursor()
    stored.close()


def test_a_graph_that_nothing_was_folded_into_is_refused(file: Path) -> None:
    CypherGraph.open(file, ENGINE).close()
    stored = StoredGraph.open(file, ENGINE)
    with pytest.raises(GraphUnavailable):
        stored.cursor()
    stored.close()


def test_a_damaged_log_beside_the_file_is_refused_and_no_copy_stays(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_disk(file, told_demo())
    altered(file, "MATCH (g:Goal) SET g.text = 'x'")
    log = file.with_name(file.name + ".wal")
    log.write_bytes(log.read_bytes()[:-5])
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    with pytest.raises(GraphUnavailable):
        StoredGraph.open(file, ENGINE)
    assert list(temporary.iterdir()) == []


def test_a_missing_file_is_refused_and_not_made(file: Path) -> None:
    with pytest.raises(GraphUnavailable):
        StoredGraph.open(file, ENGINE)
    assert not file.exists()


def test_a_row_changed_in_memory_is_seen_on_either_side() -> None:
    """The comparison takes rows from any graph."""
    before, after = reviewed("accept"), reviewed("accept")
    key = NodeKey("Setting", "colour")
    row = dict.fromkeys(("value", "created_event", "created_offset", "changed_event", "changed_offset"))
    change = Changes.of({key: NodeChange(None, {"id": "colour", **row})}, {})
    cursor = after.graph.cursor()
    assert cursor is not None
    after.graph.commit(change, cursor)
    assert comparison(before.graph, after.graph).rows == (DifferenceGroup("Setting", "added", (), 1, ("colour",)),)
    assert comparison(after.graph, before.graph).rows == (DifferenceGroup("Setting", "removed", (), 1, ("colour",)),)
