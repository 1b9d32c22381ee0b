"""Two processes at once, each with a home and graph of its own, so that only the log stands between them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from forktrail_lab.registry.file import shipped_registry_path
from forktrail_schemas.settings import Settings
from support.command_line import CommandLine
from support.staff import GATEWAY


def started(settings: Settings, home: Path, *words: str) -> subprocess.Popen[str]:
    environ = {"FORKTRAIL_HOME": str(home), "FORKTRAIL_BOOTSTRAP_SERVERS": settings.bootstrap_servers}
    return subprocess.Popen(
        [sys.executable, "-m", "forktrail_lab", *words],
        env={**os.environ, **environ},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.fixture
def homes(settings: Settings, run: str, forktrail: CommandLine, tmp_path: Path) -> list[Path]:
    """Two machines' homes with the same keys; no graph yet on either."""
    forktrail.ok("key", "new", "omar")
    forktrail.ok("key", "register", run, "omar", "--role", "operator")
    for name in ("one", "two"):
        shutil.copytree(settings.keys_dir, tmp_path / name / "keys")
    return [tmp_path / "one", tmp_path / "two"]


@pytest.mark.parametrize("decisions", [("approve", "approve"), ("approve", "deny")])
def test_of_two_racing_decisions_the_first_on_the_log_stands_and_the_other_is_told(
    settings: Settings, run: str, forktrail: CommandLine, homes: list[Path], decisions: tuple[str, str]
) -> None:
    case = forktrail.ok("report", run, GATEWAY, "--summary", "s", "--as", "rita", "--format", "json").json["case_id"]
    racers = [
        started(settings, home, decision, run, case, "--key", key)
        for home, decision, key in zip(homes, decisions, ("olga", "omar"), strict=True)
    ]
    ended = [(racer.communicate(timeout=60), racer.returncode) for racer in racers]
    assert sorted(code for _, code in ended) == [0, 1], ended
    loser = next(err for (_, err), code in ended if code == 1)
    assert "already_decided" in loser
    rows = forktrail.ok("query", run, "MATCH (a:Approval) RETURN a.decision AS decision", "--json").json
    winner = next(decision for decision, (_, code) in zip(decisions, ended, strict=True) if code == 0)
    assert [row["decision"] for row in rows] == [winner]


def test_of_two_racing_openings_of_one_run_one_wins_and_nothing_is_registered_twice(
    settings: Settings, forktrail: CommandLine, homes: list[Path]
) -> None:
    words = ("run", "open", "--run", f"raced-{os.getpid()}", "--registry", str(shipped_registry_path()), "--goal", "g")
    racers = [started(settings, home, *words) for home in homes]
    ended = [(racer.communicate(timeout=60), racer.returncode) for racer in racers]
    assert 0 in [code for _, code in ended], ended
    tests = forktrail.ok("query", words[3], "MATCH (t:TestCase) RETURN t.id AS id", "--json").json
    assert len(tests) == 5
    listed = forktrail.ok("run", "list", "--format", "json").out.count(words[3])
    assert listed >= 1
    opened = forktrail.ok(
        "query", words[3], "MATCH (e:Event) WHERE e.verdict = 'valid' RETURN e.type AS type", "--json"
    ).json
    assert [row["type"] for row in opened].count("forktrail.RunOpened") == 1
