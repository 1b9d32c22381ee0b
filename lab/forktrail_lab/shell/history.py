"""What was typed, kept on disk for the next session, readable by its owner alone."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from prompt_toolkit.history import FileHistory

ENTRIES_MAX = 10_000


class ShellHistory(FileHistory):
    """The history file. What is typed twice in a row is kept once; only the newest ENTRIES_MAX are offered again."""

    def __init__(self, path: Path) -> None:
        """Use a file; it is made, with its folder, if need be.

        Raises:
            OSError: it can't be.
        """
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600))
        path.chmod(0o600)
        super().__init__(str(path))

    def append_string(self, string: str) -> None:
        """Keep an entry, unless the last one is the same."""
        entries = self.get_strings()
        if not entries or entries[-1] != string:
            super().append_string(string)

    def load_history_strings(self) -> Iterable[str]:
        """The entries, the newest first."""
        for number, entry in enumerate(super().load_history_strings()):
            if number >= ENTRIES_MAX:
                return
            yield entry
