"""What a live fold says of how far it is: when it falls behind, now and then while it is, and when it has caught up."""

from __future__ import annotations

SECONDS_BETWEEN = 10.0


class Progress:
    """Decides what to say, sparingly; it is told every second or so where the fold stands."""

    def __init__(self) -> None:
        self._behind_before = False
        self._said_behind = False
        self._said_at = float("-inf")

    def line(self, now: float, next_offset: int, end: int) -> str | None:
        """The line to say now, if any.

        A fold that is behind for a moment alone says nothing.

        Args:
            now: seconds of any clock that doesn't go back.
        """
        behind = max(0, end - next_offset)
        if not behind:
            line = f"caught up at offset {next_offset}" if self._said_behind else None
            self._behind_before = self._said_behind = False
            return line
        if not self._behind_before or now - self._said_at < SECONDS_BETWEEN:
            self._behind_before = True
            return None
        self._said_behind, self._said_at = True, now
        return f"{behind:,} {'record' if behind == 1 else 'records'} behind, at offset {next_offset}"
