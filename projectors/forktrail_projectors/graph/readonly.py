"""Refuses, before the engine sees it, what a statement could do beyond reading the graph.

The engine itself refuses writes in a read-only transaction. It does not refuse there, and this module does: reading and
writing files (LOAD FROM, COPY … TO, EXPORT, IMPORT, ATTACH, extensions), settings (CALL name = value), ending the
transaction (COMMIT, and any second statement), and procedures that aren't known to only read.

Statements are cut into the engine's own tokens (strings, backticked names), so that none of these hides in another.
Where a name could be mistaken for a word of these, it is refused; in backticks it never is. Comments are refused: where
one ends is for the engine's grammar to say (`/***/` doesn't end where anyone would think), and whatever stands behind
could be a string to us and a statement to it.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import NamedTuple

from forktrail_schemas.errors import InvalidInput

LENGTH_MAX = 100_000
DEPTH_MAX = 100

# A reading statement starts with one of these; EXPLAIN or PROFILE may stand before it.
_STARTS = frozenset({"MATCH", "OPTIONAL", "UNWIND", "WITH", "RETURN", "CALL"})
_PREFIXES = frozenset({"EXPLAIN", "PROFILE", "LOGICAL"})

# Procedures that read the catalog and nothing else.
PROCEDURES = frozenset(
    {
        "CATALOG_VERSION",
        "CURRENT_SETTING",
        "DB_VERSION",
        "SHOW_CONNECTION",
        "SHOW_FUNCTIONS",
        "SHOW_INDEXES",
        "SHOW_MACROS",
        "SHOW_SEQUENCES",
        "SHOW_TABLES",
        "SHOW_WARNINGS",
        "STATS_INFO",
        "STORAGE_INFO",
        "STORAGE_VERSION",
        "TABLE_INFO",
    }
)

_TOKEN = re.compile(
    r"""
      (?P<space> \s+ )
    | (?P<comment> // | /\* )
    | (?P<string> '(?:[^'\\]|\\.)*' | "(?:[^"\\]|\\.)*" )
    | (?P<name> `[^`]*` )
    | (?P<number> [0-9][0-9A-Za-z_.]* )
    | (?P<parameter> \$[A-Za-z_][A-Za-z0-9_]* )
    | (?P<word> [A-Za-z_][A-Za-z0-9_]* )
    | (?P<open> ['"`] )
    | (?P<sign> . )
    """,
    re.VERBOSE | re.DOTALL,
)


class _Token(NamedTuple):
    kind: str
    text: str

    @property
    def word(self) -> str:
        return self.text.upper() if self.kind == "word" else ""


def check_read_only(cypher: str, parameters: Collection[str] = ()) -> None:
    """Refuse a statement that could do more than read the graph, or whose parameters aren't those given.

    Args:
        cypher: one statement; a `;` at its end is fine.
        parameters: names of the parameters that it is given. The engine takes a missing one for null.

    Raises:
        InvalidInput: what is refused, and what to write instead.
    """
    if len(cypher) > LENGTH_MAX:
        raise InvalidInput(f"the query has {len(cypher):,} characters, {LENGTH_MAX:,} are allowed")
    tokens = _tokens(cypher)
    if _depth(tokens) > DEPTH_MAX:  # the engine's parser would take minutes, or its stack run out
        raise InvalidInput(f"the query is nested deeper than {DEPTH_MAX} brackets", hint="take it apart with WITH")
    if ";" in [token.text for token in tokens]:
        raise InvalidInput("a query is one statement", hint="send what stands after the ; on its own")
    _check_start(tokens)
    for token, after, beyond in zip(tokens, [*tokens, _END][1:], [*tokens, _END, _END][2:], strict=True):
        if token.word == "LOAD" or (token.kind == "number" and re.search("load|call", token.text, re.IGNORECASE)):
            raise InvalidInput(
                f"a query reads no files: {token.text}", hint="a name that is spelled so goes in `backticks`"
            )
        if token.text == "$":
            raise InvalidInput("a parameter is written $name", hint="letters, digits and _ only")
        if token.word == "CALL" and (after.word not in PROCEDURES or beyond.text != "("):
            raise InvalidInput(
                f"a query can't CALL {after.text}", hint=f"these can be called: {', '.join(sorted(PROCEDURES)).lower()}"
            )
    used = {token.text[1:] for token in tokens if token.kind == "parameter"}
    if used != set(parameters):
        name = min(used ^ set(parameters))
        fault = f"the query has no value for ${name}" if name in used else f"${name} is not in the query"
        raise InvalidInput(fault, hint="give every parameter a value, and no other")


def parameters_of(cypher: str) -> tuple[str, ...]:
    """The names of a statement's parameters, each once, in the order of their first use.

    Raises:
        InvalidInput: it has a comment, or ends inside a text.
    """
    names = (token.text[1:] for token in _tokens(cypher) if token.kind == "parameter")
    return tuple(dict.fromkeys(names))


def words_of(cypher: str) -> frozenset[str]:
    """The bare words of a statement in capitals: those outside texts and backticks.

    Raises:
        InvalidInput: it has a comment, or ends inside a text.
    """
    return frozenset(token.word for token in _tokens(cypher) if token.word)


_END = _Token("end", "")


def _depth(tokens: list[_Token]) -> int:
    """How deep brackets stand in each other, at most."""
    depth = deepest = 0
    for token in tokens:
        if token.kind == "sign":
            depth += (token.text in "([{") - (token.text in ")]}")
            deepest = max(deepest, depth)
    return deepest


def _tokens(cypher: str) -> list[_Token]:
    tokens = []
    for match in _TOKEN.finditer(cypher):
        kind = match.lastgroup or ""
        if kind == "comment":
            raise InvalidInput("a query takes no comments", hint="leave it out; in a string, // is fine")
        if kind == "open":
            raise InvalidInput(f"the query ends inside what {match.group()} opens")
        if kind != "space":
            tokens.append(_Token(kind, match.group()))
    if tokens and tokens[-1].text == ";":
        tokens.pop()
    return tokens


def _check_start(tokens: list[_Token]) -> None:
    start = next((token for token in tokens if token.word not in _PREFIXES), _END)
    if start.word not in _STARTS:
        raise InvalidInput(
            f"a query can't start with {start.text}" if start.text else "the query is empty",
            hint="the graph is read-only here: start with MATCH, OPTIONAL MATCH, UNWIND, WITH, RETURN or CALL",
        )
