"""A service without our package, from the .avsc alone, writes a report that folds."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from forktrail_projectors.reader import LogReader
from forktrail_schemas.generate import AVSC
from forktrail_schemas.ids import derived_id
from support.raw import told, write

SCRIPT = Path(__file__).parents[1] / "support" / "bare_service.py"
SUMMARY, DETAILS = "seen by a service of another make", "with the file of the schema alone"


def run_bare(script: str, *words: str) -> subprocess.CompletedProcess[str]:
    """An interpreter that takes no paths from the environment or the current folder."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith("FORKTRAIL")}
    command = [sys.executable, "-I", script, *words]
    return subprocess.run(command, cwd="/", env=environ, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(("file", "details"), [("ReportFiled.avsc", DETAILS), ("ReportFiled.v1.avsc", "")])
def test_a_report_written_from_the_schema_file_alone_folds(file: str, details: str, kafka: str, tmp_path: Path) -> None:
    story = told(kafka)
    story.open()
    story.register("root")
    write(kafka, story.run, story.records)
    avsc = tmp_path / "given.avsc"  # the file alone, away from the others
    avsc.write_text((AVSC / "evidence" / file).read_text(encoding="utf-8"), encoding="utf-8")
    done = run_bare(str(SCRIPT), kafka, story.run, str(avsc))
    assert (done.returncode, done.stdout.strip()) == (0, str(len(story.records))), done.stderr
    with LogReader(kafka, story.run) as reader:
        verdict = story.append(reader.record_at(len(story.records)))
    assert (verdict.kind, verdict.reason, verdict.type) == ("valid", "", "forktrail.ReportFiled")
    row = story.row("Report", derived_id("report", verdict.event_id))
    assert (row["summary"], row["details"], row["researcher"]) == (SUMMARY, details, "bare-service")
    assert row["outcome"] == "case_opened"


def test_ours_can_not_be_imported_there(tmp_path: Path) -> None:
    """Else the test above would prove nothing: the interpreter is the one that has our package."""
    tries = tmp_path / "tries.py"
    head = SCRIPT.read_text(encoding="utf-8").partition("import avro.io")[0]
    tries.write_text(head + "import forktrail_schemas\n", encoding="utf-8")
    done = run_bare(str(tries))
    assert done.returncode == 1
    assert "forktrail_schemas is kept out" in done.stderr
