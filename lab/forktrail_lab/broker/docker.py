"""Runs the broker with Docker Compose, where Java or Maven is missing."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from datetime import datetime
from pathlib import Path

from forktrail_lab.broker.probe import LOOPBACK
from forktrail_lab.broker.state import BrokerState
from forktrail_schemas.errors import BrokerError

PORT_VARIABLE = "FORKTRAIL_BROKER_PORT"
INFO_TIMEOUT_S = 15
_IMAGE_VERSION = re.compile(r"image:\s*apache/kafka:(\S+)")


def answers(search_path: str | None = None) -> bool:
    """True if a Docker engine answers."""
    docker = shutil.which("docker", path=search_path)
    if docker is None:
        return False
    try:
        return subprocess.run([docker, "info"], capture_output=True, timeout=INFO_TIMEOUT_S).returncode == 0
    except subprocess.TimeoutExpired:
        return False


def up(compose: Path, port: int, search_path: str | None, now: datetime) -> BrokerState:
    """Start the container, published on a port of loopback, and wait until it is healthy.

    Raises:
        BrokerError: Docker Compose failed (`docker_failed`).
    """
    _compose(compose, search_path, port, "up", "-d", "--wait")
    version = _IMAGE_VERSION.search(compose.read_text())
    return BrokerState(
        engine="docker",
        pid=0,
        birth_mark="",
        bootstrap_servers=f"{LOOPBACK}:{port}",
        cluster_id="",
        kafka_version=version[1] if version else "unknown",
        started_at=now.isoformat(timespec="milliseconds"),
    )


def down(compose: Path | None, search_path: str | None = None) -> None:
    """Stop and remove the container; its volume, with the events, stays.

    Raises:
        BrokerError: Docker Compose failed (`docker_failed`).
    """
    if compose is None:
        raise BrokerError("docker-compose.yml is missing", code="docker_failed", hint="install forktrail again")
    _compose(compose, search_path, None, "down")


def _compose(compose: Path, search_path: str | None, port: int | None, *words: str) -> None:
    docker = shutil.which("docker", path=search_path)
    if docker is None:
        raise BrokerError("Docker is not installed any more", code="docker_failed", hint="put `docker` on PATH")
    environment = dict(os.environ)  # Docker's own settings, such as DOCKER_HOST, pass through
    if port is not None:
        environment[PORT_VARIABLE] = str(port)
    answer = subprocess.run(
        [docker, "compose", "-f", str(compose), *words],
        capture_output=True,
        text=True,
        errors="replace",
        env=environment,
    )
    if answer.returncode != 0:
        said = [line for line in (answer.stdout + answer.stderr).splitlines() if line.strip()]
        reason = said[-1].strip() if said else f"exit code {answer.returncode}"
        raise BrokerError(f"docker compose {words[0]} failed: {reason}", code="docker_failed")
