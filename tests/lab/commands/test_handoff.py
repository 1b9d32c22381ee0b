"""`forktrail handoff verify` on what is no packet's file: refused at once, never waited for. No broker."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from forktrail_lab.commands.handoff import PACKET_BYTES_MAX
from support.command_line import CommandLine

HANGS_SECONDS = 30


@pytest.fixture
def forktrail(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> CommandLine:
    monkeypatch.setenv("FORKTRAIL_HOME", str(tmp_path / "home"))
    return CommandLine(capsys)


def refused(file: Path, home: Path) -> str:
    """What `handoff verify` says in a process of its own, which is killed where it hangs."""
    done = subprocess.run(
        [sys.executable, "-m", "forktrail_lab", "handoff", "verify", str(file)],
        env={**os.environ, "FORKTRAIL_HOME": str(home)},
        capture_output=True,
        text=True,
        timeout=HANGS_SECONDS,
    )
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done.stderr
    return done.stderr


def test_a_fifo_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    assert "is not a regular file" in refused(tmp_path / "fifo", tmp_path)


def test_a_device_is_refused_and_not_read_without_end(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/dev/null")
    for device in (Path("/dev/null"), tmp_path / "link"):
        assert "is not a regular file" in refused(device, tmp_path)


def test_a_folder_is_refused(tmp_path: Path, forktrail: CommandLine) -> None:
    assert forktrail("handoff", "verify", str(tmp_path)).code == 2


def test_a_socket_is_refused(tmp_path: Path, forktrail: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # a socket's path must be short
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("socket")
        assert forktrail("handoff", "verify", "socket").code == 2


@pytest.mark.parametrize(("beyond", "said"), [(0, "not a"), (1, f"is larger than {PACKET_BYTES_MAX:,} bytes")])
def test_a_file_past_the_bound_is_refused_unread(
    tmp_path: Path, forktrail: CommandLine, beyond: int, said: str
) -> None:
    file = tmp_path / "packet.json"
    with file.open("wb") as sparse:
        sparse.truncate(PACKET_BYTES_MAX + beyond)
    done = forktrail("handoff", "verify", str(file))
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert said in done.err
