"""The guard stops what a replay couldn't repeat, in the thread that it is on in, and changes nothing else."""

from __future__ import annotations

import datetime
import importlib
import logging
import os
import random
import secrets
import socket
import subprocess
import sys
import tempfile
import threading
import time
import uuid
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from forktrail_behaviors.determinism import guard
from forktrail_behaviors.determinism.guard import NondeterministicCall


@pytest.fixture(autouse=True)
def installed() -> Iterator[None]:
    guard.install()
    yield
    guard.uninstall()


FORBIDDEN: dict[str, Callable[[], object]] = {
    "time.time": lambda: time.time(),
    "time.time_ns": lambda: time.time_ns(),
    "time.monotonic": lambda: time.monotonic(),
    "time.perf_counter": lambda: time.perf_counter(),
    "time.sleep": lambda: time.sleep(0),
    "time.gmtime": lambda: time.gmtime(),
    "time.localtime": lambda: time.localtime(0),
    "time.strftime": lambda: time.strftime("%Y"),
    "time.time by way of today": lambda: datetime.date.today(),
    "random.random": lambda: random.random(),
    "random.choice": lambda: random.choice([1]),
    "random.shuffle": lambda: random.shuffle([1]),
    "random.Random() without a seed": lambda: random.Random(),
    "random.Random() without a seed, said": lambda: random.Random(None),
    "random.SystemRandom": lambda: random.SystemRandom().random(),
    "random.SystemRandom by way of secrets": lambda: secrets.token_hex(),
    "os.urandom": lambda: os.urandom(1),
    "uuid.uuid1": lambda: uuid.uuid1(),
    "uuid.uuid4": lambda: uuid.uuid4(),
    "os.environ": lambda: os.environ["PATH"],
    "os.environ by getenv": lambda: os.getenv("PATH"),
    "os.environ by in": lambda: "PATH" in os.environ,
    "os.environ whole": lambda: dict(os.environ),
    "os.getcwd": lambda: os.getcwd(),  # noqa: PTH109
    "open": lambda: open(__file__),  # noqa: PTH123, SIM115
    "open by path": lambda: Path(__file__).read_text(),
    "open by number": lambda: os.open(__file__, os.O_RDONLY),
    "os.listdir": lambda: os.listdir("."),  # noqa: PTH208
    "os.scandir by path": lambda: list(Path().iterdir()),
    "os.stat by exists": lambda: Path("never-there").exists(),
    "os.stat by getmtime": lambda: os.path.getmtime(__file__),  # noqa: PTH204
    "os.access": lambda: os.access(".", os.R_OK),
    "uuid.getnode": lambda: uuid.getnode(),
    "os.remove": lambda: Path("never-there").unlink(),
    "tempfile.mkdtemp": lambda: tempfile.mkdtemp(),
    "socket": lambda: socket.socket(),
    "subprocess.Popen": lambda: subprocess.run(["true"], check=False),
    "os.system": lambda: os.system("true"),
    "threading.Thread": lambda: threading.Thread(target=print).start(),
}


@pytest.mark.parametrize("name", FORBIDDEN)
def test_what_differs_in_a_replay_is_stopped_and_named(name: str) -> None:
    with guard.armed(), pytest.raises(NondeterministicCall) as stopped:
        FORBIDDEN[name]()
    if not name.startswith(("tempfile", "os.listdir", "os.scandir")):  # some ask something else first
        assert name.split(" ")[0].split("(")[0] in stopped.value.message
    assert stopped.value.hint


HARMLESS: dict[str, Callable[[], object]] = {
    "a seeded generator": lambda: random.Random(3).random(),
    "one that is seeded again": lambda: random.Random(3).seed("x"),
    "a time that is given": lambda: time.gmtime(0),
    "a time that is given, as text": lambda: time.strftime("%Y", (2020, 1, 1, 0, 0, 0, 0, 1, 0)),
    "an id that follows from its name": lambda: uuid.uuid5(uuid.NAMESPACE_URL, "x"),
    "a line for the log": lambda: logging.getLogger("test").warning("%s", "said"),
    "a warning": lambda: warnings.warn("said", stacklevel=1),
}


@pytest.mark.filterwarnings("default:said")
@pytest.mark.parametrize("name", HARMLESS)
def test_what_is_the_same_in_a_replay_goes_on(name: str) -> None:
    with guard.armed():
        HARMLESS[name]()


def test_an_import_goes_on_whatever_it_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "late_module_of_guard_test.py").write_text("import time\nAT = time.time()\n")
    monkeypatch.syspath_prepend(tmp_path)
    importlib.invalidate_caches()
    with guard.armed():
        module = importlib.import_module("late_module_of_guard_test")
    assert module.AT > 0
    sys.modules.pop("late_module_of_guard_test")


def test_other_threads_go_on() -> None:
    seen: list[float] = []
    ready, go, done = threading.Event(), threading.Event(), threading.Event()

    def other() -> None:
        ready.set()
        go.wait()
        seen.append(time.time() + random.random() + len(os.environ))
        done.set()

    thread = threading.Thread(target=other)
    thread.start()
    ready.wait()
    with guard.armed():
        go.set()
        done.wait()
    thread.join()
    assert seen[0] > 0


def test_it_is_off_again_after_an_error_and_without_install() -> None:
    with pytest.raises(ValueError, match="of its own"), guard.armed():
        raise ValueError("of its own")
    assert time.time() > 0
    guard.uninstall()
    with guard.armed():
        assert time.time() > 0
        assert Path(__file__).is_file()
        assert Path(__file__).read_text()


def test_the_library_is_as_it_was_once_the_guard_is_out() -> None:
    guard.install()  # again: nothing is wrapped twice
    assert time.time.__wrapped__ is not None  # type: ignore[attr-defined]  # made by the guard
    assert not hasattr(time.time.__wrapped__, "__wrapped__")  # type: ignore[attr-defined]  # as above
    guard.uninstall()
    for owner, name in ((time, "time"), (random, "random"), (random.Random, "seed"), (os, "urandom"), (uuid, "uuid4")):
        assert not hasattr(getattr(owner, name), "__wrapped__")
