"""Tables, JSON and CSV as commands print them."""

from __future__ import annotations

import json
import os
import sys

import pytest

from forktrail_lab.console.output import (
    Format,
    cell,
    counted,
    note,
    print_lines,
    print_made,
    print_rows,
    printable,
    section_lines,
    table_lines,
    time_text,
)


def test_columns_are_aligned_and_numbers_stand_to_the_right() -> None:
    assert table_lines(("name", "used"), [("cases", 3), ("http-requests", 1200)]) == [
        "name           used",
        "cases             3",
        "http-requests  1200",
    ]


def test_json_is_a_list_of_objects(capsys: pytest.CaptureFixture[str]) -> None:
    print_rows(("id", "roles", "limit"), [("k", ("admin",), None)], "json")
    assert json.loads(capsys.readouterr().out) == [{"id": "k", "roles": ["admin"], "limit": None}]


def test_csv_is_what_rfc_4180_says(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [
        ("plain", 1, None),
        ('with "quotes"', -1.5, ""),
        ("", None, "carriage\rreturn"),
        ("a, comma", True, ("b", 'c "d"')),
        ("two\nlines", False, {"é": [1]}),
    ]
    print_rows(("name", "second, third", "list"), rows, "csv")
    assert capsys.readouterr().out == (
        'name,"second, third",list\r\n'
        "plain,1,\r\n"
        '"with ""quotes""",-1.5,""\r\n'
        '"",,"carriage\rreturn"\r\n'
        '"a, comma",true,"[""b"", ""c \\""d\\""""]"\r\n'
        '"two\nlines",false,"{""é"": [1]}"\r\n'
    )


def test_a_null_and_an_empty_text_are_told_apart_in_csv(capsys: pytest.CaptureFixture[str]) -> None:
    print_rows(("text",), [(None,), ("",), ("-",)], "csv")
    assert capsys.readouterr().out == 'text\r\n\r\n""\r\n-\r\n'


def test_csv_without_rows_has_its_header(capsys: pytest.CaptureFixture[str]) -> None:
    print_rows(("id", "text"), [], "csv")
    assert capsys.readouterr().out == "id,text\r\n"


def test_csv_keeps_control_characters_but_for_a_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    print_rows(("text",), [("\x1b[2Jgone",)], "csv")
    assert capsys.readouterr().out == "text\r\n\x1b[2Jgone\r\n"
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    print_rows(("text",), [("\x1b[2Jgone",)], "csv")
    assert capsys.readouterr().out == "text\r\n\\x1b[2Jgone\r\n"


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "-"),
        (True, "true"),
        (("a", "b"), "a, b"),
        ([1, 2], "[1, 2]"),
        ({"a": 1}, '{"a": 1}'),
        ("two\nlines", "two\\nlines"),
        ("\x1b[2Jgone", "\\x1b[2Jgone"),
        ("\u202etxt", "\\u202etxt"),
        (("a\tb",), "a\\tb"),
        ("Zoë 漢字", "Zoë 漢字"),
    ],
)
def test_a_cell_is_one_line_without_control_characters(value: object, shown: str) -> None:
    assert cell(value) == shown


def test_nothing_is_cut_where_stdout_is_no_terminal() -> None:
    assert table_lines(("text",), [("x" * 5000,)])[1] == "x" * 5000


