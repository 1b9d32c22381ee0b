"""Brings Kafka up as a Java process of this machine."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path

from forktrail_lab.broker import jvm
from forktrail_lab.broker.class_archive import ClassArchive
from forktrail_lab.broker.config import check_paths, config_folder, server_properties
from forktrail_lab.broker.ended import explained
from forktrail_lab.broker.failure import failure_reason, read_log
from forktrail_lab.broker.jars import ensure_jars, kafka_version
from forktrail_lab.broker.java import Java, find_java
from forktrail_lab.broker.layout import BrokerLayout
from forktrail_lab.broker.lock import Report
from forktrail_lab.broker.probe import LOOPBACK, accepts_connections, free_port, view_kafka
from forktrail_lab.broker.process import POLL_S, birth_mark, spawn_detached, terminate
from forktrail_lab.broker.room import check_room
from forktrail_lab.broker.state import BrokerState, write_state
from forktrail_lab.broker.storage import ensure_formatted, new_cluster_id
from forktrail_schemas.errors import BrokerError

READY_WAIT_S = 60.0
TERMINATE_S = 10.0
OLD_LOGS = 4
# The controller listens on a port that was free a moment ago; now and then somebody takes it in that moment.
CONTROLLER_PORTS_TRIED = 3


def launch(layout: BrokerLayout, port: int, report: Report, search_path: str | None = None) -> BrokerState:
    """Start Kafka on `port` and wait until it takes requests.

    The state file is written before the wait, so that whoever comes after a launch that was interrupted finds
    its process. To be called under the broker's lock, with no broker of this layout running.

    Raises:
        BrokerError: a path can't be used, the disk is full, or Java, Maven or Kafka itself failed; see `check_paths`,
            `check_room`, `find_java`, `ensure_jars`, `ensure_formatted` and `wait_ready`.
    """
    check_paths(layout.data, layout.libs)
    layout.logs.mkdir(parents=True, exist_ok=True)
    check_room(layout.data if layout.data.exists() else layout.folder)
    java = find_java(search_path)
    pom = config_folder() / "pom.xml"
    jars = ensure_jars(layout.libs, pom, layout.logs / "maven.log", report, search_path)
    archive = ClassArchive.of(layout.libs, java)
    cluster_id = _format(layout, java, jars, archive)
    for tried in range(1, CONTROLLER_PORTS_TRIED + 1):
        controller_port = _free_port_but(port)
        _write_properties(layout.properties_file, port, controller_port, layout.data)
        state = _spawn(layout, java, jars, archive, port, cluster_id)
        try:
            wait_ready(state, layout)
        except BrokerError as error:
            taken = f"{LOOPBACK}:{controller_port}: Address already in use" in error.message
            if not taken or tried == CONTROLLER_PORTS_TRIED:
                raise
            report(f"port {controller_port}, meant for Kafka's controller, was taken meanwhile; trying another")
        else:
            break
    return state


def _spawn(
    layout: BrokerLayout, java: Java, jars: tuple[Path, ...], archive: ClassArchive, port: int, cluster_id: str
) -> BrokerState:
    """Start the process and note it in the state file."""
    log4j = config_folder() / "log4j2.properties"
    archive_flags = archive.use_flags() or archive.record_flags()
    command = jvm.broker_command(java, jars, log4j, layout.properties_file, layout.logs, archive_flags)
    _keep_old_logs(layout.log_file)
    pid = spawn_detached(command, layout.log_file, layout.folder)
    state = BrokerState(
        engine="java",
        pid=pid,
        birth_mark=birth_mark(pid) or "",
        bootstrap_servers=f"{LOOPBACK}:{port}",
        cluster_id=cluster_id,
        kafka_version=kafka_version(jars),
        started_at=datetime.now(UTC).isoformat(timespec="milliseconds"),
        class_archive="" if archive.is_sealed() else str(archive.path),
    )
    try:
        write_state(layout.state_file, state)
    except OSError:  # a broker that no file names could not be stopped
        terminate(pid, state.birth_mark, TERMINATE_S)
        raise
    return state


def wait_ready(state: BrokerState, layout: BrokerLayout, wait_s: float = READY_WAIT_S) -> None:
    """Wait until the broker takes requests.

    Raises:
        BrokerError: its process ended (`start_failed`), or `wait_s` seconds went by (`start_timeout`), and then
            the process is left running, as the recovery of many topics may take longer.
    """
    port = int(state.bootstrap_servers.rpartition(":")[2])
    deadline = time.monotonic() + wait_s
    while time.monotonic() < deadline:
        if state.engine == "java" and not state.process_runs():
            layout.state_file.unlink(missing_ok=True)
            raise _ended(layout)
        view = view_kafka(state.bootstrap_servers, 1.0) if accepts_connections(port) else None
        # Another Kafka that was quicker to take the port doesn't count; ours is about to end then.
        if view and state.cluster_id in ("", view.cluster_id):
            return
        time.sleep(POLL_S)
    raise BrokerError(
        f"Kafka takes no requests after {wait_s:.0f} s; its log says: {failure_reason(read_log(layout.log_file))}",
        code="start_timeout",
        hint=f"it goes on starting: run `forktrail broker start` again to wait on; its log is {layout.log_file}",
    )


def _format(layout: BrokerLayout, java: Java, jars: tuple[Path, ...], archive: ClassArchive) -> str:
    def command(cluster_id: str, data: Path) -> list[str]:
        properties = data.with_name(f"{data.name}.properties")
        _write_properties(properties, free_port(), free_port(), data)
        log4j = config_folder() / "log4j2.properties"
        return jvm.format_command(java, jars, log4j, properties, cluster_id, archive.use_flags())

    return ensure_formatted(layout.data, command, new_cluster_id())


def _write_properties(path: Path, port: int, controller_port: int, data: Path) -> None:
    template = (config_folder() / "server.properties").read_text()
    path.write_text(server_properties(template, port=port, controller_port=controller_port, data=data))


def _keep_old_logs(log_file: Path) -> None:
    """Rename the logs of earlier starts, so that `log_file` is of one start only."""
    for age in range(OLD_LOGS, 0, -1):
        older = log_file if age == 1 else log_file.with_name(f"{log_file.name}.{age - 1}")
        if older.exists():
            older.replace(log_file.with_name(f"{log_file.name}.{age}"))


def _ended(layout: BrokerLayout) -> BrokerError:
    why = explained(read_log(layout.log_file), layout.folder)
    told = f"its log is {layout.log_file}"
    hint = f"{why.remedy}; {told}" if why.remedy else told
    return BrokerError(f"Kafka ended while it started: {why.reason}", code="start_failed", hint=hint)


def _free_port_but(port: int) -> int:
    """A free port for the controller, which isn't the broker's own."""
    while True:
        if (found := free_port()) != port:
            return found
