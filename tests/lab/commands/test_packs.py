"""`forktrail pack`: a new pack passes at once, by itself and by the check; no broker."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from forktrail_behaviors.packs import GROUP, load_pack
from forktrail_lab.cli import main
from forktrail_lab.new_pack import make_pack
from forktrail_schemas.errors import InvalidInput, NotFound


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Path:
    """The folder of a new pack."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    forget()
    assert main(["pack", "new", "my-tickets"]) == 0
    assert capsys.readouterr().out == "my-tickets\n"
    return tmp_path / "my-tickets"


def forget() -> None:
    """Have the pack's modules imported anew."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "my_tickets"]:
        del sys.modules[name]


def check(*words: str) -> int:
    return main(["pack", "check", *words])


def test_a_new_packs_own_test_passes_at_once(made: Path) -> None:
    said = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"],
        cwd=made,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert said.returncode == 0, said.stdout + said.stderr
    assert "2 passed" in said.stdout


def test_a_new_pack_passes_its_check_without_being_installed(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert check("./my-tickets", "--format", "json") == 0
    said = json.loads(capsys.readouterr().out)
    # Two tickets: each a start, a call of the tool, one of the model, a summary, a patch and an end.
    assert (said["good"], said["executions"], said["events_compared"], said["divergences"]) == (True, 2, 12, 0)


def changed(made: Path, file: str, old: str, new: str) -> None:
    path = made / "my_tickets" / file
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_a_clock_in_a_behavior_is_refused_with_its_line(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    changed(made, "behaviors.py", "    words = await", "    import time; time.time()\n    words = await")
    assert check("./my-tickets") == 2
    assert "behaviors.py:" in capsys.readouterr().err


def test_a_pattern_on_what_there_isnt_is_refused(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    changed(made, "behaviors.py", "t.status = 'new'", "t.state = 'new'")
    assert check("./my-tickets") == 2
    said = capsys.readouterr().err
    assert "summarize: there is no property state of Ticket" in said
    assert "status" in said


def test_a_fixture_that_fires_nothing_is_told(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    changed(made, "fixture.py", '"status": "new"', '"status": "old"')
    assert check("./my-tickets") == 2
    assert "fires nothing" in capsys.readouterr().err


def test_a_behavior_that_fails_fails_the_check(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    changed(made, "tools.py", "return len", "return len(1)\n    return len")
    assert check("./my-tickets") == 1
    assert "an execution failed: EffectFailed: effect_failed: TypeError" in capsys.readouterr().err


def test_another_prompt_is_another_behavior(made: Path) -> None:
    before = load_pack(str(made) + "/").reactions[0].code_sha256
    forget()
    changed(made, "prompts/summarize.txt", "one sentence", "two sentences")
    assert load_pack(str(made) + "/").reactions[0].code_sha256 != before


def test_what_is_installed_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["pack", "list", "--format", "json"]) == 0
    listed = {row["name"]: row["module"] for row in json.loads(capsys.readouterr().out)}
    assert listed["diligence"] == "forktrail_lab.diligence:PACK"
    assert listed["planner"] == "forktrail_lab.planner:PACK"


@pytest.mark.parametrize("name", ["json", "Tickets", "9lives", "a" * 41, "class", "../up", "a--b"])
def test_a_name_that_cant_be_a_packs_is_refused(name: str, tmp_path: Path) -> None:
    assert main(["pack", "new", name, "--to", str(tmp_path)]) == 2
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_there_is_left_alone(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["pack", "new", "my-tickets"]) == 2
    assert "is there already" in capsys.readouterr().err


def test_another_distributions_pack_is_found_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    about = tmp_path / "others-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: others\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(f"[{GROUP}]\nothers = others_pack:MINE\nbroken = others_pack:NONE\n")
    (tmp_path / "others_pack.py").write_text("from forktrail_behaviors.pack import Pack\nMINE = Pack('others')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert load_pack("others").name == "others"
    other = tmp_path / "rivals-1.0.dist-info"
    other.mkdir()
    (other / "METADATA").write_text("Metadata-Version: 2.1\nName: rivals\nVersion: 2.0\n")
    (other / "entry_points.txt").write_text(f"[{GROUP}]\nothers = rivals_pack:MINE\n")
    with pytest.raises(InvalidInput, match=r"two packs are installed as 'others': .*others 1\.0.*rivals 2\.0"):
        load_pack("others")
    shutil.rmtree(other)
    with pytest.raises(NotFound, match="has no NONE"):
        load_pack("broken")
    with pytest.raises(NotFound, match=r"installed packs: .*others"):
        load_pack("another")


@pytest.mark.parametrize(("text", "message"), [("[", "can't be read"), ("[project]\nname = 'x'\n", "names 0 packs")])
def test_a_folder_that_names_no_pack_is_told(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(text)
    with pytest.raises(InvalidInput, match=message):
        load_pack(f"{tmp_path}/")


RIVALS = """from forktrail_behaviors.types import relation_type_of

RELATIONS = [relation_type_of("RIVALS", ["Ticket"], ["Tiket"])]"""


@pytest.mark.parametrize(
    ("file", "old", "new", "message"),
    [
        ("behaviors.py", "(t:Ticket)", "(t:Tikcet)", "summarize: there is no label Tikcet (is it Ticket?)"),
        (
            "behaviors.py",
            "WHERE t.status = 'new'",
            "WHERE t.status = 'new' AND NOT EXISTS { MATCH (t)<-[:ABUOT]-(:Summary) }",
            "summarize: there is no relation ABUOT (is it ABOUT?)",
        ),
        (
            "behaviors.py",
            "WHERE t.status = 'new'",
            "WHERE t.status = 'new' AND NOT EXISTS { MATCH (t)<-[:ABOUT]-(:Sumary) }",
            "summarize: there is no label Sumary (is it Summary?)",
        ),
        ("behaviors.py", '["Summary", "Ticket"]', '["Sumary", "Ticket"]', "there is no type or event Sumary"),
        ("types.py", 'Ref["Ticket"]', 'Ref["Tiket"]', "Summary: there is no object type Tiket (is it Ticket?)"),
        (
            "types.py",
            "RELATIONS = []",
            RIVALS,
            "RIVALS: there is no object type Tiket",
        ),
        ("tools.py", 'side_effects="none"', 'side_effects="non"', "can't have side effects 'non'"),
    ],
)
def test_a_name_that_nothing_declares_is_refused(
    file: str, old: str, new: str, message: str, made: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    changed(made, file, old, new)
    assert check("./my-tickets") == 2
    assert message in capsys.readouterr().err


def test_a_folders_name_without_a_slash_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    make_pack("ferries", tmp_path)
    with pytest.raises(NotFound, match=r"\./ferries"):
        load_pack("ferries")
