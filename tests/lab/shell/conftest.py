"""Fixtures of the shell's tests."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from support.shell import Shell, story_shell


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    """A shell on a run that has just been opened, in memory."""
    made = story_shell(tmp_path)
    yield made
    made.source.close()


@pytest.fixture
def ctrl_c() -> Iterator[Callable[[], None]]:
    """Presses Ctrl-C once the test's main thread waits, about a tenth of a second after it is called."""
    timers: list[threading.Timer] = []

    def press() -> None:
        timer = threading.Timer(0.1, signal.raise_signal, [signal.SIGINT])
        timers.append(timer)
        timer.start()

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield press
    for timer in timers:
        timer.join()
    signal.signal(signal.SIGINT, before)
