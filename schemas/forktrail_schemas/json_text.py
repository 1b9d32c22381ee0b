"""JSON in events: read strictly, so that one text means one value to everybody.

Source: RFC 8259, held to RFC 7493 (I-JSON): no duplicate names, no half of a surrogate pair, no number that isn't
one, and integers that every reader keeps.
"""

from __future__ import annotations

import json
import math
from typing import Any

import rfc8785

from forktrail_schemas.errors import InvalidInput

Json = Any  # a JSON value; whoever reads one checks its shape

DEPTH_MAX = 32
# Beyond these, readers that keep numbers as doubles lose digits (RFC 7493, section 2.2).
INTEGER_MAX = 2**53 - 1
# RFC 8785 writes whole numbers up to 10^21 without an exponent.
_DIGITS_MAX = 21


def read_json(text: str) -> Json:
    """Read a JSON text.

    Raises:
        InvalidInput: it isn't one, names something twice, is deeper than DEPTH_MAX, or holds a text or number that not
            every reader keeps. The message says the same under every version of Python, since the fold may keep it.
    """
    if _deeper_than(text, DEPTH_MAX):
        raise InvalidInput(f"the JSON is nested deeper than {DEPTH_MAX}")
    try:
        value = json.loads(
            text, object_pairs_hook=_object, parse_constant=_constant, parse_int=_integer, parse_float=_number
        )
    except InvalidInput:
        raise
    except (ValueError, RecursionError):
        raise InvalidInput("the text is no JSON") from None
    if "\\u" in text and _halved(value):
        raise InvalidInput("the JSON holds half of a surrogate pair")
    return value


def _halved(value: Json) -> bool:
    """Whether a text in it isn't Unicode: escapes can name what UTF-8 can't write."""
    if isinstance(value, str):
        return any("\ud800" <= character <= "\udfff" for character in value)
    if isinstance(value, dict):
        return any(_halved(name) or _halved(item) for name, item in value.items())
    return isinstance(value, list) and any(map(_halved, value))


def _deeper_than(text: str, depth: int) -> bool:
    """Whether brackets stand deeper in each other; those in strings count too where there are that many."""
    if text.count("{") + text.count("[") <= depth:
        return False
    deep = 0
    inside = escaped = False
    for character in text:
        if inside:
            inside = escaped or character != '"'
            escaped = character == "\\" and not escaped
        elif character == '"':
            inside = True
        elif character in "{[":
            deep += 1
            if deep > depth:
                return True
        elif character in "}]":
            deep -= 1
    return False


def _object(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise InvalidInput("the JSON names something twice in one object")
    return made


def _constant(name: str) -> Json:
    raise InvalidInput(f"{name} is no JSON number")


def _integer(text: str) -> int | float:
    """An integer; beyond INTEGER_MAX a double, where that is the very number that was written."""
    if len(text.lstrip("-")) <= _DIGITS_MAX:
        number = int(text)
        if abs(number) <= INTEGER_MAX:
            return number
        if int(float(number)) == number:
            return float(number)
    raise InvalidInput("the JSON holds an integer that a double can't hold")


def _number(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise InvalidInput("the JSON holds a number beyond what a double holds")
    return number or 0.0  # -0.0 is 0.0: they are equal, and would be told apart by their bytes


def canonical_json(value: Json) -> str:
    """JSON as RFC 8785 writes it: the same text for the same value.

    Raises:
        InvalidInput: the value is no JSON, or holds an integer beyond 2^53 - 1.
    """
    try:
        return rfc8785.dumps(value).decode()
    except rfc8785.CanonicalizationError as error:
        raise InvalidInput(f"the value is no JSON: {error}") from error
