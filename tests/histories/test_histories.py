"""Every recorded log folds, to the recorded digests while the fold version is unchanged."""

from __future__ import annotations

import json
import shutil
from itertools import pairwise
from pathlib import Path

import pytest

from forktrail_projectors.content_digest import content_digest
from forktrail_projectors.fold import FOLD_VERSION
from forktrail_projectors.graph.memory import MemoryGraph
from forktrail_projectors.projector import Projector
from forktrail_projectors.record import UNREADABLE_HEADERS, LogRecord
from forktrail_projectors.rules.reasons import IN_WORDS
from forktrail_schemas.events import EVENT_TYPES
from support import record_histories
from support.histories import FOLDER, History, all_histories, without_nulls
from support.history_stories import STORIES
from support.record_histories import changed_rows, folded, main
from support.story import TOPIC_ID, Story

HISTORIES = {history.name: history for history in all_histories()}
each = pytest.mark.parametrize("history", HISTORIES.values(), ids=lambda history: str(history.name))
HOW = "PYTHONPATH=tests .venv/bin/python -m support.record_histories"
FILE_BYTES_MAX = 200_000
# No log leads to it: ids follow from hashes of event ids.
OUT_OF_REACH = {"id_collision"}


def rows_of(name: str, table: str) -> list[dict[str, object]]:
    """The rows of a node table after a fold by this code."""
    graph = MemoryGraph()
    Projector(graph, TOPIC_ID).apply(HISTORIES[name].records())
    return [dict(row) for key, row in graph.rows() if key[0] == table]


@each
def test_a_recorded_log_folds_to_the_recorded_digests(history: History) -> None:
    recorded = [fold for fold in history.folds() if fold["fold_version"] == FOLD_VERSION]
    assert recorded, f"fold version {FOLD_VERSION} isn't recorded: {HOW}"
    rows, fold = folded(history)
    assert changed_rows(history.rows(FOLD_VERSION), rows) == []
    assert {**fold, "changed": recorded[0]["changed"]} == recorded[0]


@each
def test_a_log_never_changes(history: History) -> None:
    assert {fold["log_sha256"] for fold in history.folds()} == {history.log_sha256()}


@each
def test_each_fold_version_lists_the_rows_that_the_one_before_made_otherwise(history: History) -> None:
    folds = history.folds()
    assert [fold["fold_version"] for fold in folds] == sorted({fold["fold_version"] for fold in folds})
    assert folds[0]["changed"] == []
    for before, after in pairwise(folds):
        rows = [history.rows(fold["fold_version"]) for fold in (before, after)]
        assert changed_rows(*rows) == after["changed"]


def test_every_story_is_recorded_and_small() -> None:
    assert HISTORIES.keys() == STORIES.keys()
    assert all(path.stat().st_size < FILE_BYTES_MAX for path in FOLDER.iterdir() if path.is_file())


def test_the_histories_hold_every_event_type_valid_and_every_reason() -> None:
    """Whoever adds one tells a story of it."""
    events = [row for name in HISTORIES for row in rows_of(name, "Event")]
    valid = {row["type"] for row in events if row["verdict"] == "valid"}
    assert {cls.TYPE for cls in EVENT_TYPES} <= valid
    assert IN_WORDS.keys() - OUT_OF_REACH <= {row["reason"] for row in events}


def test_the_demo_delivered_twice_came_to_the_same() -> None:
    digests = {name: HISTORIES[name].folds()[-1]["content_digest"] for name in ("demo", "copies", "every-type")}
    assert digests["demo"] == digests["copies"] != digests["every-type"]
    verdicts = HISTORIES["copies"].folds()[-1]["verdicts"]
    assert verdicts["duplicate"] == verdicts["valid"] == HISTORIES["demo"].folds()[-1]["verdicts"]["valid"]


def test_the_demo_came_to_what_it_tells() -> None:
    """Worked by hand from the story: a chain of three findings, a negative, an inconclusive; in r2 a negative."""
    found = {(row["test"], row["revision"], row["depth"]) for row in rows_of("demo", "Finding")}
    chain = ["gateway-routing-context", "invoice-tenant-boundary", "invoice-chain"]
    assert found == {(test, "r1", depth) for depth, test in enumerate(chain)}
    outcomes = sorted((str(row["revision"]), str(row["outcome"])) for row in rows_of("demo", "Case"))
    assert outcomes == [
        ("r1", "inconclusive"),
        ("r1", "not_reproduced"),
        *[("r1", "reproduced")] * 3,
        ("r2", "not_reproduced"),
    ]


