"""Cuts Cypher into tokens with their places, for completion, statement ends and carets.

The same tokens as those by which `graph/readonly.py` decides what is one statement, so that neither takes for a string
what the other takes for a comment. Unlike there, nothing is refused: half-typed text has tokens too.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

_TOKEN = re.compile(
    r"""
      (?P<space> \s+ )
    | (?P<comment> //[^\n]* | /\*.*?(?:\*/|\Z) )
    | (?P<string> '(?:[^'\\]|\\.)*' | "(?:[^"\\]|\\.)*" )
    | (?P<name> `[^`]*` )
    | (?P<number> [0-9][0-9A-Za-z_]*(?:\.[0-9][0-9A-Za-z_]*)? )
    | (?P<parameter> \$[A-Za-z_][A-Za-z0-9_]* )
    | (?P<word> [^\W\d]\w* )
    | (?P<open> ['"`].* )
    | (?P<sign> . )
    """,
    re.VERBOSE | re.DOTALL,
)
OPENING, CLOSING = "([{", ")]}"


class Token(NamedTuple):
    """A token: `kind` is comment, string, name (in backticks), number, parameter, word, open or sign.

    `open` is a quote that nothing closes, with all that follows.
    """

    kind: str
    text: str
    start: int

    @property
    def end(self) -> int:
        """The place after its last character."""
        return self.start + len(self.text)

    @property
    def word(self) -> str:
        """The word in capitals; empty for any other kind."""
        return self.text.upper() if self.kind == "word" else ""

    @property
    def identifier(self) -> str | None:
        """The name that it spells, without backticks; None where it can't be one."""
        if self.kind == "word":
            return self.text
        return self.text[1:-1] if self.kind == "name" else None


def tokenize(text: str) -> list[Token]:
    """All tokens but white space."""
    return [
        Token(match.lastgroup or "", match.group(), match.start())
        for match in _TOKEN.finditer(text)
        if match.lastgroup != "space"
    ]


def code(text: str) -> list[Token]:
    """All tokens but white space and comments."""
    return [token for token in tokenize(text) if token.kind != "comment"]


def depths(tokens: Sequence[Token]) -> list[int]:
    """How many brackets are open before each token, and after the last one."""
    found = [0]
    for token in tokens:
        step = 0
        if token.kind == "sign":
            step = (token.text in OPENING) - (token.text in CLOSING)
        found.append(found[-1] + step)
    return found


def parameter_names(text: str) -> list[str]:
    """The names of the `$parameters`, each once, in the order in which they first stand there."""
    return list(dict.fromkeys(token.text[1:] for token in tokenize(text) if token.kind == "parameter"))


def flattened(text: str) -> str:
    """The text on one line, with every character at its place: line ends and `//` comments become spaces.

    The engine names a place by its column alone, and a query takes no comments. Strings stay as they are.
    """
    parts: list[str] = []
    for match in _TOKEN.finditer(text):
        found, kind = match.group(), match.lastgroup
        if kind == "space" or (kind == "comment" and found.startswith("//")):
            found = " " * len(found)
        parts.append(found)
    return "".join(parts)
