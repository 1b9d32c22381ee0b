"""What each command to the shell does."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from pathlib import Path

from forktrail_lab.console.output import counted
from forktrail_lab.shell import events, schema_text
from forktrail_lab.shell.asking import Question
from forktrail_lab.shell.export import check_file, write_file
from forktrail_lab.shell.meta import COMMANDS, help_lines, parsed, split_words
from forktrail_lab.shell.named import arguments
from forktrail_lab.shell.parameters import parameter_pair, require_values
from forktrail_lab.shell.session import Session
from forktrail_lab.shell.statements import META
from forktrail_lab.shell.table import Page
from forktrail_lab.shell.tokens import parameter_names
from forktrail_lab.shell.watch import SECONDS, SECONDS_MIN, watch
from forktrail_projectors.graph.protocol import Table
from forktrail_schemas.errors import InvalidInput

COUNT_MAX = 1_000_000
TIMEOUT_SECONDS_MAX = 86_400


class Leave(Exception):
    """The user wants to leave the shell."""


def perform(session: Session, text: str) -> None:
    """Do what a line says that begins with a colon.

    Raises:
        ForktrailError: it can't be done.
        Leave: by `:quit`.
    """
    command, rest = parsed(text)
    ACTIONS[command.name](session, rest)


def _help(session: Session, rest: str) -> None:
    if rest:
        command, _ = parsed(META + rest.removeprefix(META))
        session.face.page(Page((), (command.usage, f"  {command.summary}")))
        return
    session.face.page(Page((), help_lines(session.face.size()[0])))


def _schema(session: Session, rest: str) -> None:
    session.learn_catalog()
    if not rest:
        session.face.page(Page((), schema_text.overview(session.catalog)))
        return
    session.face.table(*schema_text.described(session.catalog, rest))


def _events(session: Session, rest: str) -> None:
    if rest == "--follow":
        session.face.say("Ctrl-C ends")
        events.follow(session)
        return
    events.show(session, _whole_number(rest, 1) if rest else events.COUNT)


def _named(session: Session, rest: str) -> None:
    _no_words("named", rest)
    rows = [
        (name, query.summary, ", ".join(f"${parameter}" for parameter in parameter_names(query.cypher)) or None)
        for name, query in session.named.all().items()
    ]
    session.face.table(Table(("name", "what it shows", "takes"), rows))


def _run(session: Session, rest: str) -> None:
    try:
        words = shlex.split(rest)
    except ValueError as error:
        raise InvalidInput(f"{META}run: {error}") from error
    if not words:
        raise InvalidInput("name a query", hint=f"`{META}named` lists them")
    cypher = session.named.get(words[0]).cypher
    given = arguments(cypher, words[1:])
    require_values(
        cypher,
        {*session.parameters, *given},
        lambda name: f"`{META}run {words[0]} {name.upper()}` gives it one, so does `{META}param {name}=…`",
    )
    session.face.answer(session.ask(session.question(cypher, given)))


def _name(session: Session, rest: str) -> None:
    words, query = split_words(COMMANDS["name"], rest)
    if not words or not query:
        raise InvalidInput("a name and a query have to be given", hint=COMMANDS["name"].usage)
    session.named.save(words[0], query.rstrip().removesuffix(";").rstrip())
    session.face.say(f"kept: `{META}run {words[0]}` runs it")


def _unname(session: Session, rest: str) -> None:
    if not rest:
        raise InvalidInput("name a query of yours", hint=f"`{META}named` lists them")
    session.named.remove(rest)
    session.face.say(f"{rest} is forgotten")


def _watch(session: Session, rest: str) -> None:
    words, query = split_words(COMMANDS["watch"], rest)
    seconds = _seconds(words[0], SECONDS_MIN) if words else SECONDS
    question = session.question(query) if query else session.last_question()
    if not session.face.interactive:
        raise InvalidInput("nobody watches: this is no terminal", hint="run the query itself, as often as need be")
    watch(session, question, seconds)


def _export(session: Session, rest: str) -> None:
    words, query = split_words(COMMANDS["export"], rest)
    files = [word for word in words if word != "--replace"]
    if len(files) != 1 or files[0].startswith("--"):
        raise InvalidInput("a file has to be named", hint=COMMANDS["export"].usage)
    path, replace = Path(files[0]).expanduser(), "--replace" in words
    check_file(path, replace=replace)
    asked = session.question(query) if query else session.last_question()
    answer = session.ask(Question(asked.cypher, asked.parameters, None, session.preferences.timeout_ms))
    session.last = asked
    write_file(answer.table, path, replace=replace)
    session.face.say(f"{counted(len(answer.table.rows), 'row')} written to {path}")


def _param(session: Session, rest: str) -> None:
    if not rest:
        raise InvalidInput(
            "a name and a value have to be given", hint=f"{COMMANDS['param'].usage}; `{META}params` lists them"
        )
    name, value = parameter_pair(rest)
    if value == "" and rest.rstrip().endswith("="):
        session.parameters.pop(name, None)
        session.face.say(f"${name} has no value any more")
        return
    session.parameters[name] = value


def _params(session: Session, rest: str) -> None:
    _no_words("params", rest)
    session.face.table(Table(("name", "value"), list(session.parameters.items())))


def _expand(session: Session, rest: str) -> None:
    session.preferences.expand = _choice("expand", rest, session.preferences.expand)
    session.face.say(f"expand is {session.preferences.expand}")


def _limit(session: Session, rest: str) -> None:
    if rest:
        session.preferences.rows_max = None if rest == "off" else _whole_number(rest, 1)
    limit = session.preferences.rows_max
    session.face.say("no limit" if limit is None else f"at most {limit:,} rows")


def _timeout(session: Session, rest: str) -> None:
    if rest:
        session.preferences.timeout_ms = None if rest == "off" else round(_seconds(rest, 0.001) * 1000)
    timeout = session.preferences.timeout_ms
    session.face.say("no time limit" if timeout is None else f"at most {timeout / 1000:g} s a query")


def _timing(session: Session, rest: str) -> None:
    on = _choice("timing", rest, "off" if session.preferences.timing else "on") == "on"
    session.preferences.timing = on
    session.face.say(f"timing is {'on' if on else 'off'}")


def _pager(session: Session, rest: str) -> None:
    session.preferences.pager = rest or session.preferences.pager
    session.face.say(f"pager is {session.preferences.pager}")


def _keys(session: Session, rest: str) -> None:
    session.preferences.vi = _choice("keys", rest, "vi" if session.preferences.vi else "emacs") == "vi"
    session.face.say(f"keys are those of {'vi' if session.preferences.vi else 'emacs'}")


def _position(session: Session, rest: str) -> None:
    _no_words("position", rest)
    standing = session.source.standing()
    lag = "up to date" if not standing.behind else f"{counted(standing.behind, 'event')} behind"
    session.face.page(
        Page(
            (),
            (f"{session.source.run} at offset {standing.next_offset:,} of {standing.end:,}, {lag}; {standing.owner}",),
        )
    )


def _quit(session: Session, rest: str) -> None:
    _no_words("quit", rest)
    raise Leave


ACTIONS: Mapping[str, Callable[[Session, str], None]] = {
    "help": _help,
    "schema": _schema,
    "events": _events,
    "named": _named,
    "run": _run,
    "name": _name,
    "unname": _unname,
    "watch": _watch,
    "export": _export,
    "param": _param,
    "params": _params,
    "expand": _expand,
    "limit": _limit,
    "timeout": _timeout,
    "timing": _timing,
    "pager": _pager,
    "keys": _keys,
    "position": _position,
    "quit": _quit,
}


def _no_words(name: str, rest: str) -> None:
    if rest:
        raise InvalidInput(f"{META}{name} takes no words", hint=COMMANDS[name].usage)


def _choice(name: str, word: str, otherwise: str) -> str:
    """One of a command's words; without a word, what there is otherwise."""
    words = COMMANDS[name].words
    if word and word not in words:
        raise InvalidInput(f"{META}{name} takes {', '.join(words)}", hint=COMMANDS[name].usage)
    return word or otherwise


def _whole_number(text: str, least: int) -> int:
    if not (text.isascii() and text.replace(",", "").isdigit() and least <= int(text.replace(",", "")) <= COUNT_MAX):
        raise InvalidInput(f"{text!r} is no whole number from {least} to {COUNT_MAX:,}")
    return int(text.replace(",", ""))


def _seconds(text: str, least: float) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not least <= seconds <= TIMEOUT_SECONDS_MAX:
        raise InvalidInput(f"{text!r} is no number of seconds from {least:g} to {TIMEOUT_SECONDS_MAX:,}")
    return seconds
