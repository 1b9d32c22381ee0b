"""Starts and stops the local broker."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from forktrail_lab.broker import docker
from forktrail_lab.broker.class_archive import ClassArchive
from forktrail_lab.broker.config import compose_file
from forktrail_lab.broker.ended import gone
from forktrail_lab.broker.java_broker import launch, wait_ready
from forktrail_lab.broker.layout import BrokerLayout
from forktrail_lab.broker.lock import Report, exclusive
from forktrail_lab.broker.probe import (
    LOOPBACK,
    PROBE_TIMEOUT_S,
    kafka_of_another,
    port_is_free,
    view_kafka,
    ways_to_use,
)
from forktrail_lab.broker.process import terminate
from forktrail_lab.broker.state import BrokerState, read_state, write_state
from forktrail_schemas.errors import BrokerError

STOP_GRACE_S = 30.0
_AT_WORK = "starting or stopping the broker"
# The errors for which Docker is a remedy: it brings along what they miss.
REPLACED_BY_DOCKER = ("java_missing", "java_too_old", "maven_missing")


@dataclass(frozen=True)
class Started:
    """A broker that takes requests.

    Attributes:
        state: what its state file says.
        was_running: True if it ran before.
    """

    state: BrokerState
    was_running: bool


@dataclass(frozen=True)
class Stopped:
    """How a stop went.

    Attributes:
        state: the broker that was stopped; None if none ran.
        manner: "by itself" after SIGTERM, "killed" after the grace time, "docker", or "not running".
    """

    state: BrokerState | None
    manner: Literal["by itself", "killed", "docker", "not running"]


def start(layout: BrokerLayout, port: int, report: Report, search_path: str | None = None) -> Started:
    """Start the broker on a port of loopback and wait until it takes requests.

    Events that were acknowledged before are all there. A broker that runs stays as it is, on its own port. Of
    several starts at once one starts the broker and the others wait for it.

    Args:
        layout: the broker's files.
        port: where it shall listen.
        report: told what takes time and what was healed.
        search_path: folders with `java`, `mvn` and `docker`, joined as in PATH; None is PATH itself.

    Raises:
        BrokerError: it can't be started; `code` says why, and nothing of this start runs, but for
            `start_timeout`, after which it still may come up.
    """
    with exclusive(layout.lock_file, _AT_WORK, report):
        if state := _running_state(layout, report):
            return Started(state, was_running=True)
        if not port_is_free(port):
            raise _port_taken(layout, port)
        return Started(_launch(layout, port, report, search_path), was_running=False)


def _running_state(layout: BrokerLayout, report: Report) -> BrokerState | None:
    """The state of the broker that runs, once it takes requests."""
    state = _current_state(layout, report)
    if state is None:
        return None
    try:
        wait_ready(state, layout)
    except BrokerError as error:
        if error.code != "start_failed":
            raise
        report(f"process {state.pid} of the broker has just ended; starting it again")
        return None
    return state


def _port_taken(layout: BrokerLayout, port: int) -> BrokerError:
    another = kafka_of_another(port)
    taken = f"is taken by another Kafka, {another}" if another else f"of {LOOPBACK} is taken by another process"
    use = ways_to_use(another) if another else "set FORKTRAIL_BOOTSTRAP_SERVERS if a Kafka listens there"
    return BrokerError(
        f"no broker of {layout.home} is running, and port {port} {taken}",
        code="port_taken",
        hint=f"{use}; or choose another port with --port",
    )


def _launch(layout: BrokerLayout, port: int, report: Report, search_path: str | None) -> BrokerState:
    try:
        return launch(layout, port, report, search_path)
    except BrokerError as error:
        compose = compose_file()
        if error.code not in REPLACED_BY_DOCKER or not compose or not docker.answers(search_path):
            raise
        report(f"{error.message}: starting Kafka with Docker Compose instead")
    state = docker.up(compose, port, search_path, datetime.now(UTC))
    write_state(layout.state_file, state)
    wait_ready(state, layout)
    return state


def stop(
    layout: BrokerLayout, report: Report, search_path: str | None = None, grace_s: float = STOP_GRACE_S
) -> Stopped:
    """Stop the broker: SIGTERM, and SIGKILL if it still runs after `grace_s` seconds. Events stay.

    Raises:
        BrokerError: it can't be stopped.
    """
    if not layout.folder.exists():
        return Stopped(None, "not running")
    with exclusive(layout.lock_file, _AT_WORK, report):
        noted = read_state(layout.state_file)
        if noted and noted.engine == "docker":
            docker.down(compose_file(), search_path)
            layout.state_file.unlink()
            return Stopped(noted, "docker")
        state = _current_state(layout, report)
        if state is None:
            return Stopped(None, "not running")
        by_itself = terminate(state.pid, state.birth_mark, grace_s)
        layout.state_file.unlink()
        if by_itself and state.class_archive:
            ClassArchive(Path(state.class_archive)).seal()
        return Stopped(state, "by itself" if by_itself else "killed")


def _current_state(layout: BrokerLayout, report: Report) -> BrokerState | None:
    """The state of the broker that runs; a state file that outlived its broker is reported and removed."""
    state = read_state(layout.state_file)
    if state is None:
        with suppress(FileNotFoundError):
            layout.state_file.unlink()
        return None
    if state.process_runs():
        return state
    if state.engine == "docker":
        if view_kafka(state.bootstrap_servers, PROBE_TIMEOUT_S):
            return state
        report("the state file names a container that doesn't answer; removing the file")
    else:
        report(f"{gone(state, layout)}; removing the file")
    layout.state_file.unlink()
    return None
