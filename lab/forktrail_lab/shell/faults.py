"""What is wrong with a statement, in one line, with the place under it where there is one."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from forktrail_lab.console.output import printable
from forktrail_lab.console.widths import ELLIPSIS, cut, width, wrapped
from forktrail_lab.shell.catalog import Catalog, Label, Relation
from forktrail_lab.shell.keywords import FUNCTIONS, quoted
from forktrail_lab.shell.scope import variables
from forktrail_lab.shell.statements import writes
from forktrail_lab.shell.tokens import Token, code, flattened
from forktrail_schemas.errors import ForktrailError, InvalidInput

_PLACE = re.compile(r"\(line: (\d+), offset: (\d+)\)")
_TABLE = re.compile(r"Table (\w+) does not exist")
_PROPERTY = re.compile(r"Cannot find property (\w+) for (\w+)")
_VARIABLE = re.compile(r"Variable (\w+) is not in scope")
_FUNCTION = re.compile(r"function (\w+) does not exist", re.IGNORECASE)
_ENGINE_PREFIX = re.compile(r"^(?:Parser|Binder|Catalog|Runtime|Conversion) exception: ")
_CUT_COLUMNS = 60
_OWNERS_SHOWN = 6
# What a screen shows of the statement from the caret on, at least.
_COLUMNS_AFTER = 12


@dataclass(frozen=True)
class Fault:
    """A message, and the place in the statement that it is about, if any."""

    message: str
    place: int | None = None


def fault_lines(
    error: ForktrailError, statement: str, catalog: Catalog, run: str, what: str = "the shell"
) -> list[str]:
    """The error in one line; where it has a place, the statement's line and a caret follow.

    Args:
        what: who refuses to write, if that is the error.
    """
    if isinstance(error, InvalidInput) and _is_write(error, statement):
        return [read_only_line(run, what)]
    fault = _of_statement(error, statement, catalog) if isinstance(error, InvalidInput) else None
    if fault is None:
        hint = f" ({error.hint})" if error.hint else ""
        return [printable(f"error: {error.message}{hint}")]
    if fault.place is None:
        return [printable(f"error: {fault.message}")]
    return [printable(f"error: {fault.message}"), *_pointed(statement, fault.place)]


def fitted(lines: Sequence[str], screen: int) -> list[str]:
    """The lines of a fault for a screen: the message broken at spaces, what stands under it cut around the caret."""
    message, *pointed = lines
    if not pointed:
        return list(wrapped(message, screen))
    line, caret = pointed
    skipped = 0
    if (over := len(caret) + _COLUMNS_AFTER - screen) > 0:
        while skipped <= over and line:
            skipped += width(line[0])
            line = line[1:]
        line, skipped = ELLIPSIS + line, skipped - 1
    return [*wrapped(message, screen), cut(line, screen), caret[skipped:]]


def read_only_line(run: str, what: str) -> str:
    """What is said of a statement that writes."""
    return printable(
        f"error: {what} is read-only: facts come in as events (`forktrail report {run} TEST` files a report;"
        " `forktrail --help` lists what else writes)"
    )


def _is_write(error: InvalidInput, statement: str) -> bool:
    refused = "read-only" in error.message or error.message.startswith("a query can't start with")
    return refused and writes(statement)


def _of_statement(error: InvalidInput, statement: str, catalog: Catalog) -> Fault | None:
    message = error.message
    tokens = code(statement)
    if places := _PLACE.findall(message):  # before the last, the statement's own words may stand
        return _syntax(_place(statement, *map(int, places[-1])), tokens, error.hint)
    if table := _TABLE.search(message):
        names = [*catalog.labels, *catalog.relations]
        return _named(table[1], tokens, f"there is no label or relation type {table[1]}", names, ":schema lists them")
    if column := _PROPERTY.search(message):
        labels = variables(tokens, catalog).get(column[2], frozenset())
        told = f"{column[2]} has no property {column[1]}"
        if owners := _owners(column[1], column[2], labels, catalog):
            return _named(column[1], tokens, told, (), owners)
        return _named(column[1], tokens, told, catalog.columns(labels), ":schema LABEL lists them")
    if variable := _VARIABLE.search(message):
        told = f"no variable {variable[1]} is known there"
        return _named(variable[1], tokens, told, variables(tokens, catalog), "WITH keeps only what it names")
    if function := _FUNCTION.search(message):
        return _named(function[1], tokens, f"there is no function {function[1].lower()}", FUNCTIONS, "")
    if _ENGINE_PREFIX.search(message):
        return Fault(_ENGINE_PREFIX.sub("", message).rstrip("."))
    return None


def _owners(column: str, variable: str, labels: Collection[str], catalog: Catalog) -> str:
    """Which labels and relation types have a property, in words; empty where none has."""
    tables: list[Label | Relation] = [*catalog.labels.values(), *catalog.relations.values()]
    owners = [table.name for table in tables if column in table.columns]
    if labels == {"TestCase"} and "Case" in owners:
        return f"did you mean ({variable}:`Case`)? a test is TestCase, an attempt at it is `Case`"
    shown = ", ".join(map(quoted, owners[:_OWNERS_SHOWN])) + (", …" if len(owners) > _OWNERS_SHOWN else "")
    return f"{shown} {'has' if len(owners) == 1 else 'have'} it" if owners else ""


def _place(statement: str, line: int, offset: int) -> int:
    """The place in a statement that the engine names by a line, which a string alone can begin, and an offset in it."""
    before = flattened(statement).split("\n")[: line - 1]
    return sum(len(text) + 1 for text in before) + offset


def _syntax(place: int, tokens: list[Token], hint: str) -> Fault:
    found = next((token for token in tokens if token.start <= place < token.end), None)
    backticks = f" ({hint})" if "backticks" in hint else ""
    if found is None:
        return Fault(f"syntax: the statement ends too early{backticks}", place)
    text = found.text if len(found.text) <= _CUT_COLUMNS else found.text[:_CUT_COLUMNS] + "…"
    return Fault(f"syntax: {text} isn't expected here{backticks}", place)


def _named(name: str, tokens: list[Token], message: str, known: Iterable[str], otherwise: str) -> Fault:
    """A fault of a name, with the known one that it is most like, and the last place where it stands."""
    by_letters = {candidate.lower(): candidate for candidate in known}
    close = difflib.get_close_matches(name.lower(), by_letters, n=1, cutoff=0.6)
    hint = f"did you mean {by_letters[close[0]]}?" if close else otherwise
    places = [token.start for token in tokens if (token.identifier or "").lower() == name.lower()]
    return Fault(message + (f" ({hint})" if hint else ""), places[-1] if places else None)


def _pointed(statement: str, place: int) -> list[str]:
    """The line of a statement that holds a place, cut around it, and a caret under the place."""
    start = statement.rfind("\n", 0, place) + 1
    end = statement.find("\n", place)
    line = statement[start : end if end >= 0 else len(statement)].rstrip(";").rstrip()
    column = place - start
    if column > _CUT_COLUMNS:
        skipped = column - _CUT_COLUMNS
        line, column = "…" + line[skipped + 1 :], _CUT_COLUMNS
    number = statement.count("\n", 0, start) + 1
    lead = f"  line {number}: " if "\n" in statement.strip() else "  "
    before = printable(line[:column])
    tail = printable(line[column : column + _CUT_COLUMNS])
    return [f"{lead}{before}{tail}", " " * (len(lead) + width(before)) + "^"]
