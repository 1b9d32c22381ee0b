"""Processes of a chaos run: each is started again whenever it ends, and how it ended is kept."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

TESTS_FOLDER = Path(__file__).parents[1]
RESTART_SECONDS = 0.3
END_SECONDS = 60.0
_LAST_WORDS = 2_000


@dataclass(frozen=True)
class Exit:
    """How a process ended that nobody had killed or stopped.

    Attributes:
        code: its exit code, negative for a signal.
        last_words: the end of what it wrote to stderr.
    """

    name: str
    code: int
    last_words: str


class Child:
    """One process, in several lives; stdout and stderr are appended to files.

    Attributes:
        environment: what it sees of the environment.
        lives: how often it was started.
        exits: how it ended by itself.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        environment: Mapping[str, str],
        folder: Path,
        *,
        may_finish: bool = False,
    ) -> None:
        """Say what to start.

        Args:
            environment: added to this process's own.
            folder: takes the files.
            may_finish: whether an end with exit code 0 is the end of its work.
        """
        self.name = name
        self.environment = {**os.environ, "PYTHONPATH": search_path(), **environment}
        self.out = folder / f"{name}.out"
        self.err = folder / f"{name}.err"
        self.lives = 0
        self.exits: list[Exit] = []
        self._command = list(command)
        self._may_finish = may_finish
        self._process: subprocess.Popen[bytes] | None = None
        self._out_from = self._err_from = 0
        self._ended_at = 0.0

    @property
    def process_id(self) -> int | None:
        """Of its process, if it runs."""
        return self._process.pid if self._process is not None and self.runs else None

    @property
    def runs(self) -> bool:
        """Whether its process runs."""
        return self._process is not None and self._process.poll() is None

    @property
    def done(self) -> bool:
        """Whether its work is finished."""
        return self._may_finish and self._process is not None and self._process.poll() == 0

    @property
    def said(self) -> str:
        """What it wrote to stdout in this life."""
        return _read(self.out, self._out_from)

    @property
    def warned(self) -> str:
        """What it wrote to stderr in this life."""
        return _read(self.err, self._err_from)

    def start(self) -> None:
        """Begin a new life."""
        assert not self.runs
        with self.out.open("ab") as out, self.err.open("ab") as err:
            self._out_from, self._err_from = out.tell(), err.tell()
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.DEVNULL, stdout=out, stderr=err, env=self.environment
            )
        self.lives += 1

    def tend(self) -> None:
        """Start it again, a moment after it ended by itself."""
        if self._process is None or self._process.poll() is None or self.done:
            return
        if not self._ended_at:
            self._ended_at = time.monotonic()
            self.exits.append(Exit(self.name, self._process.returncode, self.warned[-_LAST_WORDS:].strip()))
        elif time.monotonic() - self._ended_at > RESTART_SECONDS:
            self._ended_at = 0.0
            self.start()

    def kill(self) -> bool:
        """SIGKILL it and wait until it is gone; False if it had ended by itself."""
        assert self._process is not None
        self._process.send_signal(signal.SIGKILL)
        killed = self._process.wait() == -signal.SIGKILL
        if killed:
            self._process = None
        return killed

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal."""
        assert self._process is not None
        self._process.send_signal(number)

    def wait(self, seconds: float = END_SECONDS) -> int:
        """Wait for it to end; returns its exit code, which isn't kept among `exits`.

        Raises:
            subprocess.TimeoutExpired: it didn't.
        """
        assert self._process is not None
        code = self._process.wait(seconds)
        self._process = None
        return code

    def close(self) -> None:
        """End it, however."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


def search_path() -> str:
    """The PYTHONPATH of a process that imports this package."""
    return os.pathsep.join(filter(None, [str(TESTS_FOLDER), os.environ.get("PYTHONPATH")]))


def _read(path: Path, start: int) -> str:
    with path.open("rb") as file:
        file.seek(start)
        return file.read().decode(errors="replace")
