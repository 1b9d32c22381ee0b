"""Where a statement ends: at a `;`, at an empty line, or with Enter once it says all that it must."""

from __future__ import annotations

from collections.abc import Sequence

from forktrail_lab.shell.tokens import Token, code, depths, tokenize

META = ":"
END = ";"
# What a statement that only reads may begin with, and what changes a graph wherever it stands.
READING = frozenset({"MATCH", "OPTIONAL", "UNWIND", "WITH", "RETURN", "CALL", "EXPLAIN", "PROFILE"})
WRITING = frozenset(
    {"CREATE", "MERGE", "SET", "DELETE", "DETACH", "REMOVE", "DROP", "ALTER", "COPY", "INSERT", "TRUNCATE"}
)
# Words and signs after which something has to come.
_UNFINISHED_WORDS = frozenset({
    "ALL", "AND", "AS", "BY", "CALL", "CASE", "CONTAINS", "DISTINCT", "ELSE", "IN", "IS", "LIMIT", "MATCH", "NOT",
    "ON", "OPTIONAL", "OR", "ORDER", "RETURN", "SKIP", "THEN", "UNION", "UNWIND", "WHEN", "WHERE", "WITH", "XOR",
    "ENDS", "STARTS",
})  # fmt: skip
_UNFINISHED_SIGNS = frozenset(",.:=<>+-/%^|")


def is_meta(text: str) -> bool:
    """Whether it is a command to the shell rather than a statement."""
    return text.lstrip().startswith(META)


def is_farewell(text: str) -> bool:
    """Whether it is `exit` or `quit` alone, as other shells take them: no statement begins so."""
    return text.strip().removesuffix(END).rstrip().lower() in ("exit", "quit")


def is_complete(text: str) -> bool:
    """Whether Enter sends a statement rather than starting another line of it.

    It does after a `;`, after an empty line, and where every bracket and quote is closed and a RETURN says what is
    asked. A statement that writes is complete at once: it will be refused.
    """
    if not text.strip() or _ends_empty(text):
        return True
    tokens = code(text)
    if not tokens or tokens[-1].text == END:
        return True
    if tokens[-1].kind == "open" or depths(tokens)[-1] > 0:
        return False
    return not _wants_more(tokens[-1]) and _says_all(tokens)


def split(text: str) -> tuple[list[str], str]:
    """The statements that a `;` ends, without it, and the rest that nothing ends yet; empty statements are left out."""
    parts: list[str] = []
    start = 0
    for token in tokenize(text):
        if token.kind == "sign" and token.text == END:
            parts.append(text[start : token.start])
            start = token.end
    return [part for part in parts if code(part)], text[start:]


def statements(text: str) -> list[str]:
    """All statements of a text, the last with or without a `;`."""
    found, rest = split(text)
    return [*found, rest] if code(rest) else found


class ScriptReader:
    """Cuts lines of a script into statements and meta-commands, as they come.

    A meta-command is one line. A statement ends at a `;` or with the script; empty lines are part of it.
    """

    def __init__(self) -> None:
        self._pending = ""

    def feed(self, line: str) -> list[str]:
        """What is whole with this line; the line has its line end."""
        if not code(self._pending) and (is_meta(line) or is_farewell(line)):
            self._pending = ""
            return [line.strip()]
        self._pending += line
        if END not in line:
            return []
        found, self._pending = split(self._pending)
        return found

    def rest(self) -> list[str]:
        """What is left at the end of the script."""
        left, self._pending = self._pending, ""
        return [left] if code(left) else []


def writes(text: str) -> bool:
    """Whether a statement holds a word that writes where a clause may begin."""
    tokens = code(text)
    return any(
        token.word in WRITING and _begins_clause(before) for before, token in zip([None, *tokens], tokens, strict=False)
    )


def _begins_clause(before: Token | None) -> bool:
    return before is None or (before.text not in (".", ":", "$") and before.word not in ("AS", "DISTINCT"))


def _ends_empty(text: str) -> bool:
    """Whether the last of several lines is blank."""
    head, newline, last = text.rpartition("\n")
    return bool(newline) and not last.strip() and bool(head.strip())


def _wants_more(last: Token) -> bool:
    return last.word in _UNFINISHED_WORDS or (last.kind == "sign" and last.text in _UNFINISHED_SIGNS)


def _says_all(tokens: Sequence[Token]) -> bool:
    """Whether a RETURN, or a word that writes, stands outside all brackets and behind the last UNION."""
    if tokens[0].word not in READING:
        return True
    said = False
    for level, before, token in zip(depths(tokens), [None, *tokens], tokens, strict=False):
        if level == 0 and _begins_clause(before):
            said = (said or token.word == "RETURN" or token.word in WRITING) and token.word != "UNION"
    return said