def test_events_of_the_first_schemas_read_as_they_were_said() -> None:
    """What the story of every type said, in version 1 of each schema, in today's rows."""
    events = rows_of("every-type", "Event")
    assert {row["verdict"] for row in events} == {"valid"}
    reports = sorted(
        f"{row['summary']} ({row['researcher']}): {row['outcome']}" for row in rows_of("every-type", "Report")
    )
    assert reports == [
        "and here (scanner-7): case_opened",
        "look here (rita): case_exists",
        "look here (rita): case_opened",
        "look here (rita): case_opened",
    ]
    assert {row["text"] for row in rows_of("every-type", "Goal")} == {"see what breaks", "süß, 世界 and 🙂"}
    assert [(row["id"], row["limit"]) for row in rows_of("every-type", "Budget") if row["limit"] is not None] == [
        ("cases", 50),
        ("finding-depth", 3),
    ]


# The format and the recorder.


def test_any_record_comes_back_from_the_file_as_it_was(tmp_path: Path) -> None:
    records = [
        LogRecord(0, 0, None, None),
        LogRecord(1, -1, b"", b"", (("", None), ("a", b""), ("a", b"\xff\x00"))),
        LogRecord(2, 2**62, b"\xc3\x28", bytes(range(256)), UNREADABLE_HEADERS),
        LogRecord(3, 1, "süß\u2028\n".encode(), b"{}", (("é", "🙂".encode()),)),
    ]
    history = History("any", tmp_path)
    history.write_log("anything", records)
    assert history.records() == records
    with pytest.raises(FileExistsError):
        history.write_log("something else", [])


def test_rows_come_back_from_the_file_without_their_nulls(tmp_path: Path) -> None:
    history = HISTORIES["refusals"]
    rows, fold = folded(history)
    copy = History("copy", tmp_path)
    copy.write_fold(rows, [fold])
    assert copy.rows(FOLD_VERSION) == without_nulls(rows)
    assert copy.folds() == [fold]


def test_another_format_is_refused(tmp_path: Path) -> None:
    history = History("later", tmp_path)
    history.log_file.write_text(json.dumps({"format": "forktrail.history/2"}) + "\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"forktrail\.history/1"):
        history.records()


@pytest.fixture
def copied(tmp_path: Path) -> History:
    """One recorded history in a folder of its own."""
    history = History("demo", tmp_path)
    for path in FOLDER.glob("demo.*"):
        shutil.copy(path, tmp_path / path.name)
    return history


def record(history: History, monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    monkeypatch.setattr(record_histories, "STORIES", {})
    return main(["--folder", str(history.folder), *words])


def test_recording_what_is_recorded_changes_nothing(copied: History, monkeypatch: pytest.MonkeyPatch) -> None:
    before = {path.name: path.read_bytes() for path in copied.folder.iterdir()}
    assert record(copied, monkeypatch) == 0
    assert {path.name: path.read_bytes() for path in copied.folder.iterdir()} == before


def test_another_outcome_under_the_same_fold_version_is_refused(
    copied: History, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folds = copied.folds()
    folds[-1]["state_digest"] = "0" * 64
    rows = copied.rows(FOLD_VERSION)
    key = next(key for key in rows if key[0] == "Goal")
    copied.write_fold({**rows, key: {**rows[key], "text": "another goal"}}, folds)
    assert record(copied, monkeypatch) == 1
    assert "Goal changed ['text']" in capsys.readouterr().err
    assert record(copied, monkeypatch, "--again") == 0
    assert copied.rows(FOLD_VERSION) == rows


def test_a_raised_fold_version_is_recorded_beside_the_old_with_the_changed_rows(
    copied: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if the version before had given the goal another text."""
    rows = copied.rows(FOLD_VERSION)
    key = next(key for key in rows if key[0] == "Goal")
    copied.write_fold({**rows, key: {**rows[key], "text": "another goal"}}, copied.folds())
    monkeypatch.setattr(record_histories, "FOLD_VERSION", FOLD_VERSION + 1)
    assert record(copied, monkeypatch) == 0
    old, new = copied.folds()[-2:]
    assert (old["fold_version"], new["fold_version"]) == (FOLD_VERSION, FOLD_VERSION + 1)
    assert new["changed"] == [{"table": "Goal", "kind": "changed", "columns": ["text"], "rows": [key[1]]}]
    assert copied.rows(FOLD_VERSION + 1) == rows
    assert record(copied, monkeypatch, "--again") == 0  # replaces the last alone
    assert copied.folds()[-2:] == [old, new]


def test_a_story_that_is_not_recorded_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_histories, "STORIES", {"demo": STORIES["demo"]})
    assert main(["--folder", str(tmp_path)]) == 0
    told = History("demo", tmp_path)
    story = Story("demo")
    story.projector.apply(told.records())
    assert told.folds()[-1]["content_digest"] == content_digest(story.graph.rows(), story.graph.tables)
    assert told.folds()[-1]["fold_version"] == FOLD_VERSION
