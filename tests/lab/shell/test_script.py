"""A shell without a terminal: what goes to stdout and what to stderr. No broker."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from forktrail_lab.shell.face import Pipe
from forktrail_lab.shell.named import BUILT_IN, NamedQueries
from forktrail_lab.shell.preferences import Preferences
from forktrail_lab.shell.script import run_script
from forktrail_lab.shell.session import Session
from support.shell import Shell

HOLDERS = "MATCH (k:Key)\nRETURN k.holder AS holder, k.revoked AS revoked ORDER BY holder LIMIT 2;\n"


def run(shell: Shell, text: str, tmp_path: Path, format: str = "table", rows_max: int | None = None) -> bool:
    """Run a script; returns whether nothing failed."""
    preferences = Preferences(rows_max=rows_max, timing=False)
    session = Session(shell.source, Pipe(format, preferences), NamedQueries(tmp_path / "queries.json"), preferences)
    return run_script(session, text.splitlines(keepends=True))


def test_tables_go_to_stdout_one_after_the_other_and_nothing_else(
    shell: Shell, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(shell, HOLDERS + "// the end\nRETURN 1 AS one", tmp_path)
    out, err = capsys.readouterr()
    assert out.splitlines() == ["holder  revoked", "ada     false", "olga    false", "one", "  1"]
    assert err == ""


def test_json_and_csv(shell: Shell, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(shell, HOLDERS, tmp_path, "json")
    rows = json.loads(capsys.readouterr().out)
    assert rows == [{"holder": "ada", "revoked": False}, {"holder": "olga", "revoked": False}]
    assert run(shell, HOLDERS, tmp_path, "csv")
    table = list(csv.reader(io.StringIO(capsys.readouterr().out)))
    assert table == [["holder", "revoked"], ["ada", "false"], ["olga", "false"]]
    assert not run(shell, "RETURN 1 AS x, 2 AS x", tmp_path, "json")


def test_what_fails_is_said_on_stderr_and_the_rest_runs(
    shell: Shell, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert not run(shell, "RETURN 1 +;\nCREATE (:Asset {id: 'x'});\n:nonsense\nRETURN 2 AS two;", tmp_path)
    out, err = capsys.readouterr()
    assert out.split() == ["two", "2"]
    assert [line.partition(":")[0] for line in err.splitlines() if not line.startswith(" ")] == ["error"] * 3


@pytest.mark.parametrize("word", ["exit", "quit;", ":quit"])
def test_a_script_may_leave_before_its_end(
    word: str, shell: Shell, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(shell, f"RETURN 1 AS one;\n{word}\nRETURN 2 AS two;\n", tmp_path)
    assert capsys.readouterr().out.split() == ["one", "1"]


def test_a_line_of_a_statement_is_no_farewell(shell: Shell, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(shell, "RETURN 1 AS\nexit\n;", tmp_path)
    assert capsys.readouterr().out.split() == ["exit", "1"]


def test_all_rows_come_unless_a_limit_is_set_and_that_is_said(
    shell: Shell, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cypher = "UNWIND range(1, 20000) AS n RETURN n"
    assert run(shell, cypher, tmp_path)
    out, err = capsys.readouterr()
    assert (len(out.splitlines()), err) == (20_001, "")
    assert run(shell, cypher, tmp_path, rows_max=5)
    out, err = capsys.readouterr()
    assert len(out.splitlines()) == 6
    assert err == "(5 rows shown, there are more)\n"
    assert run(shell, f":limit 3\n{cypher}", tmp_path)
    assert len(capsys.readouterr().out.splitlines()) == 4


def test_commands_work_too_and_quit_ends_the_script(
    shell: Shell, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = ":param who=olga\nMATCH (k:Key {holder: $who}) RETURN k.roles AS roles;\n:position\n:quit\nRETURN 'never';"
    assert run(shell, script, tmp_path)
    assert capsys.readouterr().out.splitlines() == [
        "roles",
        "operator",
        "story at offset 4 of 4, up to date; nobody",
    ]


def test_an_empty_script_is_no_failure(shell: Shell, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(shell, "\n  \n;;\n// nothing\n", tmp_path)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("command", "columns"),
    [
        (":named", ["name", "what it shows", "takes"]),
        (":params", ["name", "value"]),
        (":schema Finding", ["column", "type"]),
    ],
)
def test_what_the_shell_lists_itself_comes_in_the_format_and_uncut(
    command: str, columns: list[str], shell: Shell, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(shell, f":param x={'long ' * 50}\n{command}\n", tmp_path, "csv")
    header, *rows = csv.reader(io.StringIO(capsys.readouterr().out))
    assert header == columns
    assert {len(row) for row in rows} == {len(columns)}
    assert run(shell, f":param x={'long ' * 50}\n{command}\n", tmp_path, "json")
    listed = json.loads(capsys.readouterr().out)
    assert [list(row) for row in listed] == [columns] * len(rows)


def test_the_summaries_of_named_queries_are_whole(
    shell: Shell, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(shell, ":named\n", tmp_path)
    said = capsys.readouterr().out
    for query in BUILT_IN.values():
        assert query.summary in said


def test_bytes_that_are_no_utf8_fail_their_statement_alone_and_are_named(
    shell: Shell, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = b"RETURN 'a' AS a;\nRETURN '\xff' AS b;\n:name kept RETURN '\xfe'\n:param x=\xfd\nRETURN 'c' AS c;\n"
    assert not run(shell, script.decode("utf-8", "surrogateescape"), tmp_path)
    out, err = capsys.readouterr()
    assert out.split() == ["a", "a", "c", "c"]
    assert [line.partition(" after")[0] for line in err.splitlines()] == [
        f"error: the query isn't UTF-8: byte {byte}" for byte in ("0xff", "0xfe", "0xfd")
    ]
    assert not (tmp_path / "queries.json").exists()
