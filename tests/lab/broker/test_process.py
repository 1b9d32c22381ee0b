"""A process is recognised, and ended with as much force as it takes."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from forktrail_lab.broker.process import birth_mark, rss_bytes, spawn_detached, terminate

DEADLINE_S = 10.0


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "log"


@pytest.fixture
def spawn(tmp_path: Path, log: Path) -> Iterator[list[int]]:
    """Pids to be cleared away when the test ends."""
    pids: list[int] = []
    yield pids
    for pid in pids:
        if mark := birth_mark(pid):
            terminate(pid, mark, 0.0)


def started(script: str, log: Path, pids: list[int]) -> tuple[int, str]:
    """Start a shell script and wait until it has said "ready"."""
    pid = spawn_detached(["/bin/sh", "-c", script], log, log.parent)
    pids.append(pid)
    deadline = time.monotonic() + DEADLINE_S
    while not (log.exists() and "ready" in log.read_text()):
        assert time.monotonic() < deadline
        os.sched_yield()
    mark = birth_mark(pid)
    assert mark
    return pid, mark


def test_a_process_that_obeys_ends_by_itself(log: Path, spawn: list[int]) -> None:
    pid, mark = started("echo ready; exec sleep 60", log, spawn)
    assert terminate(pid, mark, DEADLINE_S)
    assert birth_mark(pid) is None


def test_a_process_that_ignores_sigterm_is_killed(log: Path, spawn: list[int]) -> None:
    pid, mark = started('trap "" TERM; echo ready; exec sleep 60', log, spawn)
    assert not terminate(pid, mark, 0.1)
    assert birth_mark(pid) is None


def test_a_process_with_another_birth_mark_is_left_alone(log: Path, spawn: list[int]) -> None:
    pid, mark = started("echo ready; exec sleep 60", log, spawn)
    assert terminate(pid, "the mark of a former process with this pid", DEADLINE_S)
    assert birth_mark(pid) == mark


def test_a_detached_process_has_a_session_of_its_own_and_is_no_child(log: Path, spawn: list[int]) -> None:
    pid, _ = started("echo ready; exec sleep 60", log, spawn)
    assert os.getsid(pid) != os.getsid(0)
    with pytest.raises(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)


def test_words_reach_a_detached_process_as_they_are(log: Path, spawn: list[int]) -> None:
    words = ["a b", "$HOME", "it's", "*", "été"]
    spawn.append(spawn_detached(["/bin/sh", "-c", 'printf "%s|" "$@"; echo ready', "sh", *words], log, log.parent))
    deadline = time.monotonic() + DEADLINE_S
    while "ready" not in log.read_text():
        assert time.monotonic() < deadline
    assert log.read_text() == "a b|$HOME|it's|*|été|ready\n"


def test_a_birth_mark_stays_while_the_process_lives_and_an_ended_process_has_none() -> None:
    with subprocess.Popen(["/bin/sleep", "60"]) as child:
        assert birth_mark(child.pid) == birth_mark(child.pid) is not None
        assert birth_mark(child.pid) != birth_mark(os.getpid())
        child.kill()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert birth_mark(child.pid) is None, "it waits to be reaped"
    assert birth_mark(child.pid) is None
    assert birth_mark(0) is None


def test_memory_is_told_in_bytes() -> None:
    own = rss_bytes(os.getpid())
    assert own is not None
    assert 5_000_000 < own < 2_000_000_000
