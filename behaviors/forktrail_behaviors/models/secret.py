"""A key that no text shows, however it is written there."""

from __future__ import annotations

import re

from forktrail_schemas.json_text import Json

MARK = "[key removed]"
# Shorter ones would stand in ordinary words.
_LENGTH_MIN = 6


class Secret:
    """A key, and what takes it out of what may repeat it."""

    __slots__ = ("_pattern", "_value")

    def __init__(self, value: str) -> None:
        self._value = value
        self._pattern = re.compile("".join(map(_written, value)).encode()) if len(value) >= _LENGTH_MIN else None

    def __repr__(self) -> str:
        return "Secret()"

    def removed_from(self, told: bytes, *, cut: bool = False) -> bytes:
        """Bytes without the key, plain or escaped as JSON escapes.

        Args:
            cut: whether the bytes end in the midst of something: then what may be the key's beginning goes too.
        """
        if self._pattern is None:
            return told
        told = self._pattern.sub(MARK.encode(), told)
        if cut:
            value = self._value.encode()
            ends = next((n for n in range(len(value) - 1, 0, -1) if told.endswith(value[:n])), 0)
            told = told[: len(told) - ends]
        return told

    def removed_from_text(self, told: str) -> str:
        """A text without the key."""
        return told if self._pattern is None else told.replace(self._value, MARK)

    def removed_from_value(self, told: Json) -> Json:
        """A JSON value whose texts and names are without the key."""
        if isinstance(told, str):
            return self.removed_from_text(told)
        if isinstance(told, list):
            return [self.removed_from_value(part) for part in told]
        if isinstance(told, dict):
            return {self.removed_from_text(name): self.removed_from_value(part) for name, part in told.items()}
        return told


def _written(character: str) -> str:
    r"""A pattern for the ways in which JSON may write a character of ASCII: as it is, as \u0041, and some as \/."""
    plain = re.escape(character)
    number = f"{ord(character):04x}"
    hexadecimal = "".join(f"[{digit}{digit.upper()}]" for digit in number)
    return f"(?:\\\\?{plain}|\\\\u{hexadecimal})"
