"""Keeps a session up with its run while its user thinks: folds what came, and knows where the graph stands."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from forktrail_lab.shell.session import Session
from forktrail_lab.shell.source import Standing
from forktrail_schemas.errors import ForktrailError

INTERVAL_SECONDS = 1.0


class Pulse:
    """A thread that asks the source where it stands, as long as somebody is at the prompt.

    Attributes:
        standing: the last answer, None before the first.
        trouble: why there is none now, or empty.
    """

    def __init__(self, session: Session, interval_seconds: float = INTERVAL_SECONDS) -> None:
        self.standing: Standing | None = None
        self.trouble = ""
        self._session = session
        self._interval = interval_seconds
        self._at_prompt = threading.Event()
        self._stopped = threading.Event()
        self._learned = False
        self._thread = threading.Thread(target=self._beat, name="forktrail-shell-pulse", daemon=True)

    def start(self) -> None:
        """Begin; the first beat comes with the first prompt."""
        self._thread.start()

    def stop(self) -> None:
        """End, without waiting for a beat that is under way."""
        self._stopped.set()
        self._at_prompt.set()

    @contextmanager
    def beating(self) -> Iterator[None]:
        """Beat for the length of a `with` block: while a statement runs, it has the source to itself."""
        self._at_prompt.set()
        try:
            yield
        finally:
            self._at_prompt.clear()

    def _beat(self) -> None:
        while not self._stopped.is_set():
            self._at_prompt.wait()
            if self._stopped.is_set():
                return
            self.once()
            self._stopped.wait(self._interval)

    def once(self) -> None:
        """One beat."""
        try:
            self.standing = self._session.source.standing()
            self.trouble = ""
            if not self._learned:
                self._session.learn_catalog()
                self._learned = True
        except ForktrailError as error:
            self.trouble = error.message
