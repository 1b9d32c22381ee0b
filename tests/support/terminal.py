"""A real terminal for tests: a command in tmux, keys sent to it, and what is on its screen."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

WAIT_SECONDS = 30.0
_LOOK_SECONDS = 0.05


class Terminal:
    """A command in a terminal of its own, in a tmux server of its own.

    Attributes:
        panes: what `shot` took, each under its title.
    """

    def __init__(self, socket: Path, columns: int = 100, rows: int = 30) -> None:
        """Name the servers' sockets; nothing is started yet. Skips the test where there is no tmux."""
        if shutil.which("tmux") is None:
            pytest.skip("tmux is not installed, and a shell at a real terminal can't be driven without it")
        self._sockets = socket
        self._starts = 0
        self._columns, self._rows = columns, rows
        self.panes: list[tuple[str, str]] = []

    def start(self, words: list[str], environ: Mapping[str, str]) -> None:
        """Run a command; when it ends, the screen says `ended with CODE`."""
        self._starts += 1  # a server that is still ending would take a new one down with it
        script = f"{shlex.join(words)}; echo ended with $?; sleep 600"
        size = ["-x", str(self._columns), "-y", str(self._rows)]
        # The server hands on the environment that it is started with.
        self._tmux("new-session", "-d", *size, script, environ={**os.environ, "TERM": "xterm-256color", **environ})

    def keys(self, *names: str) -> None:
        """Press keys by tmux's names: Enter, Tab, C-c, Up."""
        self._tmux("send-keys", *names)

    def type(self, text: str) -> None:
        """Type a text, letter by letter."""
        # A semicolon at the end of a word is tmux's own.
        self._tmux("send-keys", "-l", text.replace(";", "\\;") if text.endswith(";") else text)

    def enter(self, text: str) -> None:
        """Type a text and press Enter."""
        self.type(text)
        self.keys("Enter")

    def screen(self) -> str:
        """What is on the screen now, without spaces at the ends of lines."""
        shown = self._tmux("capture-pane", "-p").stdout
        return "\n".join(line.rstrip() for line in shown.splitlines()).rstrip()

    def shot(self, title: str) -> str:
        """What is on the screen now, kept under a title."""
        shown = self.screen()
        self.panes.append((title, shown))
        return shown

    def wait_for(self, what: str | Callable[[str], bool], seconds: float = WAIT_SECONDS) -> str:
        """The screen, once a text is on it or it is as wanted; fails where that takes too long."""
        wanted = (lambda shown: what in shown) if isinstance(what, str) else what
        deadline = time.monotonic() + seconds
        while not wanted(shown := self.screen()):
            assert time.monotonic() < deadline, f"never came to show {what!r}:\n{shown}"
            time.sleep(_LOOK_SECONDS)
        return shown

    def close(self) -> None:
        """End the server and what runs in it."""
        self._tmux("kill-server", check=False)

    def _tmux(
        self, *words: str, environ: Mapping[str, str] | None = None, check: bool = True
    ) -> subprocess.CompletedProcess[str]:
        socket = self._sockets.with_name(f"{self._sockets.name}-{self._starts}")
        command = ["tmux", "-S", str(socket), "-f", os.devnull, *words]
        return subprocess.run(command, env=environ, check=check, capture_output=True, text=True, timeout=WAIT_SECONDS)
