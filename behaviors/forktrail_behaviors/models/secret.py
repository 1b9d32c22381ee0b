"""A key that no text shows."""

from __future__ import annotations

MARK = b"[key removed]"
# Shorter ones would stand in ordinary words.
_LENGTH_MIN = 6


class Secret:
    """A key, and what takes it out of bytes that may repeat it."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def __repr__(self) -> str:
        return "Secret()"

    def reveal(self) -> str:
        """The key itself, for a header."""
        return self._value

    def removed_from(self, told: bytes) -> bytes:
        """The bytes without the key, wherever it stands in them."""
        value = self._value.encode()
        return told.replace(value, MARK) if len(value) >= _LENGTH_MIN else told
