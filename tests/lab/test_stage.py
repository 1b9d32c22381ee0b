"""A stage shows commands that can be pasted, says in one line what broke, and leaves no process behind."""

from __future__ import annotations

import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from forktrail_lab import stage as module
from forktrail_lab.broker.process import birth_mark
from forktrail_lab.exchange.targets import TARGETS_FILE, load_targets
from forktrail_lab.stage import Stage, StoryBroken, pasteable
from forktrail_schemas.settings import Settings

WAIT_S = 20.0
# Stands in for `forktrail`: its first argument is the folder where a lab writes its targets.
FAKE = """
import os, pathlib, signal, sys, time
folder, *words = sys.argv[1:]
match words:
    case ["lab", "serve"]:
        if (pathlib.Path(folder) / "stubborn").exists():
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        print("served once", flush=True)
        if (pathlib.Path(folder) / "broken").exists():
            sys.exit("forktrail lab: no port is left")
        text = '{"format": "forktrail.targets/1", "pid": %d, "targets": {}}' % os.getpid()
        (pathlib.Path(folder) / "targets.json").write_text(text)
        time.sleep(60)
    case ["fail"]:
        print("a result")
        sys.exit("forktrail fail: void: the key may not (ask olga)")
    case ["die"]:
        sys.exit(3)
    case ["both"]:
        for stream, line in ((sys.stderr, "first"), (sys.stdout, "second"), (sys.stderr, "third")):
            print(line, file=stream, flush=True)
    case ["hang"]:
        print("hanging", flush=True)
        time.sleep(60)
"""
# `forktrail demo` with a story of one step, in a lab of the fake program.
DEMO = """
import signal, sys
from forktrail_lab import cli
from forktrail_lab.commands import demo
from forktrail_lab.stage import Stage

def play(settings):
    stage = Stage(settings, sys.argv[2:])
    with stage.lab():
        stage.run(sys.argv[1])

demo.play = play
signal.signal(signal.SIGINT, signal.default_int_handler)  # as in a shell that has a terminal
sys.exit(cli.main(["demo"]))
"""


@pytest.fixture
def settings(home: Path) -> Settings:
    settings = Settings(home=home, bootstrap_servers="127.0.0.1:1", external_kafka=False, graph_engine="ladybug")
    settings.lab_dir.mkdir(parents=True)
    return settings


@pytest.fixture
def program(settings: Settings) -> tuple[str, ...]:
    return (sys.executable, "-c", FAKE, str(settings.lab_dir))


@pytest.fixture
def stage(settings: Settings, program: tuple[str, ...]) -> Stage:
    return Stage(settings, program)


