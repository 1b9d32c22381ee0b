"""How well a name fits what was typed: its start, the start of a part of it, a part, or letters in order."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import TypeVar

T = TypeVar("T")

# Fewer letters than this, spread over a name, fit almost any.
_SPREAD_LETTERS_MIN = 3
# A part begins after a sign that is no letter, or with a capital after a small letter.
_PART = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[^A-Za-z0-9]+")


def fit(typed: str, name: str) -> tuple[int, int] | None:
    """How well a name fits, as a key to sort by, best first; None where it doesn't."""
    wanted, whole = typed.lower(), name.lower()
    if whole.startswith(wanted):
        return (0, 0)
    if any(part.lower().startswith(wanted) for part in _PART.split(name)):
        return (1, 0)
    place = whole.find(wanted)
    if place >= 0:
        return (2, place)
    spread = _spread(wanted, whole) if len(wanted) >= _SPREAD_LETTERS_MIN else None
    return None if spread is None else (3, spread)


def fitting(typed: str, candidates: Iterable[T], name: Callable[[T], str]) -> list[T]:
    """The candidates that fit, best first; equals in the order in which they came."""
    found = [(key, candidate) for candidate in candidates if (key := fit(typed, name(candidate))) is not None]
    return [candidate for _, candidate in sorted(found, key=lambda pair: pair[0])]


def _spread(wanted: str, whole: str) -> int | None:
    """From the first to the last of the wanted letters, found in order; None where one is missing."""
    first, place = -1, -1
    for letter in wanted:
        place = whole.find(letter, place + 1)
        if place < 0:
            return None
        first = place if first < 0 else first
    return place - first
