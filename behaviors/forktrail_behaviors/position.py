"""How far a worker has come with a run: a small file, written after all that a record fired is on the log.

Where it is lost, behaviors are evaluated again from the start of the log, and nothing else happens.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Protocol

SAVE_SECONDS = 0.5


class Position(Protocol):
    """Where a worker stands in a log, remembered beyond its process."""

    def load(self, end: int) -> int:
        """The offset that comes next; 0 where it is lost, or beyond the log's end."""
        ...

    def save(self, next_offset: int, *, at_once: bool = False) -> None:
        """Note the offset that comes next, soon or at once."""
        ...


class PositionFile:
    """Implements `Position` by a file of one run."""

    def __init__(self, path: Path, topic_id: str) -> None:
        self._path = path
        self._topic_id = topic_id
        self._saved_at = float("-inf")
        self._saved = -1

    def load(self, end: int) -> int:
        """The offset that comes next; 0 where the file is missing, damaged, of another topic or beyond the end."""
        try:
            found = json.loads(self._path.read_bytes())
            offset = found["next_offset"]
            known = found["topic_id"] == self._topic_id and type(offset) is int and 0 <= offset <= end
        except (OSError, ValueError, KeyError, TypeError):
            return 0
        return offset if known else 0

    def save(self, next_offset: int, *, at_once: bool = False) -> None:
        """Note the offset that comes next; at most twice a second unless it must be at once."""
        now = time.monotonic()
        if next_offset == self._saved or (not at_once and now - self._saved_at < SAVE_SECONDS):
            return
        self._path.parent.mkdir(parents=True, exist_ok=True)
        temporary = self._path.with_name(f"{self._path.name}.{os.getpid()}")
        temporary.write_text(json.dumps({"topic_id": self._topic_id, "next_offset": next_offset}))
        temporary.replace(self._path)
        self._saved, self._saved_at = next_offset, now
