"""What is said of a statement that is wrong, by the engine's own complaints. No broker."""

from __future__ import annotations

import pytest

from forktrail_lab.console.widths import width
from forktrail_lab.shell.dispatch import execute
from forktrail_lab.shell.face import Screen
from forktrail_lab.shell.faults import fitted
from forktrail_lab.shell.preferences import Preferences
from forktrail_schemas.errors import GraphError
from support.shell import Shell


def failed(shell: Shell, text: str) -> list[str]:
    """What is said of a text that fails."""
    assert not execute(shell.session, text)
    return shell.face.failed[-1]


def pointed_at(lines: list[str]) -> str:
    """What stands over the caret."""
    assert len(lines) == 3, lines
    assert lines[2].strip() == "^"
    before = next(place for place in range(len(lines[1]) + 1) if width(lines[1][:place]) == len(lines[2]) - 1)
    return lines[1][before:]


@pytest.mark.parametrize(
    ("statement", "told", "place"),
    [
        ("MATCH (a:Asset RETURN a", "syntax: RETURN isn't expected here", "RETURN a"),
        ("MATCH (f:Finding)\nWHERE f.depth = = 3\nRETURN f", "syntax: = isn't expected here", "= 3"),
        ("RETURN 1 + + 2", "syntax: + isn't expected here", "+ 2"),
        ("RETURN '世界' + + 2", "syntax: + isn't expected here", "+ 2"),
        ("RETURN 'two\nlines' AS a b", "syntax: b isn't expected here", "b"),
        ("RETURN '\n(line: 1, offset: 0)\n' + + 2", "syntax: + isn't expected here", "+ 2"),
        ("MATCH (c:Case) RETURN c", "syntax: Case isn't expected here (Case is a word of Cypher", "Case) RETURN c"),
        ("MATCH (f:Findng) RETURN f", "no label or relation type Findng (did you mean Finding?)", "Findng) RETURN f"),
        ("MATCH ()-[:REQUIRE]->() RETURN 1", "REQUIRE (did you mean REQUIRES?)", "REQUIRE]->() RETURN 1"),
        ("MATCH (f:Finding) RETURN f.dept", "f has no property dept (did you mean depth?)", "dept"),
        ("MATCH (f:Finding) WITH f.id AS id RETURN f.depth", "no variable f is known there", "f.depth"),
        (
            "MATCH (c:TestCase) RETURN c.status",
            "c has no property status (did you mean (c:`Case`)? a test is TestCase, an attempt at it is `Case`)",
            "status",
        ),
        ("MATCH (a:Asset) RETURN a.revoked", "a has no property revoked (Key has it)", "revoked"),
        ("MATCH (k:Key) RETURN k.asset", "k has no property asset (TestCase, ", "asset"),
        ("RETURN lowr('A')", "there is no function lowr (did you mean lower?)", "lowr('A')"),
    ],
)
def test_the_fault_is_named_and_pointed_at(statement: str, told: str, place: str, shell: Shell) -> None:
    lines = failed(shell, statement)
    assert lines[0].startswith("error: ")
    assert told in lines[0]
    assert pointed_at(lines) == place


@pytest.mark.parametrize("screen", [30, 40, 50, 80])
def test_on_a_screen_a_message_is_broken_between_words_and_the_caret_stays_in_place(screen: int, shell: Shell) -> None:
    names = ", ".join(f"f.id AS name_{number}" for number in range(30))
    lines = failed(shell, f"MATCH (f:TestCase) WITH f RETURN f.status, {names}")
    shown = fitted(lines, screen)
    assert max(map(width, shown)) <= screen
    assert " ".join(shown[:-2]).split() == lines[0].split()
    assert pointed_at([lines[0], *shown[-2:]]).startswith("status, f.i")


def test_a_screen_says_long_lines_in_pieces_that_fit(
    shell: Shell, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "50")
    monkeypatch.setenv("NO_COLOR", "1")
    lines = failed(shell, "MATCH (c:TestCase) RETURN c.status")
    note = "process 4711 let go of the graph; process 4712 folds it now"
    screen = Screen(Preferences())
    screen.fail(lines)
    screen.say(note)
    said = capsys.readouterr().out.splitlines()
    assert max(map(len, said)) <= 50
    assert " ".join(said).split() == " ".join([*lines, note]).split()


