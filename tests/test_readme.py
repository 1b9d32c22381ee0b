"""The README says what is so: its commands exist, its code runs, its links and settings are there."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from forktrail_behaviors.packs import load_pack
from forktrail_behaviors.testing import Kit
from forktrail_lab.cli import COMMANDS, command_parser, load_command
from forktrail_projectors.reader import LogReader
from forktrail_projectors.rules.log import BUDGETS
from forktrail_schemas.declared import declared_schema
from forktrail_schemas.events import ObjectCreated
from support.raw import make_run

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
FENCED = re.findall(r"^```(\w*)\n(.*?)^```", README, re.S | re.M)
CODE = [block for language, block in FENCED if language == "python"]
COMMAND_LINES = "\n".join(block for language, block in FENCED if not language)


def forktrail_lines() -> list[list[str]]:
    """The words of every `forktrail …` call in the README's blocks."""
    calls = re.findall(r"\bforktrail ((?:[^\n'&|;#)>]|'[^']*')+)", COMMAND_LINES)
    return [re.findall(r"'[^']*'|\S+", call) for call in calls]


def filled_in(word: str) -> str:
    """A word with each shell variable of the README in it replaced by what it would hold."""
    for name, value in {"$RUN": "run-1", "$CASE": "case-1", "$FINDING": "finding-1", "$OFFSET": "12"}.items():
        word = word.replace(name, value)
    return word


def test_the_blocks_hold_no_place_to_fill_in_and_no_variable_before_it_is_set() -> None:
    known = {"key"}  # the loop's
    for line in COMMAND_LINES.splitlines():
        assert "…" not in line, line
        assert set(re.findall(r"\$([A-Za-z]+)", line)) <= known, line
        known |= set(re.findall(r"^([A-Z]+)=\$[(!]", line))


def test_what_the_readme_starts_in_the_background_it_ends_by_process_and_not_by_number_of_job() -> None:
    lines = COMMAND_LINES.splitlines()
    started = [lines[at + 1].removesuffix("=$!") for at, line in enumerate(lines) if line.endswith(" &")]
    assert started == ["LAB", "FOLLOWER"]
    assert [line for line in lines if line.startswith("kill")] == [f"kill ${name}" for name in started]


def test_every_command_line_of_the_readme_is_understood() -> None:
    lines = forktrail_lines()
    assert len(lines) >= 20
    for words in lines:
        name, *rest = (word.strip("'") for word in words)
        assert name in COMMANDS, words
        try:
            command_parser(name, load_command(name)).parse_args([filled_in(word) for word in rest])
        except SystemExit:
            pytest.fail(f"the README's `forktrail {' '.join(words)}` is not understood")


def test_what_people_looked_for_in_the_readme_is_shown_in_it() -> None:
    shown = {words[0] for words in forktrail_lines()}
    assert {"budget", "schema", "dead", "handoff", "shell", "project", "behaviors", "replay", "approvals"} <= shown


def test_the_schema_that_the_readme_declares_is_one() -> None:
    (text,) = re.findall(r"echo '(.*?)' > ", README, re.S)
    assert declared_schema(text).name == "acme.ScanProgressed"


def test_every_budget_of_a_run_is_in_the_readme() -> None:
    assert [name for name in BUDGETS if f"`{name}`" not in README and f"| {name} |" not in README] == []


def test_every_relative_link_of_the_readme_leads_somewhere() -> None:
    links = [link for link in re.findall(r"\]\(([^)]+)\)", README) if "://" not in link]
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_every_setting_of_the_readme_is_read_somewhere_and_the_other_way_round() -> None:
    sources = "".join(path.read_text() for folder in ("schemas", "lab") for path in (ROOT / folder).rglob("*.py"))
    named = set(re.findall(r"FORKTRAIL_[A-Z_]+", README))
    assert named == set(re.findall(r"FORKTRAIL_[A-Z_]+", sources))


def test_the_make_targets_of_the_readme_exist() -> None:
    makefile = (ROOT / "Makefile").read_text()
    targets = re.findall(r"^make (\w+)", README, re.M)
    assert targets
    assert [target for target in targets if not re.search(rf"^{target}:", makefile, re.M)] == []


def test_the_code_of_the_readme_emits_an_event_as_it_stands(
    kafka: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (code,) = (block for block in CODE if "report =" in block)
    run = make_run(kafka)
    monkeypatch.setattr(sys, "argv", ["report.py", run])
    monkeypatch.setenv("FORKTRAIL_BOOTSTRAP_SERVERS", kafka)
    exec(compile(code, "README.md", "exec"), {})
    assert capsys.readouterr().out.strip() == "0"
    with LogReader(kafka, run) as reader:
        assert reader.end() == 1


def test_the_pack_of_the_readme_does_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (code,) = (block for block in CODE if "PACK =" in block)
    (tmp_path / "companies.py").write_text(code)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    try:
        kit = Kit(load_pack("companies"))
        kit.tell(ObjectCreated, object_type="Company", object_id="company-00000001", data='{"name": "Acme"}')
        kit.run()
        (call,) = kit.calls_of("approval")
        assert call["name"] == "ask who buys the anvils of Acme"
        kit.decide(str(call["id"]))
        kit.run()
        assert [row["text"] for row in kit.objects("Question")] == ["who buys anvils?"]
    finally:
        sys.modules.pop("companies", None)