def on_terminal(monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    """Let stdout be a terminal of so many columns."""
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setattr("shutil.get_terminal_size", lambda: os.terminal_size((columns, 24)))


def test_wide_columns_are_cut_to_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    on_terminal(monkeypatch, 40)
    lines = table_lines(("id", "text", "more"), [("case-1234", "y" * 100, "z" * 60)])
    assert all(len(line) <= 40 for line in lines)
    assert lines[1].startswith("case-1234  yyyy")
    assert lines[1].count("…") == 2


def test_an_id_is_not_cut_but_the_words_beside_it_are(monkeypatch: pytest.MonkeyPatch) -> None:
    on_terminal(monkeypatch, 69)
    case, finding = "case-0123456789abcdef0123", "finding-0123456789abcdef0123"
    lines = table_lines(("id", "words", "finding"), [(case, "many words " * 9, finding), (case, "y", None)])
    assert lines[1] == f"{case}  many words …  {finding}"
    lines = table_lines(("id", "finding"), [(case, finding), (case, None)])
    assert lines[1] == f"{case}  {finding}"


def test_rows_that_fit_only_with_names_cut_are_a_block_each(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [("case-0123456789abcdef0123", "gateway-routing-context", "2026-12-01T04:53:34.313Z", 12)]
    on_terminal(monkeypatch, 80)
    assert table_lines(("id", "test", "opened_at", "n"), rows)[1].split() == [str(value) for value in rows[0]]
    on_terminal(monkeypatch, 79)
    first, *lines = table_lines(("id", "test", "opened_at", "n"), rows)
    assert first.strip("─") == "[ 1 ]"
    assert lines == [
        "id        │ case-0123456789abcdef0123",
        "test      │ gateway-routing-context",
        "opened_at │ 2026-12-01T04:53:34.313Z",
        "n         │ 12",
    ]


def test_no_line_is_wider_than_the_terminal_and_no_short_word_is_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    names = tuple(f"column_{place}" for place in range(10))
    told = "the marker is trusted from outside and more of it follows here"
    for screen in range(40, 200, 7):
        on_terminal(monkeypatch, screen)
        lines = table_lines(names, [(f"gateway-test-{place}", told) * 5 for place in range(3)])
        assert max(map(len, lines)) <= screen
        if lines[0].startswith("─"):
            words = " ".join(line.partition(" │ ")[2] for line in lines).split()
            assert {word for word in words if not word.startswith("gateway")} == set(told.split())


def test_a_table_without_rows_has_its_names_however_narrow_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    on_terminal(monkeypatch, 10)
    assert table_lines(("case_id", "test", "status"), []) == ["case_id  test  status"]


def test_what_was_made_stands_alone_on_stdout_and_the_line_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    print_made("case-1", "case-1 \x1b waits", {"case_id": "case-1"}, "table")
    assert capsys.readouterr() == ("case-1\n", "case-1 \\x1b waits\n")
    print_made(None, "kept", {"case_id": None}, "table")
    assert capsys.readouterr() == ("", "kept\n")
    print_made("case-1", "case-1 waits", {"case_id": "case-1"}, "json")
    assert capsys.readouterr() == ('{"case_id": "case-1"}\n', "")


def test_one_is_counted_in_the_singular() -> None:
    assert [counted(number, "test") for number in (0, 1, 2)] == ["0 tests", "1 test", "2 tests"]


def test_facts_of_a_section_are_aligned_and_go_on_under_each_other() -> None:
    assert section_lines("approval", [("by", "olga"), ("reason", "it\nfits"), ("", "twice"), ("note", None)]) == [
        "approval",
        "  by      olga",
        "  reason  it\\nfits",
        "          twice",
        "  note    -",
    ]
    assert section_lines("review", []) == ["review", "  none"]


def test_times_are_utc_and_a_far_one_is_not_refused() -> None:
    assert time_text(1_700_000_000_123_456) == "2023-11-14T22:13:20.123Z"
    assert time_text(2**62) == f"{2**62} us"
    assert time_text(None) is None


def test_printable_text_is_left_as_it_is() -> None:
    assert printable("a 'quoted' \\ text") == "a 'quoted' \\ text"


def test_no_name_reaches_the_terminal_raw(capsys: pytest.CaptureFixture[str]) -> None:
    raw = "\x1b[31mred\x9b2J\nforged"
    print_rows([raw], [[1]], Format.TABLE)
    print_lines(section_lines(raw, [(raw, 1)]))
    note(raw)
    said = capsys.readouterr()
    lines = [*said.out.splitlines(), *said.err.splitlines()]
    assert len(lines) == 5
    assert all(line.isprintable() for line in lines)
