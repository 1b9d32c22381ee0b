"""The demo plays the whole evidence story on a real log, in lines that can be pasted."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from forktrail_lab import demo
from forktrail_lab.cli import command_parser, load_command
from forktrail_lab.exchange.targets import TARGETS_FILE
from forktrail_schemas.settings import Settings

TOLD = (
    "3 candidates, invoice-tenant-boundary chosen, on 1 finding",
    "3 candidates, invoice-chain chosen, on 2 findings",
    "2 candidates, export-scope chosen, on 1 finding",
    "1 candidate, audit-trail-read chosen, on 1 finding",
    "0 eligible",
    "15 finding, capability, test and asset nodes",
    "4 tests would lose support",
    "support missing: cross-tenant-invoice-read, internal-route-access",
    "the same state digest from the graph that grew step by step, and from the log alone",
)


@dataclass(frozen=True)
class Played:
    """A demo that was played in a folder: what it printed, and the words of each shell line in it."""

    folder: Path
    text: str

    @property
    def lines(self) -> list[list[str]]:
        return [shlex.split(line) for line in re.findall(r"^   \$ (.*?)(?: >.*)?$", self.text, re.M)]

    @property
    def next_steps(self) -> list[list[str]]:
        return [shlex.split(line) for line in self.text.partition("is left to explore:\n")[2].splitlines()]


@pytest.fixture(scope="module")
def played(kafka: str, tmp_path_factory: pytest.TempPathFactory) -> Played:
    folder = tmp_path_factory.mktemp("a folder")
    environ: Mapping[str, str] = os.environ | {"FORKTRAIL_HOME": "", "FORKTRAIL_BOOTSTRAP_SERVERS": kafka}
    done = subprocess.run(
        [sys.executable, "-m", "forktrail_lab", "demo"], cwd=folder, env=environ, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stdout[-2000:]
    return Played(folder, done.stdout)


class TestPlayed:
    def test_it_tells_the_story(self, played: Played) -> None:
        told = re.findall(r"^   => (.*)$", played.text, re.M)
        assert [line for line in told if "packet_sha256" not in line] == list(TOLD)
        assert len(told) == len(TOLD) + 1

    def test_every_command_shown_is_understood_where_it_is_pasted(self, played: Played) -> None:
        commands = [words[1:] for words in played.lines + played.next_steps if words[0] == "forktrail"]
        assert len(commands) > 30
        for name, *rest in commands:
            command_parser(name, load_command(name)).parse_args(rest)
        assert {words[0] for words in played.lines} == {"forktrail", "rm"}

    def test_the_files_named_are_relative_to_the_folder_and_exist(self, played: Played) -> None:
        assert str(played.folder) not in played.text
        (packet,) = {words[-1] for words in played.lines if words[1:3] == ["handoff", "verify"]}
        assert (played.folder / packet).is_file()
        (removed,) = (words[1:] for words in played.lines if words[0] == "rm")
        assert all((played.folder / file).parent.name == "graphs" for file in removed)
        assert (played.folder / removed[0]).is_file(), "it was rebuilt"

    def test_no_lab_is_left(self, played: Played) -> None:
        lab = played.folder / ".forktrail" / "lab"
        assert (lab / "lab.log").read_text().splitlines()[-1] == "stopped"
        assert not (lab / TARGETS_FILE).exists()

    def test_a_kafka_that_is_not_ours_is_neither_started_nor_offered_to_be_stopped(self, played: Played) -> None:
        assert [words for words in played.lines + played.next_steps if words[1] == "broker"] == []


def settings_of(home: Path, *, external_kafka: bool = False) -> Settings:
    return Settings(home=home, bootstrap_servers="127.0.0.1:1", external_kafka=external_kafka, graph_engine="ladybug")


@pytest.mark.parametrize("engine", ["graph", "ladybug", "kuzu"])
def test_the_graph_deleted_is_the_database_of_any_engine_and_nothing_else(home: Path, engine: str) -> None:
    settings = settings_of(home)
    settings.graphs_dir.mkdir(parents=True)
    deleted = [f"run-1.{engine}", f"run-1.{engine}.shadow", f"run-1.{engine}.wal"]
    kept = ["run-1.lock", "run-1.aside-17", "run-1.aside-17.wal", f"run-12.{engine}", f"run-2.{engine}"]
    for name in deleted + kept:
        (settings.graphs_dir / name).touch()
    assert [path.name for path in demo._graph_files(settings, "run-1")] == deleted


class TestNextSteps:
    @pytest.fixture(autouse=True)
    def environment(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / "bin").mkdir()
        (tmp_path / "bin" / "activate").touch()
        monkeypatch.setattr(sys, "executable", str(tmp_path / "bin" / "python"))
        monkeypatch.setenv("PATH", str(tmp_path / "bin"))

    def test_a_shell_that_does_not_know_forktrail_is_told_how_to(self, home: Path, tmp_path: Path) -> None:
        first, *rest = demo._next_steps(settings_of(home), "run-1")
        assert first == [".", str(tmp_path / "bin" / "activate")]
        assert {words[0] for words in rest} == {"forktrail"}

    def test_one_that_knows_it_is_not(self, home: Path, tmp_path: Path) -> None:
        (tmp_path / "bin" / "forktrail").touch(mode=0o755)
        assert {words[0] for words in demo._next_steps(settings_of(home), "run-1")} == {"forktrail"}

    def test_the_broker_can_be_stopped_only_if_it_is_ours(self, home: Path) -> None:
        stop = ["forktrail", "broker", "stop"]
        assert demo._next_steps(settings_of(home), "run-1")[-1] == stop
        assert stop not in demo._next_steps(settings_of(home, external_kafka=True), "run-1")
