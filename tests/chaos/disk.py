"""A disk that fills up, and has room again: a small tmpfs, or where that can't be mounted, a limit on file sizes."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

TMPFS_BYTES = 128 << 20
_BALLAST = "ballast"
_LIMITED = (
    "import os, resource, sys; n = int(sys.argv[1]); "
    "resource.setrlimit(resource.RLIMIT_FSIZE, (n, n)); os.execv(sys.argv[2], sys.argv[2:])"
)


class Disk(Protocol):
    """Where a projector's home lies.

    Attributes:
        description: what stands in for a full disk, in words.
    """

    description: str

    def fill(self, room_bytes: int) -> None:
        """Leave so little room."""
        ...

    def command(self, command: Sequence[str]) -> list[str]:
        """The command to start, so that it meets the full disk."""
        ...

    def make_room(self) -> None:
        """Have room again."""
        ...

    def close(self) -> None:
        """Let go of it."""
        ...


class Tmpfs:
    """A small file system of its own."""

    description = f"a tmpfs of {TMPFS_BYTES >> 20} MB"

    def __init__(self, home: Path) -> None:
        """Mount it at `home`.

        Raises:
            OSError: that isn't permitted.
        """
        home.mkdir(parents=True)
        command = ["mount", "-t", "tmpfs", "-o", f"size={TMPFS_BYTES}", "none", str(home)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            home.rmdir()
            raise OSError(done.stderr.strip())
        self._home = home

    def fill(self, room_bytes: int) -> None:
        """Put a file there that takes the rest."""
        free = shutil.disk_usage(self._home).free
        with (self._home / _BALLAST).open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, max(1, free - room_bytes))

    def command(self, command: Sequence[str]) -> list[str]:
        """The command as it is."""
        return list(command)

    def make_room(self) -> None:
        """Remove that file."""
        (self._home / _BALLAST).unlink()

    def close(self) -> None:
        """Keep what is there, and unmount it."""
        kept = self._home.with_name(f"{self._home.name}.kept")
        shutil.copytree(self._home, kept, ignore=shutil.ignore_patterns("*.sock"))
        subprocess.run(["umount", str(self._home)], check=True)


class FileLimit:
    """A limit on the size that a process may give a file; writing past it fails as on a full disk, with EFBIG."""

    description = "a limit on the size of files (RLIMIT_FSIZE), since no tmpfs may be mounted"

    def __init__(self, home: Path) -> None:
        self._home = home
        self._limit = 0

    def fill(self, room_bytes: int) -> None:
        """Let the graph's write-ahead log, which every commit goes to first, grow by no more than that."""
        self._limit = sum(log.stat().st_size for log in self._home.rglob("*.wal")) + room_bytes

    def command(self, command: Sequence[str]) -> list[str]:
        """The command under the limit."""
        return [sys.executable, "-c", _LIMITED, str(self._limit), *command]

    def make_room(self) -> None:
        """Nothing: the limit ends with the process."""

    def close(self) -> None:
        """Nothing."""


def small_disk(home: Path) -> Disk:
    """A disk for a home that isn't there yet."""
    try:
        return Tmpfs(home)
    except OSError:
        return FileLimit(home)
