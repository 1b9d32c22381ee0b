"""How wide the columns of a table may be on a screen, and which may be cut for it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from forktrail_lab.console.widths import width

# Below this no words are cut, and no name of a column below that.
WIDTH_MIN = 12
NAME_MIN = 20
# A single word of at most so many columns is a name: half of one says nothing.
WORD_WHOLE_MAX = 36
_ID = re.compile(r"[a-z]+-[0-9a-f]{12,20}")
_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?Z?")

Cells = Sequence[Sequence[str]]


def natural_widths(names: Sequence[str], cells: Cells) -> list[int]:
    """The width of each column with nothing cut."""
    return [max([width(name), *(width(row[place]) for row in cells)]) for place, name in enumerate(names)]


def least_widths(names: Sequence[str], cells: Cells) -> list[int]:
    """The least width of each column: ids, names, numbers and times whole, words and long texts cut."""
    return [
        max([min(width(name), NAME_MIN), *(_least(row[place]) for row in cells)]) for place, name in enumerate(names)
    ]


def fitted_widths(natural: Sequence[int], least: Sequence[int], room: int) -> list[int] | None:
    """Widths that fit: as they come, or with the widest columns cut to one size; None where the least don't fit."""
    if sum(natural) <= room:
        return list(natural)
    if sum(least) > room:
        return None
    low, high = 0, max(natural)
    while low < high:  # the greatest size that all columns can be held to
        size = (low + high + 1) // 2
        if sum(_held(natural, least, size)) <= room:
            low = size
        else:
            high = size - 1
    widths = _held(natural, least, low)
    for place, size in enumerate(natural):  # what is left is less than a column each
        if sum(widths) < room and widths[place] < size:
            widths[place] += 1
    return widths


def _least(text: str) -> int:
    size = width(text)
    whole = _ID.fullmatch(text) or _TIME.fullmatch(text) or (" " not in text and size <= WORD_WHOLE_MAX)
    return size if whole else min(size, WIDTH_MIN)


def _held(natural: Sequence[int], least: Sequence[int], size: int) -> list[int]:
    return [max(low, min(whole, size)) for whole, low in zip(natural, least, strict=True)]
