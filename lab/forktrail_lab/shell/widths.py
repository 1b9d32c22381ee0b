"""How many columns of a terminal a text takes, and texts made to take as many as there are."""

from __future__ import annotations

from collections.abc import Iterator

ELLIPSIS = "…"


def width(text: str) -> int:
    """The columns that a printable text takes: two for a wide letter, none for a mark on the letter before it."""
    if text.isascii():
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


def padded(text: str, columns: int, *, right: bool = False) -> str:
    """The text with spaces up to a width; flush right if asked."""
    spaces = " " * (columns - width(text))
    return spaces + text if right else text + spaces


def wrapped(text: str, columns: int) -> Iterator[str]:
    """The text in pieces of at most so many columns, broken after a space where one is near the end."""
    if not text:
        yield text
    while text:
        if width(text) <= columns:
            yield text
            return
        piece = _fitting(text, columns)
        space = piece.rfind(" ")
        if space > len(piece) // 2:
            piece = piece[: space + 1]
        yield piece.rstrip(" ")
        text = text[len(piece) :]


def _fitting(text: str, columns: int) -> str:
    used = 0
    for place, char in enumerate(text):
        used += width(char)
        if used > columns:
            return text[: max(1, place)]
    return text
