"""`forktrail demo diligence` as a user calls it, on a real log."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from forktrail_lab.cli import command_parser, load_command
from forktrail_lab.diligence.tools import SHIPPED_DOCUMENTS
from support.command_line import CommandLine
from support.diligence import derived

SECOND = Path(__file__).parent / "diligence" / "second"


def demo(folder: Path, kafka: str, *words: str) -> subprocess.CompletedProcess[str]:
    """Call it in a folder, as a process of its own."""
    environ = os.environ | {"FORKTRAIL_HOME": "", "FORKTRAIL_BOOTSTRAP_SERVERS": kafka, "FORKTRAIL_DOCUMENTS": ""}
    command = [sys.executable, "-m", "forktrail_lab", "demo", "diligence", *words]
    return subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True)


def shown(text: str) -> list[list[str]]:
    return [shlex.split(line) for line in re.findall(r"^   \$ (.*)$", text, re.M)]


def test_it_prints_what_the_issue_says_as_json_alone_on_stdout(tmp_path: Path, kafka: str) -> None:
    done = demo(tmp_path, kafka, "--format", "json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    run, memos = told.pop("run"), told.pop("memos")
    assert told == derived(SHIPPED_DOCUMENTS) | {"unsupported": 0}
    assert memos == {"Brindlecote Foods": 7, "Harrowmere Robotics": 9, "Lumenfeld Energy": 9}
    assert re.search(r"divergences +0$", done.stderr, re.M)
    assert re.search(r"holds +true$", done.stderr, re.M)
    lines = shown(done.stderr)
    for _, name, *rest in lines:
        command_parser(name, load_command(name)).parse_args(rest)
    assert any(run in words for words in lines)


def test_other_companies_and_documents_can_be_asked_about(tmp_path: Path, kafka: str) -> None:
    folder = tmp_path / "papers"
    folder.mkdir()
    for path in SECOND.glob("quillhaven-*.txt"):
        shutil.copy(path, folder)
    done = demo(tmp_path, kafka, "--companies", "Quillhaven Paper", "--documents", "papers")
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr
    told = dict(re.findall(r"^(\w+(?: calls)?) +(\d+)$", done.stdout.partition("== What it came to")[2], re.M))
    assert {name: int(count) for name, count in told.items()} == derived(folder) | {"unsupported": 0}
    assert ["export", "FORKTRAIL_DOCUMENTS=papers"] in shown(done.stdout)
    steps = [shlex.split(line) for line in done.stdout.partition("is left to explore:\n")[2].splitlines()]
    assert len(steps) == 4
    environ = os.environ | {"FORKTRAIL_HOME": "", "FORKTRAIL_BOOTSTRAP_SERVERS": kafka}
    for words in steps:
        again = subprocess.run(
            [sys.executable, "-m", "forktrail_lab", *words[1:]],
            cwd=tmp_path,
            env=environ,
            capture_output=True,
            text=True,
        )
        assert again.returncode == 0, again.stderr
        assert again.stdout.strip()


def test_a_provider_that_does_not_answer_ends_it_with_what_to_look_at(tmp_path: Path, kafka: str) -> None:
    models = tmp_path / "models.toml"
    models.write_text(
        '[models.analyst]\nprovider = "openai"\nbase_url = "http://127.0.0.1:9"\nmodel = "none"\nattempts = 1\n'
    )
    done = demo(tmp_path, kafka, "--companies", "Lumenfeld Energy", "--models", str(models))
    assert done.returncode == 1
    assert "memos were written on 0 of 1 companies" in done.stderr
    assert "forktrail executions list" in done.stderr


@pytest.mark.parametrize("option", [["--companies", "A"], ["--documents", "."], ["--format", "json"]])
def test_its_options_are_refused_for_the_other_story(forktrail: CommandLine, option: list[str]) -> None:
    said = forktrail("demo", *option)
    assert (said.code, "these options go with the diligence" in said.err) == (2, True)


def test_a_folder_that_is_not_there_is_told(forktrail: CommandLine) -> None:
    said = forktrail("demo", "diligence", "--documents", "nowhere")
    assert (said.code, "there is no folder 'nowhere' of documents" in said.err) == (3, True)
