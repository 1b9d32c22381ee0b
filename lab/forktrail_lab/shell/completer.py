"""Completion at the prompt: of statements, and of the shell's own commands with what each takes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from forktrail_lab.shell.export import SUFFIXES
from forktrail_lab.shell.matching import fitting
from forktrail_lab.shell.meta import COMMANDS, MetaCommand, Takes, next_word, parsed, query_of
from forktrail_lab.shell.statements import META, is_meta, split
from forktrail_lab.shell.suggestions import Suggestion, Vocabulary, suggest
from forktrail_schemas.errors import InvalidInput

# While typing, a menu opens only where a name has begun, or behind one of these.
_OPENERS = (":", ".", "$", "`", "|")
SUGGESTIONS_MAX = 200


class ShellCompleter(Completer):
    """Offers what can come next; the menu says of what kind each is."""

    def __init__(self, vocabulary: Callable[[], Vocabulary]) -> None:
        """Draw suggestions from a vocabulary, which is asked for anew each time."""
        self._vocabulary = vocabulary

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        """The suggestions at the cursor; without a Tab only where something was begun."""
        before = document.text_before_cursor
        found = suggestions(before, document.text_after_cursor, self._vocabulary())
        for suggestion in found[:SUGGESTIONS_MAX]:
            begun = suggestion.replaced > 0 or suggestion.kind == "file" or before.endswith(_OPENERS)
            if (begun or complete_event.completion_requested) and not _is_typed(suggestion, before, complete_event):
                yield Completion(
                    suggestion.text,
                    start_position=-suggestion.replaced,
                    display=suggestion.shown,
                    display_meta=" · ".join(filter(None, (suggestion.kind, suggestion.detail))),
                )


def suggestions(before: str, after: str, vocabulary: Vocabulary) -> list[Suggestion]:
    """What can come next in a statement or command, best first."""
    if not is_meta(before):
        _, current = split(before)
        return suggest(current, after, vocabulary)
    query = query_of(before)
    if query:
        return suggest(query, after, vocabulary)
    return list(_in_command(before.lstrip(), vocabulary))


def _is_typed(suggestion: Suggestion, before: str, event: CompleteEvent) -> bool:
    """Whether it is a keyword that stands there already; a menu for that alone would only be in the way."""
    typed = before[len(before) - suggestion.replaced :]
    return suggestion.kind == "keyword" and suggestion.text == typed and not event.completion_requested


def _in_command(before: str, vocabulary: Vocabulary) -> Iterator[Suggestion]:
    name, space, rest = before.removeprefix(META).partition(" ")
    if not space:
        for command in fitting(name, COMMANDS.values(), lambda command: command.name):
            yield Suggestion(META + command.name, META + command.name, "command", command.summary, len(before))
        return
    try:
        command, _ = parsed(META + name)
    except InvalidInput:
        return
    yield from _argument(command, rest, vocabulary)


def _argument(command: MetaCommand, rest: str, vocabulary: Vocabulary) -> Iterator[Suggestion]:
    done, typed = _words(rest)
    takes = command.takes[min(len(done), len(command.takes) - 1)] if command.takes else None
    if takes is None or (len(done) >= len(command.takes) and takes is not Takes.PAIRS):
        return
    offers: dict[str, str] = dict.fromkeys(command.words, "")
    kind = "value"
    if takes is Takes.FILE:
        yield from _files(typed)
        return
    if takes is Takes.QUERY or takes is Takes.SECONDS:
        yield from suggest(typed, "", vocabulary)
        return
    if takes is Takes.LABEL:
        labels = dict.fromkeys(vocabulary.catalog.labels, "label")
        offers, kind = labels | dict.fromkeys(vocabulary.catalog.relations, "relation"), ""
    elif takes is Takes.NAMED:
        offers, kind = dict(vocabulary.named), "query"
    elif takes is Takes.PAIRS and command.name == "param":
        offers, kind = {f"{name}=": "" for name in vocabulary.parameters}, "parameter"
    elif command.name == "help":
        offers, kind = {name: known.summary for name, known in COMMANDS.items()}, "command"
    for name in fitting(typed, offers, str):
        yield Suggestion(name, name, kind, offers[name], len(typed))


def _words(rest: str) -> tuple[list[str], str]:
    """The words that are done, without options, and the one being typed."""
    done: list[str] = []
    while True:
        word, left = next_word(rest)
        if not left:
            return done, rest.lstrip()
        if not word.startswith("--"):
            done.append(word)
        rest = left


def _files(typed: str) -> Iterator[Suggestion]:
    """Folders, and files that an export could be."""
    typed = typed.lstrip("'\"")
    folder, start = os.path.split(typed)
    try:
        entries = sorted(Path(folder or ".").expanduser().iterdir())
    except OSError:
        return
    for entry in entries:
        name = entry.name
        if not name.startswith(start) or (name.startswith(".") and not start.startswith(".")) or not name.isprintable():
            continue
        if entry.is_dir():
            yield Suggestion(f"{name}/", f"{name}/", "file", "folder", len(start))
        elif entry.suffix.lower() in SUFFIXES:
            yield Suggestion(name, name, "file", "", len(start))
