"""Where a local broker keeps its files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from forktrail_schemas.settings import broker_state_file


@dataclass(frozen=True)
class BrokerLayout:
    """The files of one local broker.

    Attributes:
        home: Forktrail's folder of local state.
        libs: Kafka's jars, which several brokers may share.
    """

    home: Path
    libs: Path

    @staticmethod
    def of(home: Path, libs: Path | None = None) -> BrokerLayout:
        """The layout under `home`, its jars under `home` too unless `libs` says otherwise.

        Links in `libs` are resolved, so that a class archive, which holds the jars' paths, fits every broker
        that shares them.
        """
        home = home.absolute()
        return BrokerLayout(home, (libs or broker_state_file(home).parent / "libs").resolve())

    @property
    def state_file(self) -> Path:
        """Names the process and the address while the broker runs."""
        return broker_state_file(self.home)

    @property
    def folder(self) -> Path:
        """Everything of this broker, its jars maybe excepted."""
        return self.state_file.parent

    @property
    def lock_file(self) -> Path:
        """Locked by whoever starts or stops the broker."""
        return self.folder / "lock"

    @property
    def data(self) -> Path:
        """Kafka's log folder: the events."""
        return self.folder / "data"

    @property
    def properties_file(self) -> Path:
        """The configuration of the last start."""
        return self.folder / "server.properties"

    @property
    def logs(self) -> Path:
        """What the broker and Maven print."""
        return self.folder / "logs"

    @property
    def log_file(self) -> Path:
        """Standard output and error of the broker, appended at each start."""
        return self.logs / "broker.log"
