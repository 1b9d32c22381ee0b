"""Starts, recognises, measures and ends one process of this machine."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from forktrail_schemas.errors import BrokerError

POLL_S = 0.05
KILL_WAIT_S = 10.0
# The shell ends at once, so that the process belongs to init and nobody has to reap it. Java takes the encoding of
# file names from LC_ALL, and raises its own limit of open files as far as it may.
_DETACH = 'LOG=$1; shift; LC_ALL=C.UTF-8 "$@" >>"$LOG" 2>&1 </dev/null & echo $!'


def spawn_detached(command: Sequence[str], log_file: Path, folder: Path) -> int:
    """Start a process that outlives this one, in a session of its own; returns its pid.

    Args:
        command: the program, by absolute path, and its arguments.
        log_file: standard output and error are appended to it.
        folder: its working folder.
    """
    started = subprocess.run(
        ["/bin/sh", "-c", _DETACH, "sh", str(log_file), *command],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        cwd=folder,
        start_new_session=True,
    )
    return int(started.stdout)


def birth_mark(pid: int) -> str | None:
    """A text that no other process ever has with this pid; None if there is no such process.

    On Linux it is the id of the boot and the process's start in clock ticks, elsewhere its start in seconds. A
    process that has ended and waits to be reaped counts as gone.
    """
    if pid <= 0:
        return None
    try:
        # The name, in parentheses, may hold anything; state is field 3, number of threads 20, start 22 (proc(5)).
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        # Of a killed process the first thread is a zombie while others still run and hold its ports.
        ended = fields[0] in "ZX" and int(fields[17]) <= 1
        return None if ended else f"{boot}:{fields[19]}"
    except OSError:
        if Path("/proc/self").exists():
            return None
    return _ps("lstart", pid)


def rss_bytes(pid: int) -> int | None:
    """Memory that the process holds; None if that can't be told."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        kibibytes = _ps("rss", pid)
        return int(kibibytes) * 1024 if kibibytes else None
    line = next((line for line in status.splitlines() if line.startswith("VmRSS:")), None)
    return int(line.split()[1]) * 1024 if line else None


def terminate(pid: int, mark: str, grace_s: float) -> bool:
    """End a process with SIGTERM, and with SIGKILL if it still runs after `grace_s` seconds.

    Returns:
        True if it ended by itself.

    Raises:
        BrokerError: it belongs to another user (`not_permitted`), or outlives SIGKILL (`unkillable`).
    """
    for signal_number, wait_s in ((signal.SIGTERM, grace_s), (signal.SIGKILL, KILL_WAIT_S)):
        try:
            if birth_mark(pid) == mark:
                os.kill(pid, signal_number)
        except ProcessLookupError:
            pass
        except PermissionError as error:
            raise BrokerError(f"process {pid} belongs to another user", code="not_permitted") from error
        if _wait_gone(pid, mark, wait_s):
            return signal_number == signal.SIGTERM
    raise BrokerError(f"process {pid} outlives SIGKILL", code="unkillable", hint="its disk may hang")


def _wait_gone(pid: int, mark: str, wait_s: float) -> bool:
    deadline = time.monotonic() + wait_s
    while birth_mark(pid) == mark:
        if time.monotonic() >= deadline:
            return False
        time.sleep(POLL_S)
    return True


def _ps(field: str, pid: int) -> str | None:
    answer = subprocess.run(["/bin/ps", "-o", f"{field}=", "-p", str(pid)], capture_output=True, text=True)
    return answer.stdout.strip() or None
