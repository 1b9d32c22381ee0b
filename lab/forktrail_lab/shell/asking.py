"""Asks a statement so that it can be cancelled, with a bound on the rows that come back."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from forktrail_lab.console.work import Work
from forktrail_lab.shell.source import Source
from forktrail_lab.shell.tokens import code, depths, flattened
from forktrail_projectors.graph.protocol import Table
from forktrail_projectors.state import Value
from forktrail_schemas.errors import InvalidInput

T = TypeVar("T")

# A cancelled query ends within milliseconds; one that doesn't is left to itself.
CANCEL_SECONDS = 0.4


class Cancelled(Exception):
    """The user pressed Ctrl-C while the shell waited."""


@dataclass(frozen=True)
class Question:
    """A statement with the values of its parameters.

    Attributes:
        rows_max: how many rows to bring back; None is all of them.
        timeout_ms: how long the engine may take; None is as long as it takes.
    """

    cypher: str
    parameters: Mapping[str, Value]
    rows_max: int | None = None
    timeout_ms: int | None = None


@dataclass(frozen=True)
class Answer:
    """What came back.

    Attributes:
        more: whether there are rows beyond those asked for.
    """

    table: Table
    milliseconds: float
    more: bool = False


def ask(source: Source, question: Question) -> Answer:
    """Put a question.

    Raises:
        ForktrailError: as `Source.query`; a place that it names is one of the statement as it was given.
        Cancelled: by Ctrl-C.
    """
    began = time.perf_counter()
    table = interruptible(lambda: _asked(source, question), source.cancel)
    milliseconds = (time.perf_counter() - began) * 1000
    if question.rows_max is not None and len(table.rows) > question.rows_max:
        return Answer(Table(table.columns, table.rows[: question.rows_max]), milliseconds, more=True)
    return Answer(table, milliseconds)


def interruptible(work: Callable[[], T], cancel: Callable[[], None]) -> T:
    """Do work in another thread, so that Ctrl-C ends the wait for it at once.

    Raises:
        Cancelled: Ctrl-C came; `cancel` was called, and the work is over or left to itself.
    """
    begun = Work(work)
    try:
        begun.wait()
    except KeyboardInterrupt:
        cancel()
        begun.wait(CANCEL_SECONDS)
        raise Cancelled from None
    return begun.result()


def bounded(cypher: str, rows: int) -> str:
    """The statement with a LIMIT, where it ends in a RETURN that has none; else as it was.

    Not behind a UNION, whose last part alone it would bound, nor behind EXPLAIN, whose plan it would change.
    """
    tokens = code(cypher)
    words = [
        token.word
        for level, before, token in zip(depths(tokens), [None, *tokens], tokens, strict=False)
        if level == 0 and (before is None or (before.text != "." and before.word != "AS"))
    ]
    if not words or words[0] in ("EXPLAIN", "PROFILE") or "UNION" in words or "RETURN" not in words:
        return cypher
    last = len(words) - 1 - words[::-1].index("RETURN")
    return cypher if "LIMIT" in words[last:] else f"{cypher} LIMIT {rows}"


def _asked(source: Source, question: Question) -> Table:
    text = flattened(question.cypher).rstrip().removesuffix(";")
    limited = text if question.rows_max is None else bounded(text, question.rows_max + 1)
    try:
        return source.query(limited, question.parameters, question.timeout_ms)
    except InvalidInput:
        if limited == text:
            raise
        # What is wrong is said of the statement as it was typed.
        return source.query(text, question.parameters, question.timeout_ms)
