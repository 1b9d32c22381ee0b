"""How the command tells what went wrong, whichever command it was."""

from __future__ import annotations

from pathlib import Path

import pytest

from forktrail_lab import cli, entry
from forktrail_lab.broker import room
from forktrail_lab.broker.probe import free_port
from support.command_line import CommandLine


@pytest.fixture
def lonely(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> CommandLine:
    """The command in a home of its own, whose local broker doesn't run."""
    monkeypatch.setenv("FORKTRAIL_HOME", str(tmp_path))
    monkeypatch.delenv("FORKTRAIL_BOOTSTRAP_SERVERS", raising=False)
    monkeypatch.setenv("FORKTRAIL_BROKER_PORT", str(free_port()))
    (tmp_path / "kafka").mkdir()
    return CommandLine(capsys)


def test_where_the_local_brokers_disk_is_full_that_is_said(
    lonely: CommandLine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    said = lonely("run", "list")
    assert (said.code, "MB free" in said.err, "forktrail broker start" in said.err) == (1, False, True)
    monkeypatch.setattr(room, "ROOM_BYTES_MIN", 1 << 60)
    said = lonely("run", "list")
    assert (said.code, said.out, said.err.count("\n")) == (1, "", 1)
    assert said.err.startswith("forktrail run: log_unavailable: ")
    assert f"(the disk of {tmp_path / 'kafka'} has " in said.err
    assert "MB free: make room, then `forktrail broker start`)" in said.err


def test_of_another_kafka_the_disk_is_not_known(lonely: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "ROOM_BYTES_MIN", 1 << 60)
    monkeypatch.setenv("FORKTRAIL_BOOTSTRAP_SERVERS", "127.0.0.1:1")
    said = lonely("run", "list")
    assert (said.code, "MB free" in said.err) == (1, False)


def test_ctrl_c_before_the_command_is_there_is_quiet(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted() -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "main", interrupted)
    assert entry.main() == 130
    assert capsys.readouterr() == ("", "")
