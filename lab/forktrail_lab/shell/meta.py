"""The commands to the shell itself, `:name words`: what there is, what each takes, and the help about it all."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from forktrail_lab.console.widths import wrapped
from forktrail_lab.shell.answer import EXPAND
from forktrail_lab.shell.source import UNOWNED
from forktrail_lab.shell.statements import META
from forktrail_schemas.errors import InvalidInput


class Takes(Enum):
    """What a command takes, in the order in which it takes it; decides what is offered there."""

    LABEL = "label"
    FILE = "file"
    QUERY = "query"
    NEW_NAME = "new name"
    NAMED = "name of a query"
    PAIRS = "name=value"
    SECONDS = "seconds"
    OTHER = "other"


@dataclass(frozen=True)
class MetaCommand:
    """A command: how it is written, what it does, and what it takes.

    Attributes:
        words: words to choose from, where it takes one of a few.
    """

    name: str
    usage: str
    summary: str
    takes: tuple[Takes, ...] = ()
    words: tuple[str, ...] = ()


_COMMANDS = (
    MetaCommand("help", ":help [COMMAND]", "this, or more about one command", (Takes.OTHER,)),
    MetaCommand("schema", ":schema [LABEL]", "labels and relation types, or the columns of one", (Takes.LABEL,)),
    MetaCommand("events", ":events [N|--follow]", "the last N events with their verdicts, or each as it comes",
                (Takes.OTHER,), ("--follow",)),
    MetaCommand("named", ":named", "the queries that have a name"),
    MetaCommand("run", ":run NAME [VALUE …]", "run a named query; values for its parameters, name=value or in order",
                (Takes.NAMED, Takes.PAIRS)),
    MetaCommand("name", ":name NAME QUERY", "keep a query under a name, for this and later sessions",
                (Takes.NEW_NAME, Takes.QUERY)),
    MetaCommand("unname", ":unname NAME", "forget a query of yours", (Takes.NAMED,)),
    MetaCommand("watch", ":watch [SECONDS] [QUERY]", "ask again and again, the last query or another; Ctrl-C ends it",
                (Takes.SECONDS, Takes.QUERY)),
    MetaCommand("export", ":export [--replace] FILE [QUERY]",
                "write all rows of a query, or of the last one, to a .csv or .json file", (Takes.FILE, Takes.QUERY)),
    MetaCommand("param", ":param NAME=VALUE", "give $NAME a value; `:param NAME=` takes it away", (Takes.PAIRS,)),
    MetaCommand("params", ":params", "the parameters that have a value"),
    MetaCommand("expand", ":expand auto|on|off", "a line per value: where rows don't fit, always, never",
                (Takes.OTHER,), EXPAND),
    MetaCommand("limit", ":limit N|off", "the most rows to bring back", (Takes.OTHER,), ("off",)),
    MetaCommand("timeout", ":timeout SECONDS|off", "how long a query may take", (Takes.OTHER,), ("off",)),
    MetaCommand("timing", ":timing on|off", "whether to say how long a query took", (Takes.OTHER,), ("on", "off")),
    MetaCommand("pager", ":pager auto|builtin|off|COMMAND", "where long answers go: auto is $PAGER, else the built-in",
                (Takes.OTHER,), ("auto", "builtin", "off")),
    MetaCommand("keys", ":keys emacs|vi", "how the input line is edited (F4 changes it too)",
                (Takes.OTHER,), ("emacs", "vi")),
    MetaCommand("position", ":position", "where the graph stands against the log, and who holds it"),
    MetaCommand("quit", ":quit", "leave (so do `exit`, `quit` and Ctrl-D)"),
)  # fmt: skip
COMMANDS: Mapping[str, MetaCommand] = {command.name: command for command in _COMMANDS}

KEYS_HELP = (
    ("Enter", "run, once brackets and quotes are closed and a RETURN says what is asked; else go on in another line"),
    ("; Enter", "run as it is; so does Enter on an empty line"),
    ("Alt-Enter", "another line in any case"),
    ("Tab", "complete; → takes the grey suggestion from the history"),
    ("Ctrl-R", "search the history"),
    ("Ctrl-C", "cancel the running query, or clear the input"),
    ("Ctrl-X Ctrl-E", "edit the statement in $EDITOR"),
)


def parsed(text: str) -> tuple[MetaCommand, str]:
    """The command that a line begins with, and the rest of the line.

    A command may be cut short as long as no other begins so.

    Raises:
        InvalidInput: there is no such command, or several begin so.
    """
    words = text.lstrip().removeprefix(META).split(maxsplit=1)
    name = words[0].lower() if words else "help"
    rest = words[1] if len(words) > 1 else ""
    if name in COMMANDS:
        return COMMANDS[name], rest
    begun = [command for command in COMMANDS if command.startswith(name)]
    if len(begun) == 1:
        return COMMANDS[begun[0]], rest
    if begun:
        raise InvalidInput(f":{name} could be {', '.join(META + command for command in begun)}")
    raise InvalidInput(f"there is no command :{name}", hint=":help lists them")


def query_of(text: str) -> str | None:
    """The query inside a command that takes one; None where it takes none, "" where none is typed yet."""
    try:
        command, rest = parsed(text)
    except InvalidInput:
        return None
    if Takes.QUERY not in command.takes:
        return None
    return split_words(command, rest)[1]


def split_words(command: MetaCommand, rest: str) -> tuple[list[str], str]:
    """The words before a command's query, and the query.

    `--options` and a number of seconds may be left out; a file's name may stand in quotes, with spaces in it.
    """
    words: list[str] = []
    for kind in command.takes:
        if kind is Takes.QUERY:
            break
        word, left = next_word(rest)
        while word.startswith("--"):
            words.append(word)
            word, left = next_word(left)
        if kind is Takes.SECONDS and not _is_number(word):
            break
        if word:
            words.append(word)
        rest = left
    return words, rest.lstrip()


def next_word(text: str) -> tuple[str, str]:
    """The first word of a text, without quotes around it, and the rest."""
    text = text.lstrip()
    if text[:1] in ("'", '"') and (end := text.find(text[0], 1)) > 0:
        return text[1:end], text[end + 1 :]
    word = text.split(maxsplit=1)[0] if text else ""
    return word, text[len(word) :]


def help_lines(screen: int) -> list[str]:
    """The help about everything, for a screen of so many columns."""
    return [
        *wrapped("Statements in Cypher, read-only; each is answered as of the log's end at that moment.", screen),
        "",
        *_told([(command.usage, command.summary) for command in _COMMANDS], screen),
        "",
        *_told(KEYS_HELP, screen),
        "",
        *wrapped("Case is a word of Cypher: write (c:`Case`). Times are microseconds since 1970 (UTC).", screen),
        "",
        *wrapped(
            "Below the input stand the run, the offset up to which the graph is folded, the log's end, and who folds:"
            f" a projector's process, or else this shell, `{UNOWNED}`. New events are `behind` until then; every answer"
            " has them all.",
            screen,
        ),
    ]


def _told(pairs: Sequence[tuple[str, str]], screen: int) -> Iterator[str]:
    """What each thing does, in a column beside it."""
    width = max(len(thing) for thing, _ in pairs)
    for thing, told in pairs:
        for piece in wrapped(told, max(20, screen - width - 4)):
            yield f"  {thing:<{width}}  {piece}"
            thing = ""


def _is_number(text: str) -> bool:
    return text.replace(".", "", 1).isdigit() and text.isascii()
