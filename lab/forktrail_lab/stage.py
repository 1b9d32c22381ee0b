"""Plays commands as processes of their own, as a person would type them, and shows what they print."""

from __future__ import annotations

import io
import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from forktrail_lab.exchange.targets import TARGETS_FILE, load_targets
from forktrail_schemas.errors import ExitCode, ForktrailError
from forktrail_schemas.settings import Settings

FORKTRAIL = (sys.executable, "-m", "forktrail_lab")
LAB_WAIT_SECONDS = 20.0
END_WAIT_SECONDS = 10.0
_POLL_SECONDS = 0.05


class StoryBroken(ForktrailError):
    """A step of the story came out otherwise than it says."""

    code = "story_broken"


class Stage:
    """Runs commands as processes, and shows each as a line that does the same where it is pasted into a shell.

    Attributes:
        settings: the story's settings; the processes have theirs from the same environment.
        processes: how many were started.
    """

    def __init__(self, settings: Settings, program: Sequence[str] = FORKTRAIL) -> None:
        self.settings = settings
        self.processes = 0
        self._program = program
        self._environ: dict[str, str] = {}

    def chapter(self, title: str) -> None:
        """Print a heading."""
        print(f"\n== {title}", flush=True)

    def tell(self, line: str) -> None:
        """Print what a step showed."""
        print(f"   => {line}", flush=True)

    def run(self, *words: str, hidden: str = "(?!)") -> str:
        """Run a command, show it and each line that it prints as it comes, and return all it printed, stderr's too.

        Args:
            hidden: a pattern; lines in which it is found are not shown.

        Raises:
            StoryBroken: it ended with another exit code than 0.
        """
        self._show(pasteable(["forktrail", *words]))
        lines = []
        # In one stream, for the lines to be in the order in which a terminal would have them.
        with _started([*self._program, *words], subprocess.PIPE, self._environ) as process:
            self.processes += 1
            for line in io.TextIOWrapper(process.stdout or io.BytesIO(), errors="replace"):
                lines.append(line)
                if not re.search(hidden, line):
                    print(f"     {line.rstrip()}", flush=True)
            process.wait()
        if process.returncode != ExitCode.OK:
            last = (lines or ["it said nothing"])[-1].strip().removeprefix(f"forktrail {words[0]}: ")
            raise StoryBroken(f"`forktrail {words[0]}` ended with exit {process.returncode}: {last}")
        return "".join(lines)

    def export(self, name: str, value: str) -> None:
        """Set an environment variable for the commands that follow, shown as a shell would be told to."""
        self._show(f"export {name}={pasteable([value])}")
        self._environ[name] = value

    def delete(self, paths: Sequence[Path]) -> None:
        """Delete files, shown as a shell would be told to."""
        self._show(pasteable(["rm", *map(str, paths)]))
        for path in paths:
            path.unlink()

    @contextmanager
    def lab(self) -> Iterator[None]:
        """Keep `forktrail lab serve` running for the length of a `with` block, however the block ends.

        Raises:
            StoryBroken: it doesn't come up.
        """
        log = self.settings.lab_dir / "lab.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        self._show(f"{pasteable(['forktrail', 'lab', 'serve'])} >{pasteable([str(log)])} 2>&1 &")
        with log.open("wb") as output, _started([*self._program, "lab", "serve"], output, self._environ) as process:
            self.processes += 1
            _await_targets(self.settings.lab_dir / TARGETS_FILE, process, log)
            yield

    def _show(self, line: str) -> None:
        print(f"   $ {line}", flush=True)


def pasteable(words: Sequence[str]) -> str:
    """The words as a line of shell; paths under the working folder are relative to it."""
    return shlex.join([_seen_from(Path.cwd(), word) for word in words])


def _seen_from(folder: Path, word: str) -> str:
    path = Path(word)
    return str(path.relative_to(folder)) if path.is_absolute() and path.is_relative_to(folder) else word


@contextmanager
def _started(
    command: Sequence[str], output: IO[bytes] | int, environ: Mapping[str, str]
) -> Iterator[subprocess.Popen[bytes]]:
    """A process that is gone when the block ends, however it ends: by itself, with SIGTERM, or at last with SIGKILL.

    Args:
        output: takes all that it prints, on stdout and stderr.
        environ: what its environment has beside this process's own.
    """
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, env=os.environ | environ
    ) as process:
        try:
            yield process
        finally:
            _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    try:
        if process.poll() is None:
            process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(END_WAIT_SECONDS)
    finally:
        if process.poll() is None:
            process.kill()


def _await_targets(path: Path, process: subprocess.Popen[bytes], log: Path) -> None:
    """Wait until the targets file names this lab; another's may lie there until then."""
    deadline = time.monotonic() + LAB_WAIT_SECONDS
    while not _names(path, process.pid):
        if process.poll() is not None or time.monotonic() > deadline:
            last = (log.read_text(errors="replace").strip() or "it said nothing").splitlines()[-1]
            raise StoryBroken(f"the lab doesn't come up: {last}")
        time.sleep(_POLL_SECONDS)


def _names(path: Path, pid: int) -> bool:
    try:
        return load_targets(path).pid == pid
    except ForktrailError:
        return False
