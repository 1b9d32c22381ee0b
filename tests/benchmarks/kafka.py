"""The Kafka that the benchmarks run on: the one that the environment names, else a local broker of their own."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from forktrail_lab.broker import control
from forktrail_lab.broker.layout import BrokerLayout
from forktrail_lab.broker.probe import free_port

SHARED_HOME = Path(__file__).parents[2] / ".forktrail"
# The broker's own flags stop at Java's first compiler, for a quick start; Java gives this variable the last word.
_JAVA_OPTIONS = "_JAVA_OPTIONS"
_FULL_COMPILER = "-XX:TieredStopAtLevel=4"


@dataclass(frozen=True)
class Kafka:
    """A Kafka that takes requests, and what it is in words."""

    bootstrap_servers: str
    description: str


@contextmanager
def benchmark_kafka(folder: Path) -> Iterator[Kafka]:
    """A Kafka for the length of a `with` block; a broker that is started for it lies in `folder` and ends with it."""
    external = os.environ.get("FORKTRAIL_BOOTSTRAP_SERVERS", "").strip()
    if external:
        yield Kafka(external, f"Kafka at {external}")
        return
    layout = BrokerLayout.of(folder, libs=BrokerLayout.of(SHARED_HOME).libs)
    os.environ[_JAVA_OPTIONS] = f"{os.environ.get(_JAVA_OPTIONS, '')} {_FULL_COMPILER}".strip()
    try:
        state = control.start(layout, free_port(), _report).state
        yield Kafka(state.bootstrap_servers, f"Kafka {state.kafka_version} of its own ({state.engine}, all compilers)")
    finally:
        control.stop(layout, _report)


def _report(line: str) -> None:
    print(line, file=sys.stderr)
