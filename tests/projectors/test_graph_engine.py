"""Opening a graph's file: once, by one engine, whole or not at all, with an error that says what to do."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from forktrail_projectors.graph import engine, tables
from forktrail_projectors.graph.cypher import CypherGraph
from forktrail_projectors.graph.engine import ENGINES, database_files
from forktrail_projectors.graph.protocol import Cursor
from forktrail_projectors.state import Changes
from forktrail_schemas.errors import GraphBusy, GraphUnavailable

ENGINE = os.environ.get("FORKTRAIL_GRAPH_ENGINE", "ladybug")
OTHER = next(name for name in ENGINES if name != ENGINE)
CURSOR = Cursor("topic", 1, "", (), "", 1)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A graph's file, closed."""
    path = tmp_path / "run.graph"
    graph = CypherGraph.open(path, ENGINE)
    graph.commit(Changes(), CURSOR)
    graph.close()
    return path


def test_importing_the_graph_loads_no_engine() -> None:
    script = "import sys, forktrail_projectors.graph.cypher; print({'ladybug', 'kuzu'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


def test_an_unknown_engine_is_refused(tmp_path: Path) -> None:
    with pytest.raises(GraphUnavailable, match="neo"):
        CypherGraph.open(tmp_path / "run.graph", "neo")


def test_a_missing_engine_names_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, ENGINE, None)
    with pytest.raises(GraphUnavailable) as refused:
        CypherGraph.open(tmp_path / "run.graph", ENGINE)
    assert refused.value.hint == f"pip install '{ENGINES[ENGINE]}'"


def test_a_second_engine_in_one_process_is_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, OTHER, sys)
    with pytest.raises(GraphUnavailable, match="one graph engine"):
        CypherGraph.open(path, ENGINE)


def test_a_file_is_opened_once_in_a_process(path: Path, tmp_path: Path) -> None:
    graph = CypherGraph.open(path, ENGINE)
    alias = tmp_path / "alias.graph"
    alias.symlink_to(path)
    for name in (path, tmp_path / "x" / ".." / "run.graph", alias):
        with pytest.raises(GraphBusy):
            CypherGraph.open(name, ENGINE)
        with pytest.raises(GraphBusy):
            CypherGraph.open(name, ENGINE, read_only=True)
    graph.close()
    graph.close()
    again = CypherGraph.open(path, ENGINE)
    again.close()


def test_a_file_is_opened_for_writing_by_one_process(path: Path) -> None:
    script = f"""
import sys
from pathlib import Path
from forktrail_projectors.graph.cypher import CypherGraph
from forktrail_schemas.errors import GraphBusy
try:
    CypherGraph.open(Path(sys.argv[1]), {ENGINE!r})
except GraphBusy:
    print("busy")
"""
    graph = CypherGraph.open(path, ENGINE)
    done = subprocess.run([sys.executable, "-c", script, path], capture_output=True, text=True, check=True)
    assert done.stdout == "busy\n"
    graph.close()


def test_a_file_that_failed_to_open_can_be_made_anew(path: Path) -> None:
    path.write_bytes(b"this is no database" * 1000)
    with pytest.raises(GraphUnavailable) as refused:
        CypherGraph.open(path, ENGINE)
    assert "\n" not in str(refused.value)
    assert refused.value.hint
    for file in database_files(path):
        file.unlink()
    graph = CypherGraph.open(path, ENGINE)
    assert graph.cursor() is None
    graph.close()


@pytest.mark.skipif(ENGINE != "ladybug", reason="kuzu drops what it can't read of its log")
def test_a_torn_log_is_an_error_and_never_skipped(path: Path) -> None:
    script = f"""
import os, sys
from pathlib import Path
from forktrail_projectors.graph.cypher import CypherGraph
from forktrail_projectors.graph.protocol import Cursor
from forktrail_projectors.state import Changes
graph = CypherGraph.open(Path(sys.argv[1]), {ENGINE!r})
for offset in range(20):
    graph.commit(Changes(), Cursor("topic", offset, "", (), "", 1))
os._exit(0)
"""
    subprocess.run([sys.executable, "-c", script, path], check=True)
    log = path.with_name("run.graph.wal")
    os.truncate(log, log.stat().st_size - 5)
    with pytest.raises(GraphUnavailable):
        CypherGraph.open(path, ENGINE)


def test_a_log_without_its_file_is_not_taken_for_a_new_graph(path: Path) -> None:
    path.rename(path.with_name("run.graph.wal"))
    with pytest.raises(GraphUnavailable, match=r"run\.graph\.wal"):
        CypherGraph.open(path, ENGINE)


def test_a_new_graph_is_whole_without_its_log(path: Path) -> None:
    assert database_files(path) == (path,)


def test_short_sessions_leave_a_short_log_and_at_last_none(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = path.with_name("run.graph.wal")
    sizes = []
    monkeypatch.setattr(engine, "LOG_BYTES_KEPT", 3_000)
    for offset in range(40):
        graph = CypherGraph.open(path, ENGINE)
        graph.commit(Changes(), Cursor("topic", offset, "", (), "", 1))
        graph.close()
        sizes.append(log.stat().st_size if log.exists() else 0)
    assert 0 < max(sizes) <= 3_000
    assert sizes.count(0) > 1
    graph = CypherGraph.open(path, ENGINE, read_only=True)
    assert graph.cursor() == Cursor("topic", 39, "", (), "", 1)
    graph.close()


def test_after_a_checkpoint_the_file_alone_is_the_graph(path: Path, tmp_path: Path) -> None:
    graph = CypherGraph.open(path, ENGINE)
    graph.commit(Changes(), Cursor("topic", 7, "", (), "", 1))
    graph.checkpoint()
    copy = tmp_path / "copy.graph"
    copy.write_bytes(path.read_bytes())
    graph.close()
    graph = CypherGraph.open(copy, ENGINE)
    assert graph.cursor() == Cursor("topic", 7, "", (), "", 1)
    graph.close()


def test_a_graph_that_is_not_there_is_not_made_for_reading(tmp_path: Path) -> None:
    with pytest.raises(GraphUnavailable):
        CypherGraph.open(tmp_path / "run.graph", ENGINE, read_only=True)
    assert list(tmp_path.iterdir()) == []


def test_tables_of_another_version_are_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    definitions = tables._definitions()
    monkeypatch.setattr(tables, "_definitions", lambda: [*definitions[:-1], definitions[-1] + " "])
    with pytest.raises(GraphUnavailable, match="another version"):
        CypherGraph.open(path, ENGINE)
    monkeypatch.undo()
    graph = CypherGraph.open(path, ENGINE)
    assert graph.cursor() == CURSOR
    graph.close()
