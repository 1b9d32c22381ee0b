"""Arguments that several commands take, each declared in one place."""

from __future__ import annotations

import argparse
import getpass
from typing import Any

from pydantic import TypeAdapter, ValidationError

from forktrail_lab.console.output import Format
from forktrail_schemas.values import Name, RunId

ADMIN_KEY = "admin"
_ROWS_HELP = (
    'in csv a null is an empty field and an empty text is ""; a number that JSON lacks is the text NaN, Infinity or'
    " -Infinity"
)
_RUN_ID: TypeAdapter[str] = TypeAdapter(RunId)
_NAME: TypeAdapter[str] = TypeAdapter(Name)


def add_actions(parser: argparse.ArgumentParser, metavar: str) -> Any:
    """Let the command have actions; add each with `add_action`."""
    return parser.add_subparsers(dest="action", required=True, metavar=metavar)


def add_action(actions: Any, name: str, summary: str, example: str) -> argparse.ArgumentParser:
    """Declare one action of a command, with its example at the end of its help."""
    parser: argparse.ArgumentParser = actions.add_parser(
        name,
        help=summary,
        description=summary[0].upper() + summary[1:] + ".",
        epilog=f"example:\n{example}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    return parser


def add_run(parser: argparse.ArgumentParser) -> None:
    """The run, as `run`."""
    parser.add_argument("run", type=run_id, metavar="RUN", help="run id, as `forktrail run list` shows it")


def add_case(parser: argparse.ArgumentParser) -> None:
    """The case, as `case`."""
    parser.add_argument("case", metavar="CASE", help="case id, or the first characters of one")


def add_key(parser: argparse.ArgumentParser, default: str | None = None, *, unless: str = "") -> None:
    """The name of the key that signs, as `key`; required where there is neither a default nor an `unless`.

    Args:
        unless: an option that makes the key needless; the command itself then insists on one of the two.
    """
    shown = f" (default: {default})" if default else f" (not needed with {unless})" if unless else ""
    parser.add_argument(
        "--key", metavar="NAME", default=default, required=not (default or unless), help=f"key that signs{shown}"
    )


def add_reason(parser: argparse.ArgumentParser, *, required: bool = False) -> None:
    """Words for the record, as `reason`."""
    words = some_words if required else str
    parser.add_argument(
        "--reason", metavar="TEXT", type=words, default="", required=required, help="why, for the record"
    )


def add_actor(parser: argparse.ArgumentParser, help: str) -> None:
    """Who says it, as `actor`."""
    parser.add_argument("--as", dest="actor", type=_name, metavar="NAME", help=help)


def some_words(text: str) -> str:
    """Words that say something.

    Raises:
        argparse.ArgumentTypeError: it is blank.
    """
    if not text.strip():
        raise argparse.ArgumentTypeError("it is blank: say it in words")
    return text


def add_format(parser: argparse.ArgumentParser, *, rows: bool = False) -> None:
    """Table or JSON, as `format`.

    Args:
        rows: whether the command prints rows, which may be CSV too.
    """
    formats = [Format.TABLE, Format.JSON, *([Format.CSV] if rows else [])]
    parser.add_argument(
        "--format",
        choices=[str(name) for name in formats],
        default=str(Format.TABLE),
        help=f"(default: table){f'; {_ROWS_HELP}' if rows else ''}",
    )


def run_id(text: str) -> str:
    """A well-formed run id; it becomes part of file and topic names.

    Raises:
        argparse.ArgumentTypeError: it isn't one.
    """
    try:
        return _RUN_ID.validate_python(text)
    except ValidationError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is no run id: lower-case letters, digits and '-', 63 at most"
        ) from None


def offset(text: str) -> int:
    """An offset in a run's log.

    Raises:
        argparse.ArgumentTypeError: it is none.
    """
    if not (text.isascii() and text.isdecimal() and len(text) <= 18):
        raise argparse.ArgumentTypeError(f"{text!r} is no offset: a whole number from 0")
    return int(text)


def login_name() -> str:
    """The name of whoever runs the command, as a default for who says something."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a user id without a name, as in many containers
        return "unknown"


def split_pair(text: str) -> tuple[str, str]:
    """The two sides of `name=value`.

    Raises:
        argparse.ArgumentTypeError: there is no '=' after a name.
    """
    name, separator, value = text.partition("=")
    if not separator or not name:
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form name=value")
    return name, value


def _name(text: str) -> str:
    try:
        return _NAME.validate_python(text)
    except ValidationError:
        raise argparse.ArgumentTypeError(f"{text!r} is no name: one line, 256 characters at most") from None
