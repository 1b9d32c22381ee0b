"""Every command explains itself: help, an example, and usage errors with exit code 2. No broker."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import pytest

from forktrail_lab import cli
from support.command_line import CommandLine


@pytest.fixture
def forktrail(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> CommandLine:
    monkeypatch.setenv("COLUMNS", "200")
    return CommandLine(capsys)


def parsers(name: str) -> Iterator[argparse.ArgumentParser]:
    """A command's parser and those of its actions."""
    parser = cli.command_parser(name, cli.load_command(name))
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            yield from action.choices.values()


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_every_command_has_help_with_an_example(name: str, forktrail: CommandLine) -> None:
    said = forktrail(name, "--help")
    assert said.code == 0
    assert "example:" in said.out
    assert f"forktrail {name}" in said.out.partition("example:")[2]


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_every_argument_of_every_action_is_explained(name: str) -> None:
    for parser in parsers(name):
        for action in parser._actions:
            choices = action.choices if isinstance(action, argparse._SubParsersAction) else None
            assert action.help or action.choices or choices, f"{parser.prog}: {action.dest} has no help"


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_an_unknown_option_is_a_usage_error(name: str, forktrail: CommandLine) -> None:
    said = forktrail(name, "--no-such-option")
    assert said.code == 2
    assert said.out == ""
    assert "usage:" in said.err


def test_handoffs_usage_shows_both_that_it_writes_and_that_it_verifies(forktrail: CommandLine) -> None:
    usage = forktrail("handoff", "--help").out.partition("\n\n")[0]
    assert "forktrail handoff RUN [--output FILE]" in usage
    assert "forktrail handoff verify FILE [--signature FILE] [--signer NAME|KEYID] [--with-log]" in usage


def test_the_overview_names_every_command(forktrail: CommandLine) -> None:
    said = forktrail("--help")
    assert said.code == 0
    for name, command in cli.COMMANDS.items():
        assert name in said.out
        assert command.summary in said.out


def test_an_unknown_command_is_a_usage_error(forktrail: CommandLine) -> None:
    said = forktrail("no-such-command")
    assert said.code == 2
    assert said.err.count("\n") == 1


@pytest.mark.parametrize(
    "words",
    [
        ("run", "show", "../up"),
        ("run", "show", "Run-1"),
        ("tail", "run-1", "--from", "-1"),
        ("query", "run-1", "RETURN 1", "--timeout", "0"),
        ("query", "run-1", "RETURN 1", "--timeout", "nan"),
        ("query", "run-1", "RETURN 1", "--param", "no-equals-sign"),
        ("query", "run-1", "RETURN $p", "--param", "p=9223372036854775808"),
        ("query", "run-1", "RETURN $p", "--param", "p=\udcff"),
        ("query", "run-1", "RETURN '\udcff'"),
        ("set", "run-1", "=true"),
        ("set", "run-1", "no-such-setting=true"),
        ("set", "run-1", "same-person-may-review=maybe"),
        ("budget", "run-1", "no-such-budget=1"),
        ("budget", "run-1", "cases=-1"),
        ("budget", "run-1", "cases=1.5"),
        ("budget", "run-1", "cases=99999999999999999999"),
        ("review", "run-1", "case-1", "perhaps", "--key", "ravi"),
        ("approve", "run-1", "case-1"),
        ("report", "run-1", "a-test", "--summary", "x", "--as", "two\nlines"),
        ("report", "run-1", "a-test", "--summary", ""),
        ("report", "run-1", "a-test", "--summary", "two\nlines"),
        ("report", "run-1", "a-test", "--summary", "x" * 257),
        ("report", "run-1", "a-test", "--summary", " \t\n"),
        ("revision", "advance", "run-1", "r2"),
        ("withdraw", "run-1", "finding-1"),
        ("case", "list", "run-1", "--status", "lost"),
        ("case", "show", "run-1"),
        ("evidence", "show", "run-1"),
        ("key", "register", "run-1", "olga", "--role", "emperor"),
        ("key", "register", "run-1", "olga", "--role", "operator", "--public-key", "beef"),
        ("key", "new", "../olga"),
        ("run", "open", "--registry", __file__, "--goal", "this file is no registry"),
        ("schema", "declare", "run-1", __file__),
        ("schema", "declare", "run-1"),
    ],
)
def test_wrong_words_are_a_usage_error_before_anything_is_asked_or_sent(
    words: tuple[str, ...], forktrail: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORKTRAIL_BOOTSTRAP_SERVERS", "127.0.0.1:1")  # where nothing answers
    said = forktrail(*words)
    assert said.code == 2, said
    assert said.out == ""
