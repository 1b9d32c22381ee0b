"""A graph is rebuilt from its log to the same rows, and a rebuild that is killed leaves a graph that is right."""

from __future__ import annotations

import gc
import os
import random
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, cast

import pytest

from benchmarks.workload import mixed
from forktrail_projectors import opener as opener_module
from forktrail_projectors import rebuild
from forktrail_projectors.graph import bulk
from forktrail_projectors.graph.cypher import CypherGraph
from forktrail_projectors.graph.engine import database_files
from forktrail_projectors.graph.memory import MemoryGraph
from forktrail_projectors.graph.session import Session
from forktrail_projectors.opener import Opener
from forktrail_projectors.projector import Projector
from forktrail_projectors.reader import LogReader
from forktrail_projectors.record import LogRecord
from forktrail_schemas.errors import Corruption
from support.rows import ENGINE, SEED, content

EVENTS = 800
KILLS = 5


class ListReader:
    """Records in a list, read as a log is."""

    topic_id = "topic"

    def __init__(self, records: list[LogRecord]) -> None:
        self._records = records

    def end(self) -> int:
        return len(self._records)

    def read(self, start: int, end: int) -> Iterator[list[LogRecord]]:
        for first in range(start, end, 500):
            yield self._records[first : min(first + 500, end)]

    def record_at(self, offset: int) -> LogRecord:
        return self._records[offset]


@cache
def reader() -> LogReader:
    return cast(LogReader, ListReader(list(mixed(EVENTS))))


def folded(graph: Any, start: int = 0) -> Projector:
    """The rest of the log folded into a graph."""
    projector = Projector(graph, reader().topic_id)
    for batch in reader().read(max(start, projector.cursor.next_offset), EVENTS):
        projector.apply(batch)
    return projector


@cache
def expected() -> MemoryGraph:
    graph = MemoryGraph()
    folded(graph)
    return graph


def opener(path: Path, said: list[str]) -> Opener:
    return Opener(path, ENGINE, "run-1", reader(), said.append)


def check(graph: CypherGraph) -> None:
    """The graph, once folded to the log's end, holds what a fold in memory gives."""
    projector = folded(graph)
    assert content(graph) == content(expected()), f"seed {SEED}"
    assert graph.cursor() == expected().cursor()
    assert projector.recomputed_digest() == projector.state_digest


def test_a_rebuilt_graph_is_the_one_that_commits_make(tmp_path: Path) -> None:
    live = CypherGraph.open(tmp_path / "live.graph", ENGINE)
    folded(live)
    rebuild.rebuild(tmp_path / "rebuilt.graph", ENGINE, reader())
    rebuilt = CypherGraph.open(tmp_path / "rebuilt.graph", ENGINE)
    assert content(rebuilt) == content(live)
    assert rebuilt.cursor() == live.cursor()
    live.close()
    rebuilt.close()


def test_a_long_log_is_loaded_at_once_when_it_is_first_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, said = tmp_path / "run.graph", list[str]()
    for events, loaded in ((EVENTS + 1, False), (EVENTS, True)):
        monkeypatch.setattr(rebuild, "events_to_copy", lambda engine, events=events: events)
        graph = opener(path, said).opened()
        assert (graph.cursor() is not None) == loaded
        check(graph)
        graph.close()
        rebuild.remove(path)
    assert said == []
    assert list(tmp_path.iterdir()) == []


def test_what_is_too_long_for_the_memory_is_folded_afterwards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rebuild, "EVENTS_IN_MEMORY_MAX", 500)
    graph = opener(tmp_path / "run.graph", []).rebuilt("asked for")
    assert cast(Any, graph.cursor()).next_offset == 500
    check(graph)
    graph.close()


def test_a_rebuild_whose_file_is_wrong_leaves_the_old_graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, said = tmp_path / "run.graph", list[str]()
    opener(path, said).opened().close()
    before = path.read_bytes()
    monkeypatch.setattr(bulk, "same_rows", lambda *_: False)
    gc.enable()
    with pytest.raises(Corruption):
        opener(path, said).rebuilt("asked for")
    assert gc.isenabled()
    assert [file.name for file in tmp_path.iterdir()] == [path.name]
    assert path.read_bytes() == before
    assert said == []


MOMENTS = ("fold", "first load", "third load", "checkpoint", "compare", "set aside", "rename")


def die_at(moment: str) -> None:
    """In the child: be killed when the rebuild comes to that point."""

    def dying(owner: Any, name: str, when: Callable[..., bool]) -> None:
        whole = getattr(owner, name)

        def called(*arguments: Any, **options: Any) -> Any:
            if when(*arguments):
                os.kill(os.getpid(), signal.SIGKILL)
            return whole(*arguments, **options)

        setattr(owner, name, called)

    calls = iter(range(1_000))
    {
        "fold": lambda: dying(Projector, "apply", lambda *_: next(calls) == 1),
        "first load": lambda: dying(Session, "load", lambda *_: next(calls) == 0),
        "third load": lambda: dying(Session, "load", lambda *_: next(calls) == 2),
        "checkpoint": lambda: dying(Session, "run", lambda _, cypher, *__: cypher == "CHECKPOINT"),
        "compare": lambda: dying(Session, "table", lambda *_: next(calls) == 0),
        "set aside": lambda: dying(Opener, "_set_aside", lambda *_: True),
        "rename": lambda: dying(opener_module, "_rename", lambda old, _: old.suffix == ".rebuilding"),
        "": lambda: None,
    }[moment]()


def child(path: Path, moment: str) -> subprocess.Popen[bytes]:
    """A process that rebuilds the graph, and says when it begins."""
    paths = os.pathsep.join([str(Path(__file__).parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])])
    command = [sys.executable, __file__, str(path), moment]
    return subprocess.Popen(command, stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": paths})


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_rebuild_killed_at_a_moment_leaves_a_graph_that_is_right(tmp_path: Path, moment: str) -> None:
    path, said = tmp_path / "run.graph", list[str]()
    old = opener(path, said).opened()
    check(old)
    old.close()
    with child(path, moment) as process:
        assert process.wait() == -signal.SIGKILL
    graph = opener(path, said).opened()  # with what the killed one left beside it
    if moment != "rename":
        assert cast(Any, graph.cursor()).next_offset == EVENTS
    check(graph)
    graph.close()
    graph = opener(path, said).rebuilt("asked for")
    check(graph)
    graph.close()
    assert not database_files(path.with_suffix(".rebuilding"))


def test_rebuilds_killed_at_any_time_leave_a_graph_that_is_right(tmp_path: Path) -> None:
    dice = random.Random(SEED)
    path, said = tmp_path / "run.graph", list[str]()
    opener(path, said).opened().close()
    with child(path, "") as process:
        assert process.stdout is not None
        process.stdout.readline()
        began = time.monotonic()
        assert process.wait() == 0
        seconds = time.monotonic() - began
    for _ in range(KILLS):
        with child(path, "") as process:
            assert process.stdout is not None
            process.stdout.readline()
            with select.epoll() as nothing:  # waits, and nothing wakes it
                nothing.poll(dice.random() * seconds)
            process.kill()
        graph = opener(path, said).opened()
        check(graph)
        graph.close()


if __name__ == "__main__":
    log = reader()
    die_at(sys.argv[2])
    print("begun", flush=True)
    opener(Path(sys.argv[1]), []).rebuilt("asked for").close()
