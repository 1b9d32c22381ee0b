"""The local broker of a chaos run: a Kafka of its own, which is killed, stopped for a while, and started again."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

from forktrail_lab.broker import control
from forktrail_lab.broker.config import config_folder
from forktrail_lab.broker.jars import ensure_jars
from forktrail_lab.broker.layout import BrokerLayout
from forktrail_lab.broker.probe import free_port
from forktrail_lab.broker.state import read_state
from forktrail_schemas.errors import BrokerError, ForktrailError

SHARED_HOME = Path(__file__).parents[2] / ".forktrail"
_GONE_SECONDS = 0.02

Say = Callable[[str], None]


class Broker:
    """A broker in a folder and on a port of its own; its jars are the checkout's.

    Attributes:
        starts: how often it was started.
        start_seconds: how long each start took until it took requests.
    """

    def __init__(self, home: Path, say: Say) -> None:
        self._layout = BrokerLayout.of(home, libs=BrokerLayout.of(SHARED_HOME).libs)
        self._port = free_port()
        self._say = say
        self._starting: threading.Thread | None = None
        self._failure: BaseException | None = None
        self.bootstrap_servers = f"127.0.0.1:{self._port}"
        self.starts = 0
        self.start_seconds: list[float] = []

    @property
    def data(self) -> Path:
        """Its data folder, with a folder for each partition."""
        return self._layout.data

    @property
    def up(self) -> bool:
        """Whether it takes requests.

        Raises:
            ForktrailError: its last start failed.
        """
        if self._starting is not None and not self._starting.is_alive():
            self._starting.join()
            self._starting = None
        if self._failure is not None:
            raise self._failure
        return self._starting is None and self.starts > 0

    def start(self) -> None:
        """Start it, and wait until it takes requests.

        Raises:
            ForktrailError: it can't be started.
        """
        libs, logs = self._layout.libs, self._layout.logs
        logs.mkdir(parents=True, exist_ok=True)
        ensure_jars(libs, config_folder() / "pom.xml", logs / "maven.log", self._say)
        self._start()
        if self._failure is not None:
            raise self._failure
        state = read_state(self._layout.state_file)
        if state is None or state.engine != "java":
            raise BrokerError("chaos needs a broker that is a process of this machine", hint="install Java and Maven")

    def begin_start(self) -> None:
        """Start it, and don't wait."""
        self._starting = threading.Thread(target=self._start, daemon=True)
        self._starting.start()

    def kill(self) -> None:
        """SIGKILL it and wait until its process is gone."""
        self.signal(signal.SIGKILL)
        while (state := read_state(self._layout.state_file)) and state.process_runs():
            time.sleep(_GONE_SECONDS)

    def signal(self, number: signal.Signals) -> None:
        """Send its process a signal."""
        state = read_state(self._layout.state_file)
        assert state is not None
        assert state.pid > 0, "0 would be this process's whole group"
        os.kill(state.pid, number)

    def stop(self) -> None:
        """End it."""
        if self._starting is not None:
            self._starting.join()
        control.stop(self._layout, self._say)

    def _start(self) -> None:
        began = time.monotonic()
        try:
            try:
                control.start(self._layout, self._port, _ignore)
            except BrokerError as error:
                if error.code != "start_timeout":
                    raise
                control.start(self._layout, self._port, _ignore)  # it goes on starting: wait on, as its hint says
        except ForktrailError as error:
            self._failure = error
        else:
            self.starts += 1
            self.start_seconds.append(time.monotonic() - began)


def _ignore(line: str) -> None:
    """That a state file outlived its broker is no news here."""
