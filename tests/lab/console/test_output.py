"""Tables and JSON as commands print them."""

from __future__ import annotations

import json
import os
import sys

import pytest

from forktrail_lab.console.output import cell, print_rows, printable, table_lines, time_text


def test_columns_are_aligned_and_numbers_stand_to_the_right() -> None:
    assert table_lines(("name", "used"), [("cases", 3), ("http-requests", 1200)]) == [
        "name           used",
        "cases             3",
        "http-requests  1200",
    ]


def test_json_is_a_list_of_objects(capsys: pytest.CaptureFixture[str]) -> None:
    print_rows(("id", "roles", "limit"), [("k", ("admin",), None)], "json")
    assert json.loads(capsys.readouterr().out) == [{"id": "k", "roles": ["admin"], "limit": None}]


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


def test_wide_columns_are_cut_to_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setattr("shutil.get_terminal_size", lambda: os.terminal_size((40, 24)))
    lines = table_lines(("id", "text", "more"), [("case-1234", "y" * 100, "z" * 60)])
    assert all(len(line) <= 40 for line in lines)
    assert lines[1].startswith("case-1234  yyyy")
    assert lines[1].count("…") == 2


def test_times_are_utc_and_a_far_one_is_not_refused() -> None:
    assert time_text(1_700_000_000_123_456) == "2023-11-14T22:13:20.123Z"
    assert time_text(2**62) == f"{2**62} us"
    assert time_text(None) is None


def test_printable_text_is_left_as_it_is() -> None:
    assert printable("a 'quoted' \\ text") == "a 'quoted' \\ text"
