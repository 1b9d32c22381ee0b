"""`forktrail shell`: ask a run's graph in Cypher, interactively or in a script."""

from __future__ import annotations

import argparse
import io
import sys
from collections.abc import Iterator

from forktrail_lab.console.arguments import add_format, add_run, split_pair
from forktrail_lab.console.output import Format
from forktrail_lab.shell.face import Face, Pipe, Screen
from forktrail_lab.shell.graph_source import GraphSource
from forktrail_lab.shell.named import NamedQueries
from forktrail_lab.shell.parameters import parameter_value
from forktrail_lab.shell.preferences import ROWS_MAX, Preferences
from forktrail_lab.shell.script import run_script
from forktrail_lab.shell.session import Session
from forktrail_schemas.errors import ExitCode
from forktrail_schemas.settings import Settings

EXAMPLE = """\
  forktrail shell $RUN
  forktrail shell $RUN -c 'MATCH (f:Finding) RETURN f.id, f.test' --format csv
  echo 'MATCH (c:`Case`) RETURN c.status, count(*);' | forktrail shell $RUN"""

FOLDER, HISTORY_FILE, QUERIES_FILE = "shell", "history", "queries.json"


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the run, statements to run without a terminal, and the form of their answers."""
    add_run(parser)
    parser.add_argument(
        "-c", "--command", dest="commands", action="append", metavar="QUERY",
        help="run this and leave; may be given several times. Exit code 1 if one fails",
    )  # fmt: skip
    add_format(parser, rows=True)
    parser.add_argument(
        "--param", dest="parameters", type=split_pair, action="append", default=[], metavar="name=value",
        help="for $name; a whole number, true, false, null or quoted string, else taken as text",
    )  # fmt: skip
    parser.add_argument(
        "--limit", type=_limit, metavar="N",
        help=f"the most rows to bring back (default: {ROWS_MAX:,} at a terminal, else all)",
    )  # fmt: skip
    parser.add_argument("--vi", action="store_true", help="edit the input line as in vi")


def run(arguments: argparse.Namespace, settings: Settings) -> int:
    """Talk to whoever is at the terminal, or run what comes through the pipe.

    Raises:
        NotFound: no such run.
        GraphError: the graph can't be opened.
        LogUnavailable: Kafka doesn't answer.
    """
    interactive = not arguments.commands and sys.stdin.isatty() and sys.stdout.isatty()
    preferences = Preferences(rows_max=arguments.limit, timing=interactive, vi=arguments.vi)
    if interactive and arguments.limit is None:
        preferences.rows_max = ROWS_MAX
    face: Face = Screen(preferences) if interactive else Pipe(arguments.format, preferences)
    folder = settings.home / FOLDER
    source = GraphSource(settings, arguments.run, face.say)
    session = Session(source, face, NamedQueries(folder / QUERIES_FILE), preferences)
    session.parameters.update({name: parameter_value(text) for name, text in arguments.parameters})
    try:
        source.standing()
        if interactive:
            from forktrail_lab.shell.interactive import run_interactive  # a script needs no prompt

            if arguments.format != Format.TABLE:
                face.say(f"answers are tables at a terminal; `:export FILE.{arguments.format}` writes the other")
            run_interactive(session, folder / HISTORY_FILE)
            return ExitCode.OK
        return ExitCode.OK if run_script(session, _lines(arguments.commands)) else ExitCode.ERROR
    finally:
        source.close()


def _lines(commands: list[str] | None) -> Iterator[str]:
    """The lines to run: those of the commands, each of which ends a statement, or stdin's."""
    if commands is None:
        if isinstance(sys.stdin, io.TextIOWrapper):
            # Whatever the locale; a byte that isn't UTF-8 fails the statement it stands in, not those around it.
            sys.stdin.reconfigure(encoding="utf-8", errors="surrogateescape")
        yield from sys.stdin
        return
    for command in commands:
        yield from f"{command}\n;\n".splitlines(keepends=True)


def _limit(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and 0 < int(text) <= 1_000_000_000):
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number from 1")
    return int(text)
