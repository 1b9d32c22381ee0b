"""The broker's lock tells what it waits for, and only if it has to."""

from __future__ import annotations

import threading
from pathlib import Path

from forktrail_lab.broker.lock import exclusive

WAIT_S = 20.0


def test_a_wait_is_reported_once_with_what_the_other_does(tmp_path: Path) -> None:
    lock = tmp_path / "kafka" / "lock"
    lines: list[str] = []
    reported = threading.Event()

    def report(line: str) -> None:
        lines.append(line)
        reported.set()

    def wait() -> None:
        with exclusive(lock, "baking bread", report):
            pass

    waiting = threading.Thread(target=wait)
    with exclusive(lock, "baking bread", lines.append):
        waiting.start()
        assert reported.wait(WAIT_S)
    waiting.join(WAIT_S)
    assert not waiting.is_alive()
    assert lines == ["waiting for another process, which is baking bread"]