@pytest.fixture
def demo(settings: Settings, program: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Demo]:
    monkeypatch.setenv("FORKTRAIL_HOME", str(settings.home))
    return lambda step: subprocess.Popen(
        [sys.executable, "-c", DEMO, step, *program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


Demo = subprocess.Popen[str]


def lab_pid(settings: Settings) -> int:
    pid = load_targets(settings.lab_dir / TARGETS_FILE).pid
    assert pid is not None
    return pid


class TestRun:
    def test_all_that_a_command_prints_is_shown_and_returned_in_its_order(
        self, stage: Stage, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert stage.run("both") == "first\nsecond\nthird\n"
        assert capsys.readouterr().out == "   $ forktrail both\n     first\n     second\n     third\n"
        assert stage.processes == 1

    def test_hidden_lines_are_returned_all_the_same(self, stage: Stage, capsys: pytest.CaptureFixture[str]) -> None:
        assert stage.run("both", hidden="^(first|third)$") == "first\nsecond\nthird\n"
        assert capsys.readouterr().out == "   $ forktrail both\n     second\n"

    def test_a_command_that_fails_breaks_the_story_with_its_own_words(self, stage: Stage) -> None:
        with pytest.raises(StoryBroken) as raised:
            stage.run("fail")
        assert raised.value.message == "`forktrail fail` ended with exit 1: void: the key may not (ask olga)"

    def test_one_that_says_nothing_breaks_it_too(self, stage: Stage) -> None:
        with pytest.raises(StoryBroken, match="ended with exit 3: it said nothing"):
            stage.run("die")


class TestLab:
    def test_it_serves_for_the_length_of_the_block(self, stage: Stage, settings: Settings) -> None:
        with stage.lab():
            pid = lab_pid(settings)
            assert birth_mark(pid)
        assert birth_mark(pid) is None

    @pytest.mark.parametrize("error", [StoryBroken("x"), KeyboardInterrupt(), ValueError("x")])
    def test_whatever_breaks_the_block_it_is_gone_afterwards(
        self, stage: Stage, settings: Settings, error: BaseException
    ) -> None:
        pids: list[int] = []

        def story() -> None:
            with stage.lab():
                pids.append(lab_pid(settings))
                raise error

        with pytest.raises(type(error)):
            story()
        assert [birth_mark(pid) for pid in pids] == [None]

    def test_one_that_ignores_sigterm_is_killed(
        self, stage: Stage, settings: Settings, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(module, "END_WAIT_SECONDS", 0.1)
        (settings.lab_dir / "stubborn").touch()
        with stage.lab():
            pid = lab_pid(settings)
        assert birth_mark(pid) is None

    def test_one_that_does_not_come_up_breaks_the_story_with_its_last_line(
        self, stage: Stage, settings: Settings
    ) -> None:
        (settings.lab_dir / "broken").touch()
        with pytest.raises(StoryBroken, match="the lab doesn't come up: forktrail lab: no port is left"), stage.lab():
            pytest.fail("it is not up")

    def test_the_targets_of_another_lab_are_not_taken_for_its_own(self, stage: Stage, settings: Settings) -> None:
        stale = '{"format": "forktrail.targets/1", "pid": 1, "targets": {}}'
        (settings.lab_dir / TARGETS_FILE).write_text(stale)
        with stage.lab():
            assert lab_pid(settings) != 1


class TestDemo:
    """The command itself, in a process of its own."""

    def test_a_broken_story_is_one_line_and_exit_1_and_the_lab_is_gone(
        self, demo: Callable[[str], Demo], settings: Settings
    ) -> None:
        with demo("fail") as process:
            _, error = process.communicate(timeout=WAIT_S)
        assert process.returncode == 1
        assert error.count("\n") == 1
        assert error.startswith("forktrail demo: story_broken: `forktrail fail` ended with exit 1: void: the key may")
        assert birth_mark(lab_pid(settings)) is None

    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
    def test_an_interrupted_one_is_one_line_and_its_processes_are_gone(
        self, demo: Callable[[str], Demo], settings: Settings, number: signal.Signals
    ) -> None:
        began = time.monotonic()
        with demo("hang") as process:
            assert process.stdout is not None
            assert [process.stdout.readline().strip() for _ in range(3)][-1] == "hanging"
            process.send_signal(number)
            _, error = process.communicate(timeout=WAIT_S)
        assert process.returncode == 130
        assert error.startswith("forktrail demo: interrupted; ")
        assert error.count("\n") == 1
        assert birth_mark(lab_pid(settings)) is None
        assert time.monotonic() - began < WAIT_S


class TestPasteable:
    def test_a_path_under_the_working_folder_is_relative_to_it(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        words = ["forktrail", "handoff", "run-1", "--output", str(tmp_path / "packets" / "run-1.json")]
        assert pasteable(words) == "forktrail handoff run-1 --output packets/run-1.json"

    def test_another_path_is_absolute(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / "here").mkdir()
        monkeypatch.chdir(tmp_path / "here")
        assert pasteable(["rm", str(tmp_path / "here-not" / "x")]) == f"rm {tmp_path / 'here-not' / 'x'}"

    @pytest.mark.parametrize("word", ["it's", "a b", "$HOME", "RETURN 'r1'", 'say "r1"', "*", "", "a\\b"])
    def test_the_shell_reads_the_words_as_they_were(self, word: str) -> None:
        assert shlex.split(pasteable(["forktrail", word])) == ["forktrail", word]

    def test_deleting_is_shown_as_a_line_of_shell(
        self, stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.chdir(tmp_path)
        files = [tmp_path / "a graph", tmp_path / "a graph.wal"]
        for file in files:
            file.touch()
        stage.delete(files)
        assert capsys.readouterr().out == "   $ rm 'a graph' 'a graph.wal'\n"
        assert not any(file.exists() for file in files)
