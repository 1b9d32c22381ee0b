"""A lock file has one holder at a time, is free when its holder dies, and costs next to nothing to import."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from forktrail_projectors.lock import Holder, holder, owned
from forktrail_schemas.errors import GraphBusy

WAIT_S = 20.0
HOLDER = """
import sys, time
from pathlib import Path
from forktrail_projectors.lock import owned
with owned(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def lock(tmp_path: Path) -> Path:
    return tmp_path / "made" / "if-need-be.lock"


@contextmanager
def held_by_another(lock: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that holds the lock; killed at the latest when the block ends."""
    with subprocess.Popen([sys.executable, "-c", HOLDER, str(lock)], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "held\n"
            yield process
        finally:
            process.kill()


def test_a_free_lock_is_taken_at_once_and_names_its_holder(lock: Path) -> None:
    waits: list[str] = []
    for _ in range(2):
        with owned(lock, 0, lambda: waits.append("wait")):
            assert lock.read_text() == f"{os.getpid()}\n"
    assert waits == []


def test_whoever_waits_too_long_is_told_who_holds_it(lock: Path) -> None:
    with (
        held_by_another(lock) as process,
        pytest.raises(GraphBusy, match=rf"process {process.pid} holds if-need-be\.lock"),
        owned(lock, 0),
    ):
        pytest.fail("two hold it")


@pytest.mark.parametrize("wait_seconds", [WAIT_S, None])
def test_the_lock_of_a_killed_holder_goes_to_who_waits_and_the_wait_is_told_once(
    lock: Path, wait_seconds: float | None
) -> None:
    waits: list[int] = []
    with held_by_another(lock) as process:

        def kill() -> None:
            waits.append(process.pid)
            process.kill()

        with owned(lock, wait_seconds, kill):
            assert lock.read_text() == f"{os.getpid()}\n"
        assert waits == [process.pid]


def test_a_holder_names_its_socket_and_takes_the_name_back(lock: Path) -> None:
    assert holder(lock) is None
    with owned(lock) as held:
        assert holder(lock) == Holder(os.getpid(), None)
        held.name_socket(Path("/a path/with spaces.sock"))
        assert holder(lock) == Holder(os.getpid(), Path("/a path/with spaces.sock"))
        held.name_socket(None)
        assert holder(lock) == Holder(os.getpid(), None)


def test_the_socket_of_a_killed_holder_is_forgotten_by_the_next(lock: Path) -> None:
    with held_by_another(lock):
        pass
    lock.write_text("4711\n/left/behind.sock\n")
    assert holder(lock) == Holder(4711, Path("/left/behind.sock"))
    with owned(lock, 0):
        assert holder(lock) == Holder(os.getpid(), None)


@pytest.mark.parametrize("content", [b"", b"\n", b"x\n", b"\xff\n", b"\x00\x00"])
def test_a_lock_file_that_names_nobody_has_no_holder(lock: Path, content: bytes) -> None:
    lock.parent.mkdir(parents=True)
    lock.write_bytes(content)
    assert holder(lock) is None


def test_threads_of_one_process_exclude_each_other(lock: Path) -> None:
    order: list[str] = []
    waiting = threading.Event()

    def second() -> None:
        with owned(lock, None, waiting.set):
            order.append("second")

    thread = threading.Thread(target=second)
    with owned(lock):
        thread.start()
        assert waiting.wait(WAIT_S)
        order.append("first")
    thread.join(WAIT_S)
    assert order == ["first", "second"]


def test_an_error_under_the_lock_frees_it(lock: Path) -> None:
    with pytest.raises(ValueError, match="inside"), owned(lock):
        raise ValueError("inside")
    with owned(lock, 0):
        pass


def test_it_imports_nothing_but_the_errors_and_the_standard_library() -> None:
    script = "import sys; old = set(sys.modules); import forktrail_projectors.lock; print(*set(sys.modules) - old)"
    answer = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    packages = {name.partition(".")[0] for name in answer.stdout.split()}
    assert packages - sys.stdlib_module_names == {"forktrail_projectors", "forktrail_schemas"}
