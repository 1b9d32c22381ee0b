"""Cuts a pattern's text into words, names, literals and signs, each with where it stands."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from forktrail_schemas.errors import InvalidInput

TokenKind = Literal["word", "text", "number", "sign", "end"]

_TOKEN = re.compile(
    r"""(?P<word>[A-Za-z_][A-Za-z0-9_]*)
    |(?P<number>[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?)
    |(?P<text>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")
    |(?P<sign><=|>=|<>|\.\.|[()\[\]{}:,.|*=<>-])
    """,
    re.VERBOSE | re.DOTALL,
)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "\\": "\\", "'": "'", '"': '"'}
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_NUMBER_TAIL = re.compile(r"[A-Za-z_0-9]")
_FOREIGN = {
    "/": "comments aren't part of a pattern: leave them out",
    "$": "a pattern takes no parameters: write the value itself",
    "`": "names are written without backticks",
    "!": "write <> for unequal, and NOT for the opposite",
    "+": "a pattern doesn't calculate: compare properties and literals",
    "%": "a pattern doesn't calculate: compare properties and literals",
    "^": "a pattern doesn't calculate: compare properties and literals",
    ";": "a pattern is one MATCH without a semicolon",
    "'": "the text has no closing '",
    '"': 'the text has no closing "',
}


@dataclass(frozen=True)
class Token:
    """A piece of the text.

    Attributes:
        text: as it stands there; of a text literal, what it says.
        position: its first character in the whole text, from 0.
        upper: it in upper case, of a word; "" otherwise.
    """

    kind: TokenKind
    text: str
    position: int
    upper: str = ""


def tokens_of(text: str) -> list[Token]:
    """All tokens, the last of kind `end`.

    Raises:
        InvalidInput: with the position of what belongs to no token.
    """
    found: list[Token] = []
    position = 0
    while True:
        while position < len(text) and text[position].isspace():
            position += 1
        if position == len(text):
            return [*found, Token("end", "", position)]
        match = _TOKEN.match(text, position)
        if match is None or text.startswith(("//", "/*"), position):
            raise refused(text, position, f"{text[position]!r} has no meaning here", _FOREIGN.get(text[position], ""))
        found.append(_token(text, match))
        position = match.end()


def refused(text: str, position: int, message: str, hint: str = "") -> InvalidInput:
    """An error that says what is wrong, and where."""
    line = text.count("\n", 0, position) + 1
    column = position - (text.rfind("\n", 0, position) + 1) + 1
    return InvalidInput(f"when, line {line}, column {column}: {message}", hint=hint)


def _token(text: str, match: re.Match[str]) -> Token:
    position, piece = match.start(), match.group()
    if match.lastgroup == "text" or match["text"] is not None:
        return Token("text", _unescaped(text, position, piece[1:-1]), position)
    if match["word"] is not None:
        return Token("word", piece, position, piece.upper())
    if match["number"] is not None:
        if _NUMBER_TAIL.match(text, match.end()):
            raise refused(text, position, "a number is followed by a letter or digit", "put a blank between them")
        return Token("number", piece, position)
    return Token("sign", piece, position)


def _unescaped(text: str, position: int, inner: str) -> str:
    for escape in _ESCAPE.finditer(inner):
        if escape[1] not in _ESCAPES:
            raise refused(
                text, position + 1 + escape.start(), f"\\{escape[1]} is no escape", "write \\\\ for a backslash"
            )
    return _ESCAPE.sub(lambda escape: _ESCAPES[escape[1]], inner)
