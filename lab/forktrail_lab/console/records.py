"""Rows with a line per value, a block each, for those that are too wide for a table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from forktrail_lab.console.widths import ELLIPSIS, cut, padded, width, wrapped

LINES_PER_VALUE_MAX = 20
_BAR = " │ "
_NAME_WIDTH_MAX = 40
_RULE_WIDTH_MAX = 60


def record_lines(blocks: Sequence[Sequence[tuple[str, str]]], screen: int, whole: str) -> list[str]:
    """Every block of names and texts as `name │ text` lines under its number.

    A text goes on in further lines; one of more than LINES_PER_VALUE_MAX lines is cut, and its length said.

    Args:
        screen: columns of the terminal.
        whole: what shows all of a text that is cut.
    """
    names = [width(name) for block in blocks for name, _ in block]
    name_width = min(max(names, default=0), _NAME_WIDTH_MAX, max(8, screen // 2))
    lines: list[str] = []
    for number, block in enumerate(blocks, 1):
        title = f"─[ {number:,} ]"
        lines.append(title + "─" * max(0, min(screen, _RULE_WIDTH_MAX) - width(title)))
        for name, text in block:
            lines += _text_lines(name, text, name_width, screen, whole)
    return lines


def _text_lines(name: str, text: str, name_width: int, screen: int, whole: str) -> Iterator[str]:
    room = max(10, screen - name_width - width(_BAR))
    shown = padded(cut(name, name_width), name_width)
    for number, piece in enumerate(wrapped(text, room)):
        if number == LINES_PER_VALUE_MAX:
            yield f"{' ' * name_width}{_BAR}{ELLIPSIS} ({len(text):,} characters in all; {whole})"
            return
        yield f"{shown}{_BAR}{piece}".rstrip()
        shown = " " * name_width
