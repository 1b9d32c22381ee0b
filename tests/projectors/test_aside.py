"""Graphs that were set aside are told and pruned, and nothing else is."""

from __future__ import annotations

from pathlib import Path

import pytest

from forktrail_projectors.aside import prune, set_aside
from forktrail_schemas.settings import Settings

OWN = ("run-1.aside-1700", "run-1.aside-1700.wal", "run-1.aside-1800")
OTHERS = ("run-1.ladybug", "run-1.ladybug.wal", "run-1.lock", "run-1.rebuilding", "run-12.aside-1700", "run-1x.aside-1")


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    settings = Settings(tmp_path, "127.0.0.1:1", external_kafka=True, graph_engine="ladybug")
    settings.graphs_dir.mkdir()
    for name in (*OWN, *OTHERS):
        (settings.graphs_dir / name).write_bytes(b"12345")
    return settings


def test_each_is_told_with_all_its_files_the_oldest_first(settings: Settings) -> None:
    older, newer = set_aside(settings, "run-1")
    assert [path.name for path in older.files] == ["run-1.aside-1700", "run-1.aside-1700.wal"]
    assert (older.size, newer.size) == (10, 5)
    assert newer.path.name == "run-1.aside-1800"


def test_pruning_deletes_just_them_and_says_what_it_frees(settings: Settings) -> None:
    assert prune(set_aside(settings, "run-1")) == 15
    assert sorted(path.name for path in settings.graphs_dir.iterdir()) == sorted(OTHERS)
    assert set_aside(settings, "run-1") == []


def test_what_is_gone_already_is_no_error_and_frees_nothing(settings: Settings) -> None:
    found = set_aside(settings, "run-1")
    found[0].files[0].unlink()
    assert prune(found) == 10
    assert prune(found) == 0
    assert sorted(path.name for path in settings.graphs_dir.iterdir()) == sorted(OTHERS)


def test_a_home_without_graphs_has_none(tmp_path: Path) -> None:
    assert set_aside(Settings(tmp_path / "none", "", external_kafka=True, graph_engine="ladybug"), "run-1") == []
