"""The state file: which process is the broker, and where it listens."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from forktrail_lab.broker.process import birth_mark


@dataclass(frozen=True)
class BrokerState:
    """What the state file says about a broker that was started.

    Attributes:
        engine: "java" for a process of this machine, "docker" for a container.
        pid: the process; 0 in a container.
        birth_mark: what tells the process from a later one with the same pid; see `process.birth_mark`.
        bootstrap_servers: where it listens.
        cluster_id: the id that its data folder was formatted with; empty in a container.
        kafka_version: the version of Kafka.
        started_at: start time, RFC 3339 in UTC.
        class_archive: the class archive that it writes when it ends; empty if it writes none.
    """

    engine: Literal["java", "docker"]
    pid: int
    birth_mark: str
    bootstrap_servers: str
    cluster_id: str
    kafka_version: str
    started_at: str
    class_archive: str = ""

    def process_runs(self) -> bool:
        """True if the very process that was started still runs."""
        return self.pid > 0 and birth_mark(self.pid) == self.birth_mark


def read_state(path: Path) -> BrokerState | None:
    """The state in `path`; None if there is none, or if it is none of ours."""
    try:
        return BrokerState(**json.loads(path.read_text()))
    except (OSError, ValueError, TypeError):
        return None


def write_state(path: Path, state: BrokerState) -> None:
    """Replace the state file; a reader sees the old one or the new one, never a part."""
    partial = path.with_name(path.name + ".partial")
    partial.write_text(json.dumps(asdict(state), indent=1) + "\n")
    partial.replace(path)
