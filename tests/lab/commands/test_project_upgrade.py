"""`forktrail project --check-upgrade` and `--content-digest` on a real broker."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

import pytest

from forktrail_projectors.fold import FOLD_VERSION
from forktrail_projectors.graph.engine import open_database
from forktrail_projectors.lock import WAIT_SECONDS
from forktrail_projectors.owner.live import own
from forktrail_schemas.events import GoalSet
from forktrail_schemas.settings import Settings
from support.command_line import CommandLine
from support.raw import make_run, write
from support.staff import report
from support.story import Story


def graph_file(settings: Settings, run: str) -> Path:
    return settings.graphs_dir / f"{run}.{settings.graph_engine}"


def alter(settings: Settings, run: str, *statements: str) -> None:
    """Change a graph's file, as if another version had made it."""
    database = open_database(graph_file(settings, run), settings.graph_engine)
    session = database.connect()
    for statement in statements:
        session.execute(statement)
    session.close()
    database.close()


def test_a_graph_that_this_version_made_would_not_change(forktrail: CommandLine, run: str) -> None:
    forktrail.ok("project", run)
    said = forktrail.ok("project", run, "--check-upgrade", "--format", "json").json
    assert said == {
        "run": run,
        "fold_version": FOLD_VERSION,
        "code_fold_version": FOLD_VERSION,
        "next_offset": 9,
        "verdicts": [],
        "rows": [],
        "differs": False,
    }
    assert "none differs" in forktrail.ok("project", run, "--check-upgrade").out


def test_what_would_change_is_told_grouped_and_nothing_is_changed(
    forktrail: CommandLine, run: str, settings: Settings
) -> None:
    report(forktrail, run)
    alter(
        settings,
        run,
        "MATCH (e:Event) WHERE e.offset = 9 SET e.verdict = 'void', e.reason = 'unknown_test'",
        "MATCH (c:`Case`) SET c.depth = 7",
        "MATCH (r:Report)-[o:OPENED]->() DELETE o",
        "MATCH (c:Cursor) SET c.fold_version = 0",
    )
    files = {path: path.read_bytes() for path in settings.graphs_dir.iterdir() if path.suffix != ".lock"}
    done = forktrail("project", run, "--check-upgrade", "--format", "json")
    assert done.code == 6
    said = done.json
    assert (said["fold_version"], said["code_fold_version"], said["differs"]) == (0, FOLD_VERSION, True)
    assert said["verdicts"] == [
        {
            "offset": 9,
            "type": "forktrail.ReportFiled",
            "before": {"kind": "void", "reason": "unknown_test"},
            "after": {"kind": "valid", "reason": ""},
        }
    ]
    groups = [(group["table"], group["kind"], group["columns"], group["count"]) for group in said["rows"]]
    assert groups == [
        ("Case", "changed", ["depth"], 1),
        ("Event", "changed", ["reason", "verdict"], 1),
        ("OPENED", "added", [], 1),
    ]
    table = forktrail("project", run, "--check-upgrade")
    assert table.code == 6
    assert "1 event would be decided otherwise" in table.out
    assert "void, unknown_test  valid" in table.out
    assert {path: path.read_bytes() for path in files} == files


def test_a_graph_with_other_tables_is_compared_and_not_rebuilt(
    forktrail: CommandLine, run: str, settings: Settings
) -> None:
    forktrail.ok("project", run)
    alter(settings, run, "ALTER TABLE Key ADD colour STRING DEFAULT 'red'", "COMMENT ON TABLE Cursor IS 'older'")
    done = forktrail("project", run, "--check-upgrade", "--format", "json")
    assert done.code == 6
    assert [(group["table"], group["columns"]) for group in done.json["rows"]] == [("Key", ["colour"])]
    assert not list(settings.graphs_dir.glob(f"{run}.aside-*"))


def test_records_that_the_graph_lacks_are_not_compared(forktrail: CommandLine, run: str, settings: Settings) -> None:
    forktrail.ok("project", run)
    story = Story(run)
    write(settings.bootstrap_servers, run, [story.record(story.event(GoalSet, text="later"))])
    assert forktrail.ok("project", run, "--check-upgrade", "--format", "json").json["next_offset"] == 9


def test_beside_an_owner_a_copy_is_compared_and_the_fold_goes_on(
    forktrail: CommandLine, run: str, settings: Settings
) -> None:
    forktrail.ok("project", run)
    alter(settings, run, "MATCH (t:TestCase) SET t.title = 'another'")
    with own(settings, run) as owner:
        began = time.monotonic()
        done = forktrail("project", run, "--check-upgrade", "--format", "json")
        assert time.monotonic() - began < WAIT_SECONDS / 2
        assert done.code == 6
        assert [(group["table"], group["columns"]) for group in done.json["rows"]] == [("TestCase", ["title"])]
        story = Story(run)
        write(settings.bootstrap_servers, run, [story.record(story.event(GoalSet, text="later"))])
        view = owner.view()
        view.catch_up()
        assert view.next_offset == 10


def test_a_graph_that_its_owner_changes_while_it_is_copied_is_not_compared(
    forktrail: CommandLine, run: str, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    forktrail.ok("project", run)

    def copied(file: Path, folder: Path) -> None:
        shutil.copy2(file, folder)
        with file.open("ab"):
            os.utime(file, ns=(0, 0))

    monkeypatch.setattr(shutil, "copy", copied)
    with own(settings, run):
        done = forktrail("project", run, "--check-upgrade")
    assert (done.code, done.out) == (1, "")
    assert "graph_moved: " in done.err


def test_no_graph_is_not_found_and_none_is_made(forktrail: CommandLine, settings: Settings) -> None:
    run = make_run(settings.bootstrap_servers)
    done = forktrail("project", run, "--check-upgrade")
    assert (done.code, done.out) == (3, "")
    assert f"`forktrail project {run}` makes one" in done.err
    assert not graph_file(settings, run).exists()
    assert forktrail("project", "run-nowhere", "--check-upgrade").code == 3


def test_a_graph_of_another_topic_or_ahead_of_its_log_is_refused(
    forktrail: CommandLine, run: str, settings: Settings
) -> None:
    forktrail.ok("project", run)
    alter(settings, run, "MATCH (c:Cursor) SET c.next_offset = 99")
    assert "ahead of its log" in forktrail("project", run, "--check-upgrade").err
    alter(settings, run, "MATCH (c:Cursor) SET c.topic_id = 'another'")
    done = forktrail("project", run, "--check-upgrade")
    assert done.code == 1
    assert "graph_mismatch" in done.err


def test_it_goes_alone(forktrail: CommandLine, run: str) -> None:
    for other in ("--rebuild", "--follow", "--content-digest"):
        assert forktrail("project", run, "--check-upgrade", other).code == 2


def test_the_content_digest_is_shown_when_asked_for(forktrail: CommandLine, run: str, settings: Settings) -> None:
    plain = forktrail.ok("project", run, "--format", "json").json
    assert "content_digest" not in plain
    first = forktrail.ok("project", run, "--content-digest", "--format", "json").json
    assert len(first["content_digest"]) == 64
    again = forktrail.ok("project", run, "--content-digest", "--rebuild", "--format", "json").json
    assert again["content_digest"] == first["content_digest"]
    report(forktrail, run)
    later = forktrail.ok("project", run, "--content-digest", "--format", "json").json
    assert later["content_digest"] != first["content_digest"]
