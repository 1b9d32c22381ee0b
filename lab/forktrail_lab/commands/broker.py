"""`forktrail broker`: start, stop or look at the local Kafka broker."""

from __future__ import annotations

import argparse
import json
import sys
import time
from datetime import UTC, datetime

from forktrail_lab.broker.control import start, stop
from forktrail_lab.broker.layout import BrokerLayout
from forktrail_lab.broker.probe import KafkaView, view_kafka
from forktrail_lab.broker.status import Status, status
from forktrail_schemas.errors import BrokerError, ExitCode, LogUnavailable
from forktrail_schemas.settings import Settings

EXAMPLE = "  forktrail broker start\n  forktrail broker status --format json"
EXTERNAL_TIMEOUT_S = 10.0


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare start, stop and status."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="start|stop|status")
    starting = actions.add_parser("start", help="start it, unless it runs, and wait until it takes requests")
    starting.add_argument("--port", type=_port, help="port of 127.0.0.1 (default: FORKTRAIL_BROKER_PORT, else 9092)")
    actions.add_parser("stop", help="stop it; its events stay")
    looking = actions.add_parser("status", help="say whether it runs: exit code 0 if it does, 1 if not")
    looking.add_argument("--format", choices=("text", "json"), default="text")


def run(arguments: argparse.Namespace, settings: Settings) -> int:
    """Start, stop or describe the broker.

    Raises:
        BrokerError: the local broker can't be started or stopped, or it isn't ours to stop.
        LogUnavailable: the Kafka that FORKTRAIL_BOOTSTRAP_SERVERS names doesn't answer.
    """
    action: str = arguments.action
    try:
        if action == "start":
            return _start(settings, arguments.port)
        if action == "stop":
            return _stop(settings)
        return _status(settings, as_json=arguments.format == "json")
    except OSError as error:
        raise BrokerError(
            f"the broker's files can't be used: {error}",
            code="files_unusable",
            hint=f"is {settings.home} writable, and is there room?",
        ) from error


def _start(settings: Settings, port: int | None) -> int:
    if settings.external_kafka:
        if _external(settings) is None:
            raise LogUnavailable(
                f"no Kafka answers at {settings.bootstrap_servers}",
                hint="FORKTRAIL_BOOTSTRAP_SERVERS names it; unset that to use the local broker",
            )
        print(f"using the Kafka at {settings.bootstrap_servers}, which FORKTRAIL_BOOTSTRAP_SERVERS names")
        return ExitCode.OK
    began = time.monotonic()
    started = start(BrokerLayout.of(settings.home), port or settings.broker_port, _report)
    state = started.state
    where = f"Kafka {state.kafka_version} at {state.bootstrap_servers}" + (
        f", pid {state.pid}" if state.pid else ", in Docker"
    )
    if not started.was_running:
        print(f"broker started in {time.monotonic() - began:.1f} s: {where}")
        return ExitCode.OK
    print(f"broker is running already: {where}")
    if port and not state.bootstrap_servers.endswith(f":{port}"):
        _report("it keeps its port; to change that, run `forktrail broker stop` first")
    return ExitCode.OK


def _stop(settings: Settings) -> int:
    if settings.external_kafka:
        raise BrokerError(
            f"the Kafka at {settings.bootstrap_servers} is not ours to stop",
            code="external_kafka",
            hint="unset FORKTRAIL_BOOTSTRAP_SERVERS to stop the local broker",
        )
    began = time.monotonic()
    stopped = stop(BrokerLayout.of(settings.home), _report)
    if stopped.state is None:
        print("broker is not running")
        return ExitCode.OK
    how = {"by itself": "", "killed": ", with SIGKILL as SIGTERM was not enough", "docker": ", in Docker"}
    print(f"broker stopped in {time.monotonic() - began:.1f} s{how[stopped.manner]}")
    return ExitCode.OK


def _status(settings: Settings, *, as_json: bool) -> int:
    if settings.external_kafka:
        view = _external(settings)
        facts: dict[str, object] = {
            "running": view is not None,
            "engine": "external",
            "bootstrap_servers": settings.bootstrap_servers,
            "cluster_id": view.cluster_id if view else None,
            "topics": len(view.topics) if view else None,
        }
    else:
        facts = _facts(status(BrokerLayout.of(settings.home), datetime.now(UTC)))
    print(json.dumps(facts, indent=1) if as_json else _sentence(facts))
    return ExitCode.OK if facts["running"] else ExitCode.ERROR


def _facts(seen: Status) -> dict[str, object]:
    if seen.state is None:
        return {"running": False}
    if not seen.running:
        named = f"process {seen.state.pid}" if seen.state.pid else "a container"
        _report(f"the state file names {named}, which is no broker of ours any more")
        return {"running": False}
    return {
        "running": True,
        "answers": seen.answers,
        "engine": seen.state.engine,
        "pid": seen.state.pid or None,
        "bootstrap_servers": seen.state.bootstrap_servers,
        "cluster_id": seen.state.cluster_id or None,
        "kafka_version": seen.state.kafka_version,
        "started_at": seen.state.started_at,
        "uptime_s": None if seen.uptime_s is None else round(seen.uptime_s, 1),
        "rss_bytes": seen.rss_bytes,
        "topics": seen.topics,
    }


def _sentence(facts: dict[str, object]) -> str:
    if not facts["running"]:
        return "broker is not running"
    shown = {name: value for name, value in facts.items() if value is not None and name != "running"}
    return "broker is running\n" + "\n".join(f"  {name}: {value}" for name, value in shown.items())


def _external(settings: Settings) -> KafkaView | None:
    return view_kafka(settings.bootstrap_servers, EXTERNAL_TIMEOUT_S)


def _port(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and 0 < int(text) < 65536):
        raise argparse.ArgumentTypeError(f"{text!r} is no port from 1 to 65535")
    return int(text)


def _report(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
