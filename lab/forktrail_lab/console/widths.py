"""How many columns of a terminal a text takes, and texts made to take as many as there are."""

from __future__ import annotations

from collections.abc import Iterator

ELLIPSIS = "…"
# In fewer columns than this two ends of a word say less than one.
ELIDED_MIN = 8


def width(text: str) -> int:
    """The columns that a printable text takes: two for a wide letter, none for a mark on the letter before it."""
    if text.replace(ELLIPSIS, ".").isascii():
        return len(text)
    from prompt_toolkit.utils import get_cwidth  # costs 100 ms, which a script in ASCII needn't pay

    return sum(map(get_cwidth, text))


def cut(text: str, columns: int) -> str:
    """The text, or as much of its start as leaves room for an ellipsis."""
    if width(text) <= columns:
        return text
    kept, used = [], 0
    for char in text:
        used += width(char)
        if used > columns - 1:
            break
        kept.append(char)
    return "".join(kept) + ELLIPSIS


def elided(text: str, columns: int) -> str:
    """The text, or as much of it as there is room for: words from their start, a single word without its middle.

    Names and ids differ at their ends as often as at their starts.
    """
    if width(text) <= columns or " " in text:
        return cut(text, columns)
    if columns < ELIDED_MIN or not text.isascii():
        return cut(text, columns)
    tail = (columns - 1) // 3
    return text[: columns - 1 - tail] + ELLIPSIS + text[len(text) - tail :]


def padded(text: str, columns: int, *, right: bool = False) -> str:
    """The text with spaces up to a width; flush right if asked."""
    spaces = " " * (columns - width(text))
    return spaces + text if right else text + spaces


def wrapped(text: str, columns: int) -> Iterator[str]:
    """The text in pieces of at most so many columns, broken after spaces, and within longer words."""
    if not text:
        yield text
    while text:
        if width(text) <= columns:
            yield text
            return
        piece = _fitting(text, columns)
        space = len(piece) if text[len(piece) : len(piece) + 1] == " " else piece.rfind(" ")
        if space > len(piece) // 2 or (space > 0 and _is_short(text[space + 1 :], columns)):
            piece = text[: space + 1]
        yield piece.rstrip(" ")
        text = text[len(piece) :]


def _is_short(text: str, columns: int) -> bool:
    """Whether the text's first word fits on a line."""
    return width(text[: columns + 1].partition(" ")[0]) <= columns


def _fitting(text: str, columns: int) -> str:
    used = 0
    for place, char in enumerate(text):
        used += width(char)
        if used > columns:
            return text[: max(1, place)]
    return text
