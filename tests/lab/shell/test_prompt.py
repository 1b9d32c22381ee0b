"""The prompt and the pager driven by keys. No broker, no terminal."""

from __future__ import annotations

import stat
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from prompt_toolkit.enums import EditingMode
from prompt_toolkit.history import InMemoryHistory
from prompt_toolkit.input import PipeInput, create_pipe_input
from prompt_toolkit.output import DummyOutput

from forktrail_lab.shell.history import ShellHistory
from forktrail_lab.shell.interactive import converse
from forktrail_lab.shell.lexer import ShellLexer
from forktrail_lab.shell.pager import View, external_pager, page_inside
from forktrail_lab.shell.prompt import Prompt, toolbar
from forktrail_lab.shell.pulse import Pulse
from forktrail_lab.shell.source import Standing
from forktrail_lab.shell.table import Page
from forktrail_schemas.errors import LogUnavailable
from support.shell import Shell

ENTER, CTRL_C, CTRL_D, ALT_ENTER, F4 = "\r", "\x03", "\x04", "\x1b\r", "\x1bOS"


@pytest.fixture
def keys() -> Iterator[PipeInput]:
    with create_pipe_input() as pipe:
        yield pipe


@pytest.fixture
def prompt(shell: Shell, keys: PipeInput) -> Prompt:
    return Prompt(shell.session, Pulse(shell.session), InMemoryHistory(), input=keys, output=DummyOutput())


class TestTyping:
    def test_a_statement_goes_on_until_it_says_all(self, prompt: Prompt, keys: PipeInput) -> None:
        keys.send_text(f"MATCH (f:Finding){ENTER}WHERE f.depth > 0{ENTER}RETURN f.id{ENTER}")
        assert prompt.read() == "MATCH (f:Finding)\nWHERE f.depth > 0\nRETURN f.id"

    def test_a_semicolon_or_an_empty_line_ends_it(self, prompt: Prompt, keys: PipeInput) -> None:
        keys.send_text(f"MATCH (f:Finding);{ENTER}MATCH (f{ENTER}{ENTER}")
        assert prompt.read() == "MATCH (f:Finding);"
        assert prompt.read() == "MATCH (f\n"

    def test_alt_enter_starts_another_line_in_any_case(self, prompt: Prompt, keys: PipeInput) -> None:
        keys.send_text(f"RETURN 1 AS x{ALT_ENTER}ORDER BY x{ENTER}")
        assert prompt.read() == "RETURN 1 AS x\nORDER BY x"

    def test_pasted_lines_are_one_text(self, prompt: Prompt, keys: PipeInput) -> None:
        keys.send_text(f"\x1b[200~RETURN 1;\nRETURN 2;\n\nMATCH (a)\x1b[201~ RETURN a{ENTER}")
        assert prompt.read() == "RETURN 1;\nRETURN 2;\n\nMATCH (a) RETURN a"

    def test_ctrl_c_clears_and_ctrl_d_leaves(self, prompt: Prompt, keys: PipeInput) -> None:
        keys.send_text(f"RETURN 1{CTRL_C}")
        with pytest.raises(KeyboardInterrupt):
            prompt.read()
        keys.send_text(CTRL_D)
        with pytest.raises(EOFError):
            prompt.read()

    def test_f4_changes_the_keys(self, shell: Shell, prompt: Prompt, keys: PipeInput) -> None:
        keys.send_text(f"{F4}RETURN 1{ENTER}")
        assert prompt.read() == "RETURN 1"
        assert shell.session.preferences.vi
        assert prompt._prompt.editing_mode is EditingMode.VI
        keys.send_text(f"RETURN 1\x1bxa2{ENTER}")  # x in vi's navigation takes the last letter away
        assert prompt.read() == "RETURN 2"


def test_a_conversation_goes_on_after_errors_and_ends_with_ctrl_d(
    shell: Shell, prompt: Prompt, keys: PipeInput
) -> None:
    keys.send_text(f"RETURN 1 +;{ENTER}{ENTER}half{CTRL_C}RETURN 7 AS n{ENTER}:limit 5{ENTER}{CTRL_D}")
    converse(shell.session, prompt)
    assert len(shell.face.failed) == 1
    assert shell.face.rows == [(7,)]
    assert shell.session.preferences.rows_max == 5
    keys.send_text(f":quit{ENTER}")
    converse(shell.session, prompt)


