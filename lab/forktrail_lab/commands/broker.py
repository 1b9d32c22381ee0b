"""`forktrail broker`: start, stop or look at the local Kafka broker."""

from __future__ import annotations

import argparse
import time
from datetime import UTC, datetime

from forktrail_lab.broker.control import start, stop
from forktrail_lab.broker.ended import gone
from forktrail_lab.broker.layout import BrokerLayout
from forktrail_lab.broker.probe import (
    LOOPBACK,
    KafkaView,
    kafka_of_another,
    port_is_free,
    view_kafka,
    ways_to_use,
)
from forktrail_lab.broker.state import BrokerState
from forktrail_lab.broker.status import Status, status
from forktrail_lab.console.arguments import add_action, add_actions, add_format
from forktrail_lab.console.output import Format, note, print_facts, print_result
from forktrail_schemas.errors import BrokerError, ExitCode, LogUnavailable
from forktrail_schemas.settings import Settings

START_EXAMPLE = "  forktrail broker start\n  forktrail broker start --port 9192"
STOP_EXAMPLE = "  forktrail broker stop"
STATUS_EXAMPLE = "  forktrail broker status --format json"
EXAMPLE = "\n".join((START_EXAMPLE, STATUS_EXAMPLE, STOP_EXAMPLE))
EXTERNAL_TIMEOUT_S = 10.0


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare start, stop and status."""
    actions = add_actions(parser, "start|stop|status")
    starting = add_action(
        actions, "start", "start the local broker, unless it runs, and wait until it takes requests", START_EXAMPLE
    )
    starting.add_argument("--port", type=_port, help="port of 127.0.0.1 (default: FORKTRAIL_BROKER_PORT, else 9092)")
    add_format(starting)
    add_format(add_action(actions, "stop", "stop the local broker; its events stay", STOP_EXAMPLE))
    add_format(
        add_action(actions, "status", "say whether a broker runs: exit code 0 if it does, 1 if not", STATUS_EXAMPLE)
    )


def run(arguments: argparse.Namespace, settings: Settings) -> int:
    """Start, stop or describe the broker.

    Raises:
        BrokerError: the local broker can't be started or stopped, or it isn't ours to stop.
        LogUnavailable: the Kafka that FORKTRAIL_BOOTSTRAP_SERVERS names doesn't answer.
    """
    try:
        if arguments.action == "start":
            return _start(settings, arguments.port, arguments.format)
        if arguments.action == "stop":
            return _stop(settings, arguments.format)
        return _status(settings, arguments.format)
    except OSError as error:
        raise BrokerError(
            f"the broker's files can't be used: {error}",
            code="files_unusable",
            hint=f"is {settings.home} writable, and is there room?",
        ) from error


def _start(settings: Settings, port: int | None, format: str) -> int:
    if settings.external_kafka:
        view = _external(settings)
        if view is None:
            raise LogUnavailable(
                _silent(settings), hint="unset FORKTRAIL_BOOTSTRAP_SERVERS to use the local broker instead"
            )
        line = f"using the Kafka at {settings.bootstrap_servers}, which FORKTRAIL_BOOTSTRAP_SERVERS names"
        print_result(line, _external_facts(settings, view), format)
        return ExitCode.OK
    began = time.monotonic()
    started = start(BrokerLayout.of(settings.home), port or settings.broker_port, note)
    state = started.state
    where = f"Kafka {state.kafka_version} at {state.bootstrap_servers}" + (
        f", pid {state.pid}" if state.pid else ", in Docker"
    )
    how = "is running already" if started.was_running else f"started in {time.monotonic() - began:.1f} s"
    facts = {"home": str(settings.home), "was_running": started.was_running, **_state_facts(state)}
    print_result(f"broker {how}: {where}", facts, format)
    if started.was_running and port and not state.bootstrap_servers.endswith(f":{port}"):
        note("it keeps its port; to change that, run `forktrail broker stop` first")
    return ExitCode.OK


def _stop(settings: Settings, format: str) -> int:
    if settings.external_kafka:
        raise BrokerError(
            f"the Kafka at {settings.bootstrap_servers} is not ours to stop",
            code="external_kafka",
            hint="unset FORKTRAIL_BOOTSTRAP_SERVERS to stop the local broker",
        )
    began = time.monotonic()
    stopped = stop(BrokerLayout.of(settings.home), note)
    facts: dict[str, object] = {"home": str(settings.home), "stopped": stopped.state is not None}
    if stopped.state is None:
        facts["other_kafka"] = kafka_of_another(settings.broker_port)
        line = _not_running(facts, settings.broker_port)
    else:
        how = {"by itself": "", "killed": ", with SIGKILL as SIGTERM was not enough", "docker": ", in Docker"}
        line = f"broker stopped in {time.monotonic() - began:.1f} s{how[stopped.manner]}"
    print_result(line, facts, format)
    return ExitCode.OK


def _status(settings: Settings, format: str) -> int:
    if settings.external_kafka:
        facts = _external_facts(settings, _external(settings))
        absent = _silent(settings)
    else:
        facts = _local_facts(settings, status(BrokerLayout.of(settings.home), datetime.now(UTC)))
        absent = "" if facts["running"] else _not_running(facts, settings.broker_port)
    if facts["running"] or format == Format.JSON:
        print_facts(facts, format)
    else:
        print_result(absent, facts, format)
    return ExitCode.OK if facts["running"] else ExitCode.ERROR


def _local_facts(settings: Settings, seen: Status) -> dict[str, object]:
    facts: dict[str, object] = {"running": seen.running, "home": str(settings.home)}
    if seen.running and seen.state:
        uptime_s = None if seen.uptime_s is None else round(seen.uptime_s, 1)
        measured = {"uptime_s": uptime_s, "rss_bytes": seen.rss_bytes, "topics": seen.topics}
        return facts | {"answers": seen.answers, **_state_facts(seen.state), **measured}
    if seen.state:
        note(gone(seen.state, BrokerLayout.of(settings.home)))
    return facts | {"other_kafka": kafka_of_another(settings.broker_port)}


def _state_facts(state: BrokerState) -> dict[str, object]:
    return {
        "engine": state.engine,
        "pid": state.pid or None,
        "bootstrap_servers": state.bootstrap_servers,
        "cluster_id": state.cluster_id or None,
        "kafka_version": state.kafka_version,
        "started_at": state.started_at,
    }


def _not_running(facts: dict[str, object], port: int) -> str:
    """Say which home has no broker, and what listens in its place: a Kafka to use, or a reason for another port."""
    line = f"no broker of {facts['home']} is running"
    if other := facts["other_kafka"]:
        return f"{line}; another Kafka answers at {other} ({ways_to_use(str(other))})"
    if not port_is_free(port):
        return f"{line}; another process has port {port} of {LOOPBACK}, so choose another with `broker start --port`"
    return line


def _external_facts(settings: Settings, view: KafkaView | None) -> dict[str, object]:
    return {
        "running": view is not None,
        "engine": "external",
        "bootstrap_servers": settings.bootstrap_servers,
        "cluster_id": view.cluster_id if view else None,
        "topics": len(view.topics) if view else None,
    }


def _silent(settings: Settings) -> str:
    return f"no Kafka answers at {settings.bootstrap_servers}, which FORKTRAIL_BOOTSTRAP_SERVERS names"


def _external(settings: Settings) -> KafkaView | None:
    return view_kafka(settings.bootstrap_servers, EXTERNAL_TIMEOUT_S)


def _port(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and 0 < int(text) < 65536):
        raise argparse.ArgumentTypeError(f"{text!r} is no port from 1 to 65535")
    return int(text)
