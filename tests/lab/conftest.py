"""Fixtures of the lab's tests."""

from __future__ import annotations

import pytest

from forktrail_schemas.settings import Settings
from support.command_line import CommandLine
from support.staff import open_staffed_run


@pytest.fixture
def forktrail(settings: Settings, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> CommandLine:
    """The `forktrail` command with a home of the test's own, on the session's Kafka."""
    monkeypatch.setenv("FORKTRAIL_HOME", str(settings.home))
    monkeypatch.setenv("FORKTRAIL_BOOTSTRAP_SERVERS", settings.bootstrap_servers)
    return CommandLine(capsys)


@pytest.fixture
def run(forktrail: CommandLine, settings: Settings) -> str:
    """A run opened with the shipped registry, with keys for olga (operator), ravi (reviewer) and runner-1."""
    return open_staffed_run(forktrail, settings)