def test_the_caret_stays_in_place_behind_wide_letters(shell: Shell) -> None:
    lines = failed(shell, "RETURN '世界世界世界世界世界世界世界世界' + + 2")
    shown = fitted(lines, 30)
    assert max(map(width, shown)) <= 30
    assert pointed_at([lines[0], *shown[-2:]]) == "+ 2"


def test_a_statement_that_ends_too_early_is_pointed_at_behind_its_end(shell: Shell) -> None:
    lines = failed(shell, "MATCH (f:Finding) RETURN f.id,;")
    assert "ends too early" in lines[0] or ", isn't expected" in lines[0]
    assert len(lines) == 3


def test_the_line_of_a_longer_statement_is_named(shell: Shell) -> None:
    lines = failed(shell, "MATCH (f:Finding)\nRETURN f.idd")
    assert lines[1] == "  line 2: RETURN f.idd"
    assert pointed_at(lines) == "idd"


def test_a_far_place_is_shown_with_what_stands_around_it(shell: Shell) -> None:
    names = ", ".join(f"f.id AS name_{number}" for number in range(30))
    lines = failed(shell, f"MATCH (f:Finding) RETURN {names}, f.idd AS last")
    assert len(lines[1]) < 130
    assert pointed_at(lines).startswith("idd AS last")


def test_the_bound_on_rows_never_shows_in_a_complaint(shell: Shell) -> None:
    assert "LIMIT" not in "".join(failed(shell, "MATCH (f:Finding) RETURN f.id +"))
    assert "LIMIT" not in "".join(failed(shell, "MATCH (f:Finding) RETURN f.id ORDER"))


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE (:Asset {id: 'mine'})",
        "MATCH (a:Asset) SET a.id = 'mine'",
        "MATCH (a:Asset) DETACH DELETE a",
        "MATCH (r:Run) CREATE (:Asset {id: 'mine'}) RETURN r",
        "MERGE (:Asset {id: 'mine'})",
        "DROP TABLE Asset",
        "COPY (MATCH (a:Asset) RETURN a.id) TO 'out.csv'",
    ],
)
def test_a_write_is_refused_with_what_writes_instead(statement: str, shell: Shell) -> None:
    before = dict(shell.source.graph.rows())
    (line,) = failed(shell, statement)
    assert line.startswith("error: the shell is read-only")
    assert "forktrail report story TEST" in line
    assert dict(shell.source.graph.rows()) == before


@pytest.mark.parametrize(
    "statement", ["LOAD FROM 'in.csv' RETURN *", "CALL threads=1 RETURN 1", "COMMIT", "BEGIN TRANSACTION"]
)
def test_what_else_does_more_than_read_is_refused_too(statement: str, shell: Shell) -> None:
    assert failed(shell, statement)


def test_a_failure_of_the_graph_keeps_its_hint_and_its_control_characters_to_itself(shell: Shell) -> None:
    shell.source.fails = [GraphError("it broke\x1b[2J", hint="mend it")]
    assert failed(shell, "RETURN 1") == ["error: it broke\\x1b[2J (mend it)"]


def test_a_named_querys_fault_is_shown_in_the_query(shell: Shell) -> None:
    execute(shell.session, ":name broken MATCH (f:Findng) RETURN f")
    lines = failed(shell, ":run broken")
    assert pointed_at(lines) == "Findng) RETURN f"


def test_of_several_statements_none_runs_after_one_that_failed(shell: Shell) -> None:
    failed(shell, "RETURN 1; RETURN nothing; RETURN 3")
    assert shell.face.rows == [(1,)]
    assert len(shell.face.answers) == 1


def test_a_complaint_with_a_line_end_in_it_is_told_whole_and_in_one_line(shell: Shell) -> None:
    (line,) = failed(shell, "RETURN CAST('a\nb' AS INT64) AS x")
    assert line.endswith('"a\\nb" to INT64')
