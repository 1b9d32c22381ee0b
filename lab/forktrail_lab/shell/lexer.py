"""Colours for what is typed: Pygments' Cypher, with parameters and the shell's own commands."""

from __future__ import annotations

from collections.abc import Iterator

from pygments.lexers.graph import CypherLexer  # type: ignore[import-untyped]  # Pygments ships no types
from pygments.token import Error, Keyword, Name  # type: ignore[import-untyped]  # as above

from forktrail_lab.shell.statements import META, is_meta


class ShellLexer(CypherLexer):  # type: ignore[misc]  # as above
    """Cypher as the engine has it; a line that begins with a colon is a command, and what follows it Cypher again."""

    name = "Forktrail shell"
    aliases = ()
    filenames = ()

    def get_tokens_unprocessed(
        self, text: str, stack: tuple[str, ...] = ("root",)
    ) -> Iterator[tuple[int, object, str]]:
        """Places, kinds and texts, in order."""
        start = _command_end(text) if is_meta(text) else 0
        if start:
            yield 0, Keyword.Pseudo, text[:start]
        for place, kind, part in super().get_tokens_unprocessed(text[start:], stack):
            yield start + place, Name.Variable if kind is Error and part == "$" else kind, part


def _command_end(text: str) -> int:
    """The place after the command's name."""
    begin = text.index(META)
    return begin + len(text[begin:].split(maxsplit=1)[0])