class TestToolbar:
    def text(self, shell: Shell, pulse: Pulse, columns: int = 100) -> str:
        return "".join(part[1] for part in toolbar(shell.session, pulse, columns))

    def test_it_says_where_the_run_stands(self, shell: Shell) -> None:
        pulse = Pulse(shell.session)
        assert self.text(shell, pulse).split() == ["story", "…", "F4", "emacs", ":help"]
        pulse.once()
        assert self.text(shell, pulse).startswith(" story  offset 4 of 4  nobody ")
        shell.source.behind = 1_200
        pulse.once()
        assert " 1,200 behind " in self.text(shell, pulse)
        shell.source.fails = [LogUnavailable("Kafka is away\x1b[2J")]
        pulse.once()
        assert "Kafka is away\\x1b[2J" in self.text(shell, pulse)
        pulse.once()
        assert "Kafka" not in self.text(shell, pulse)

    def test_it_fits_a_narrow_screen(self, shell: Shell) -> None:
        pulse = Pulse(shell.session)
        pulse.once()
        assert len(self.text(shell, pulse, 100)) == 100
        assert "F4" not in self.text(shell, pulse, 40)

    def test_it_beats_only_while_somebody_is_at_the_prompt(self, shell: Shell) -> None:
        pulse = Pulse(shell.session, interval_seconds=0.001)
        beaten = threading.Event()
        standing = shell.source.standing

        def spy() -> Standing:
            beaten.set()
            return standing()

        shell.source.standing = spy  # type: ignore[method-assign]  # a spy
        pulse.start()
        assert not beaten.is_set()
        with pulse.beating():
            assert beaten.wait(10)
        pulse.stop()
        pulse._thread.join(10)
        assert not pulse._thread.is_alive()


class TestHistory:
    def test_it_lasts_and_is_readable_by_its_owner_alone(self, tmp_path: Path) -> None:
        path = tmp_path / "shell" / "history"
        history = ShellHistory(path)
        for text in ("RETURN 1", "RETURN 1", "MATCH (a)\nRETURN a", "RETURN 1"):
            history.append_string(text)
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
        assert list(ShellHistory(path).load_history_strings()) == ["RETURN 1", "MATCH (a)\nRETURN a", "RETURN 1"]

    def test_a_file_that_others_could_read_is_closed_to_them(self, tmp_path: Path) -> None:
        path = tmp_path / "history"
        path.touch(mode=0o644)
        ShellHistory(path)
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def kinds(text: str) -> list[tuple[str, str]]:
    """The kinds of a text's parts that have a colour, with the parts."""
    return [(str(kind), part) for _, kind, part in ShellLexer().get_tokens_unprocessed(text) if part.strip()]


def test_colours_know_parameters_and_commands() -> None:
    assert ("Token.Name.Variable", "$") in kinds("RETURN $x")
    assert kinds("RETURN 1")[0] == ("Token.Keyword", "RETURN")
    assert kinds(":watch 2 RETURN 1")[0] == ("Token.Keyword.Pseudo", ":watch")
    assert ("Token.Keyword", "RETURN") in kinds(":watch 2 RETURN 1")
    for text in ("", ":", "RETURN 'open", "MATCH (c:`Case`) // x", ":x\n(("):
        assert "".join(part for _, _, part in ShellLexer().get_tokens_unprocessed(text)) == text


class TestPager:
    PAGE = Page(("head", "────"), [f"line {number}" for number in range(10_000)])

    def pressed(self, keys: PipeInput, text: str) -> list[str]:
        """What is seen when the pager is left after some keys; the screen has 40 lines, of which 37 move."""
        keys.send_text(text)
        page = page_inside(self.PAGE, keys, DummyOutput())
        assert page.head == self.PAGE.head
        return list(page.body)

    @pytest.mark.parametrize(
        ("typed", "first"),
        [
            ("q", 0),
            ("jjq", 2),
            ("jkkq", 0),
            (" q", 37),
            ("  bq", 37),
            ("Gq", 10_000 - 37),
            ("Ggq", 0),
            ("dq", 18),
            ("/line 777\rq", 777),
            ("/LINE 777\rnq", 7770),
            ("/line 777\rnNq", 777),
            ("/nothing\rq", 0),
            ("/lime\x7f\x7fne 5000\rq", 5000),
            ("/line 5\x03q", 0),
            ("jj\x03", 2),
        ],
    )
    def test_keys_move_it(self, typed: str, first: int, keys: PipeInput) -> None:
        assert self.pressed(keys, typed) == [f"line {number}" for number in range(first, first + 37)]

    def test_the_bottom_line_says_where_one_is(self) -> None:
        view = View(self.PAGE, height=20)
        assert view.status().startswith("lines 1-20 of 10,000")
        view.move(5)
        assert view.status().startswith("lines 6-25 of 10,000")
        view.pattern = "nothing"
        view.search()
        assert "no further line has 'nothing'" in view.status()
        view.typing = "abc"
        assert view.status() == "/abc"

    def test_a_page_shorter_than_the_screen_stays_at_its_top(self) -> None:
        view = View(Page((), ["one"]), height=20)
        view.move(1)
        assert (view.top, list(view.visible())) == (0, ["one"])
        view.go(100)
        assert (view.top, list(view.visible())) == (0, ["one"])


@pytest.mark.parametrize(
    ("choice", "environment", "words"),
    [
        ("auto", {}, None),
        ("auto", {"PAGER": "less -R"}, ["less", "-R"]),
        ("auto", {"PAGER": "  "}, None),
        ("builtin", {"PAGER": "less"}, None),
        ("most 'a b'", {"PAGER": "less"}, ["most", "a b"]),
        ("broken 'quote", {}, None),
    ],
)
def test_the_pager_is_the_users_choice(choice: str, environment: dict[str, str], words: list[str] | None) -> None:
    assert external_pager(choice, environment) == words
