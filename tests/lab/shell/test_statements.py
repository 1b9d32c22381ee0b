"""Where a statement ends, when Enter runs it, and what is a comment. No broker."""

from __future__ import annotations

import pytest

from forktrail_lab.shell.dispatch import is_finished
from forktrail_lab.shell.statements import ScriptReader, is_complete, split, statements, writes
from forktrail_lab.shell.tokens import flattened, parameter_names, tokenize
from forktrail_projectors.graph.readonly import check_read_only
from forktrail_schemas.errors import InvalidInput


@pytest.mark.parametrize(
    "text",
    [
        "MATCH (f:Finding) RETURN f",
        "MATCH (f:Finding)\nRETURN f.id AS id ORDER BY id",
        "RETURN 1",
        "RETURN *",
        "MATCH (f:Finding);",
        "MATCH (f:Finding\n",
        "MATCH (a) RETURN a UNION MATCH (b) RETURN b",
        "CALL show_tables() RETURN *",
        "RETURN 'a ( in a string'",
        "MATCH (n:`odd ( name`) RETURN n",
        "MATCH (a:Asset) SET a.id = 'x'",
        "CREATE (:Asset {id: 'x'})",
        "EXPLAIN MATCH (f:Finding) RETURN f",
        "RETURN 1 // why [",
        "",
        "   ",
    ],
)
def test_enter_runs_what_says_all_that_it_must(text: str) -> None:
    assert is_complete(text)


@pytest.mark.parametrize(
    "text",
    [
        "MATCH (f:Finding)",
        "MATCH (f:Finding) WHERE f.depth > 1",
        "MATCH (f:Finding) RETURN",
        "MATCH (f:Finding) RETURN f.id,",
        "MATCH (f:Finding) RETURN f.id AS",
        "MATCH (f:Finding) RETURN f.id ORDER BY",
        "MATCH (f:Finding) RETURN f.",
        "RETURN 1 +",
        "RETURN (1",
        "RETURN [1, 2",
        "RETURN 'not closed;",
        "MATCH (n:`not closed RETURN n",
        "MATCH (a) RETURN a UNION",
        "MATCH (a) RETURN a UNION ALL",
        "MATCH (a) RETURN a UNION MATCH (b)",
        "MATCH (a) WHERE EXISTS { MATCH (a)-->(b) RETURN b }",
        "MATCH (a) WHERE a.return = 1",
        "// RETURN\nMATCH (f)",
    ],
)
def test_enter_goes_on_with_what_does_not(text: str) -> None:
    assert not is_complete(text)


def test_an_empty_line_or_a_semicolon_runs_it_in_any_case() -> None:
    assert is_complete("MATCH (f:Finding)\n")
    assert is_complete("MATCH (f:Finding)\nWHERE f.depth = 1\n  ")
    assert is_complete("MATCH (f:Finding);")
    assert not is_complete("RETURN 'text;")


@pytest.mark.parametrize(
    ("text", "finished"),
    [
        (":help", True),
        (":watch", True),
        (":watch 2", True),
        (":watch 2 MATCH (f:Finding)", False),
        (":watch 2 MATCH (f:Finding) RETURN f", True),
        (":name open MATCH (c)\nRETURN c", True),
        (":name open MATCH (c", False),
        (":export out.csv", True),
        (":no-such-command (", True),
    ],
)
def test_a_command_with_a_query_goes_on_as_the_query_does(text: str, finished: bool) -> None:
    assert is_finished(text) is finished


def test_statements_are_cut_at_semicolons_outside_of_quotes() -> None:
    assert split('RETURN \';\'; RETURN `a;b`;\nRETURN "x\\";"') == (["RETURN ';'", " RETURN `a;b`"], '\nRETURN "x\\";"')
    assert statements("RETURN 1;; ;RETURN 2") == ["RETURN 1", "RETURN 2"]
    assert statements("// only a comment; nothing else\n") == []


def test_a_script_comes_line_by_line() -> None:
    reader = ScriptReader()
    found = [
        reader.feed(line)
        for line in (
            "MATCH (f)\n",
            "\n",
            "RETURN f; RETURN\n",
            ":not a command, but a label\n",
            "2;\n",
            "  :help keys\n",
            "// a note; with a semicolon\n",
            ":position\n",
            "RETURN 3\n",
        )
    ]
    whole = [piece for pieces in found for piece in pieces]
    assert [bool(pieces) for pieces in found] == [False, False, True, False, True, True, False, True, False]
    assert whole == [
        "MATCH (f)\n\nRETURN f",
        " RETURN\n:not a command, but a label\n2",
        ":help keys",
        ":position",
    ]
    assert reader.rest() == ["RETURN 3\n"]
    assert reader.rest() == []


@pytest.mark.parametrize(
    ("text", "writing"),
    [
        ("CREATE (:Asset {id: 'x'})", True),
        ("MATCH (a) DETACH DELETE a", True),
        ("match (a) set a.id = 1", True),
        ("MATCH (a) WHERE a.set = 'CREATE' RETURN a.delete", False),
        ("MATCH (a:Create) RETURN a AS set", False),
        ("RETURN 'DROP TABLE x'", False),
    ],
)
def test_what_writes_is_told_by_its_words(text: str, writing: bool) -> None:
    assert writes(text) is writing


def test_a_statement_on_one_line_keeps_every_character_at_its_place() -> None:
    text = "MATCH (a) // why ' not\nWHERE a.id = 'two\nlines // here' RETURN\ta"
    flat = flattened(text)
    assert len(flat) == len(text)
    assert flat == "MATCH (a)              WHERE a.id = 'two\nlines // here' RETURN a"


@pytest.mark.parametrize(
    "text",
    ["RETURN 1 // 'x", "RETURN 1 /* x */", "RETURN 'a // b'", "RETURN `//`", "RETURN 1 /***/ + 1", "RETURN '\\' // '"],
)
def test_what_is_taken_out_as_a_comment_is_one_to_the_graph_too(text: str) -> None:
    """The graph refuses comments; only those that it would refuse are taken out, and block comments stay refused."""
    has_line_comment = any(token.kind == "comment" and token.text.startswith("//") for token in tokenize(text))
    refused = False
    try:
        check_read_only(text)
    except InvalidInput as error:
        refused = "comment" in error.message
    if has_line_comment:
        assert refused
        check_read_only(flattened(text))
    else:
        assert flattened(text) == text


def test_parameters_are_named_once_in_their_order_and_not_in_strings() -> None:
    assert parameter_names("MATCH (a {id: $b}) WHERE a.x = $a AND a.y = $b RETURN '$c', `$d`") == ["b", "a"]
