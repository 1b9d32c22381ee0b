"""What a statement and its parameters may hold: the engine's bindings refuse the rest in words of their own."""

from __future__ import annotations

from collections.abc import Mapping

from forktrail_projectors.graph.checks import INT64_MAX, INT64_MIN
from forktrail_projectors.state import Value
from forktrail_schemas.errors import InvalidInput


def check_values(cypher: str, parameters: Mapping[str, Value]) -> None:
    """Refuse text that isn't Unicode, and whole numbers beyond the engine's INT64.

    Raises:
        InvalidInput: what is wrong, and with which parameter.
    """
    _check_text("the query", cypher)
    for name, value in parameters.items():
        if isinstance(value, bool) or value is None:
            continue
        if isinstance(value, int):
            check_integer(f"${name}", value)
            continue
        if isinstance(value, float):
            continue
        for text in (value,) if isinstance(value, str) else value:
            _check_text(f"${name}", text)


def check_integer(what: str, value: int) -> None:
    """Refuse a whole number that the engine can't hold.

    Raises:
        InvalidInput: it needs more than 64 bits.
    """
    if not INT64_MIN <= value <= INT64_MAX:
        raise InvalidInput(
            f"{what} is no whole number from {INT64_MIN} to {INT64_MAX}", hint="in double quotes it is a text"
        )


def _check_text(what: str, text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        # Python gives a byte that isn't UTF-8 as one of these characters (PEP 383).
        wrong = ord(text[error.start])
        shown = f"byte {wrong - 0xDC00:#x}" if 0xDC80 <= wrong <= 0xDCFF else f"half a character, {wrong:#x},"
        raise InvalidInput(
            f"{what} isn't UTF-8: {shown} after {error.start} characters", hint="write it in UTF-8"
        ) from None
