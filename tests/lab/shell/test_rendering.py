"""Answers on a screen: what fits, what is cut, and that no value drives the terminal. No broker."""

from __future__ import annotations

import unicodedata

import pytest

from forktrail_lab.console.records import LINES_PER_VALUE_MAX
from forktrail_lab.console.widths import cut, elided, padded, width, wrapped
from forktrail_lab.shell.answer import answer_page, count_line
from forktrail_lab.shell.table import table_page
from forktrail_lab.shell.values import value_text
from forktrail_lab.shell.vertical import vertical_page
from forktrail_projectors.graph.protocol import Table

NASTY = [
    "\x1b[2J\x1b[31mred",
    "one\ntwo\rthree\ttab",
    "bell\x07 back\x08space",
    "c1 \x9b31m and \x85",
    "bidi \u202e\u2066 override",
    "zero\u200bwidth \ufeff joiner \u200d",
    "line\u2028separator\u2029",
    "nul\0 delete\x7f",
    "lone \udc80 surrogate",
    "private \ue000 and tag \U000e0041",
]


def columns_of(text: str) -> int:
    """The columns of a text by the Unicode data alone: wide ones two, combining marks none."""
    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text
    )


class TestWidths:
    @pytest.mark.parametrize("text", ["", "plain", "世界", "süß", "e\u0301 has a mark", "🙂 smiles", "ｆｕｌｌ"])
    def test_wide_letters_take_two_columns_and_marks_none(self, text: str) -> None:
        assert width(text) == columns_of(text)

    def test_a_cut_text_is_never_wider_than_asked_for(self) -> None:
        for text in ("plain text", "世界世界", "a世b界", "e\u0301e\u0301e\u0301e\u0301"):
            for columns in range(1, 12):
                shown = cut(text, columns)
                assert width(shown) <= columns
                assert shown == text or shown.endswith("…")
        assert cut("世界世界", 6) == "世界…"
        assert cut("世界世界", 5) == "世界…"
        assert cut("世界世界", 4) == "世…"

    def test_padding_counts_columns_rather_than_letters(self) -> None:
        assert padded("世界", 6) == "世界  "
        assert padded("12", 4, right=True) == "  12"

    def test_a_word_loses_its_middle_and_words_their_end(self) -> None:
        assert elided("case-0123456789abcdef0123", 14) == "case-0123…0123"
        assert elided("some words of it", 10) == "some word…"
        assert elided("case-0123456789", 6) == "case-…"
        assert elided("fits", 4) == "fits"

    def test_wrapped_pieces_end_at_spaces_where_the_next_word_is_short_enough(self) -> None:
        assert list(wrapped("a gateway-routing-context b", 24)) == ["a", "gateway-routing-context", "b"]
        assert list(wrapped("1234 67890", 4)) == ["1234", "6789", "0"]

    def test_wrapped_pieces_fit_and_lose_nothing_but_spaces(self) -> None:
        text = "the marker is trusted from outside 世界 and more of it"
        pieces = list(wrapped(text, 12))
        assert all(width(piece) <= 12 for piece in pieces)
        assert "".join(pieces).replace(" ", "") == text.replace(" ", "")
        assert list(wrapped("", 5)) == [""]
        assert list(wrapped("界界", 1)) == ["界", "界"]  # wider than there is room; it ends all the same


class TestValues:
    @pytest.mark.parametrize(
        ("value", "text"),
        [
            (None, "-"),
            (True, "true"),
            (12, "12"),
            (1.5, "1.5"),
            ("text", "text"),
            (["a", "b"], "a, b"),
            ([1, 2], "[1, 2]"),
            ({"a": 1, "b": "x, y", "c": None}, '{a: 1, b: "x, y", c: null}'),
            ({"_label": "Finding", "id": "finding-1", "depth": 0}, "(:Finding finding-1)"),
            ({"_label": "Event", "offset": 7, "id": "e"}, "(:Event 7)"),
            ({"_label": "REQUIRES", "created_offset": 3}, "[:REQUIRES]"),
            ([{"_label": "Asset", "id": "gateway"}], "[(:Asset gateway)]"),
            (
                {
                    "_nodes": [{"_label": "Event", "offset": 1}, {"_label": "Event", "offset": 4}],
                    "_rels": [{"_label": "CAUSED"}],
                },
                "(:Event 1)-[:CAUSED]-(:Event 4)",
            ),
        ],
    )
    def test_each_is_one_line(self, value: object, text: str) -> None:
        assert value_text(value) == text

    @pytest.mark.parametrize("nasty", NASTY)
    def test_nothing_in_a_value_reaches_the_terminal_as_it_is(self, nasty: str) -> None:
        node = {"_label": nasty, "id": nasty, nasty: nasty}
        path = {"_nodes": [node, node], "_rels": [{"_label": nasty}]}
        values: list[object] = [nasty, [nasty], [[nasty]], {"k": nasty}, {nasty: 1}, node, path]
        table = Table((nasty, *(f"c{place}" for place in range(1, len(values)))), [tuple(values)])
        for screen in (30, 80, 400):
            for expand in ("auto", "on", "off"):
                for line in answer_page(table, screen, expand).lines:
                    assert line.isprintable(), (screen, expand, line)
        for line in answer_page(Table(("explain result",), [(f"plan\n{nasty}",)]), 80).lines:
            assert line.isprintable()


class TestTable:
    def test_columns_stand_under_each_other_and_numbers_to_the_right(self) -> None:
        page = table_page(("name", "n"), [("世界", 1), ("x", 10_000), (None, None)], 80)
        assert page is not None
        assert page.lines == [
            "name │     n",
            "─────┼──────",
            "世界 │     1",
            "x    │ 10000",
            "-    │     -",
        ]

    def test_what_is_too_long_is_cut_with_an_ellipsis_and_the_line_fits(self) -> None:
        rows = [("short", "x" * 200, "y" * 300)]
        page = table_page(("a", "b", "c"), rows, 60)
        assert page is not None
        assert max(map(width, page.lines)) == 60
        assert page.body[0].startswith("short │ xxx")
        assert page.body[0].count("…") == 2

    def test_an_id_is_never_cut(self) -> None:
        id = "case-" + "0123456789abcdef0123"
        page = table_page(("id", "text"), [(id, "x" * 200)], 50)
        assert page is not None
        assert page.body[0].startswith(f"{id} │ xxx")
        assert width(page.body[0]) == 50

    def test_names_that_differ_at_their_ends_stay_apart(self) -> None:
        rows = [(f"gateway-{name}", "words " * 30) for name in ("routing", "session", "tenant")]
        page = table_page(("test", "told"), rows, 40)
        assert page is not None
        assert [line.split()[0] for line in page.body] == [name for name, _ in rows]

    def test_too_many_columns_are_no_table_unless_it_is_wanted(self) -> None:
        columns = tuple(f"column_{place}" for place in range(12))
        rows = [tuple("value " * 9 for _ in columns)]
        assert table_page(columns, rows, 80) is None
        forced = table_page(columns, rows, 80, force=True)
        assert forced is not None
        assert all(width(line) <= 80 for line in forced.lines)
        assert answer_page(Table(columns, rows), 80, "off") == forced

    def test_ten_thousand_rows_take_less_than_two_seconds(self) -> None:
        import time

        rows = [(number, f"text of row {number}", "世界", None) for number in range(10_000)]
        began = time.perf_counter()
        page = table_page(("a", "b", "c", "d"), rows, 100)
        assert page is not None
        assert len(page.body) == 10_000
        assert time.perf_counter() - began < 2


class TestVertical:
    def test_a_line_per_value_under_the_rows_number(self) -> None:
        page = vertical_page(("id", "long name"), [("a", 1), ("b", None)], 80)
        assert [line.rstrip("─") for line in page.lines] == [
            "─[ 1 ]",
            "id        │ a",
            "long name │ 1",
            "─[ 2 ]",
            "id        │ b",
            "long name │ -",
        ]

    def test_a_node_is_told_column_by_column(self) -> None:
        node = {"_label": "Budget", "id": "cases", "limit": 3, "used": None}
        page = answer_page(Table(("b",), [(node,)]), 80)
        assert [line.rstrip("─") for line in page.lines] == [
            "─[ 1 ]",
            "b       │ (:Budget cases)",
            "b.id    │ cases",
            "b.limit │ 3",
            "b.used  │ -",
        ]

    def test_a_long_value_goes_on_below_and_ends_with_its_length(self) -> None:
        page = vertical_page(("v",), [("word " * 10,)], 30)
        assert all(width(line) <= 30 for line in page.lines[1:])
        assert len(page.lines) == 3
        endless = vertical_page(("v",), [("x" * 300_000,)], 30)
        assert len(endless.lines) == 1 + LINES_PER_VALUE_MAX + 1
        assert "300,000 characters" in endless.lines[-1]

    def test_it_is_taken_where_rows_do_not_fit_or_always(self) -> None:
        wide = Table(tuple("abcdefgh"), [tuple("value " * 9 for _ in range(8))])
        assert answer_page(wide, 60).lines[0].startswith("─[ 1 ]")
        assert answer_page(wide, 600).lines[0].startswith("a ")
        assert answer_page(Table(("a",), [(1,)]), 60, "on").lines[0].startswith("─[ 1 ]")


def test_a_plan_is_shown_as_it_is_drawn() -> None:
    assert answer_page(Table(("explain result",), [("┌──┐\n└──┘\n",)]), 80).lines == ["┌──┐", "└──┘"]


def test_no_rows_are_no_lines() -> None:
    assert answer_page(Table(("a",), []), 80).lines == []


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (count_line(0), "(0 rows)"),
        (count_line(1, milliseconds=3.4), "(1 row, 3 ms)"),
        (count_line(10_000, more=True, milliseconds=12_345), "(10,000 rows shown, there are more, 12.3 s)"),
    ],
)
def test_the_count_says_how_many_and_how_long(line: str, told: str) -> None:
    assert line == told
