"""Docker stands in where Java or Maven is missing, and its volume is never removed."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from forktrail_lab.broker import control, docker
from forktrail_lab.broker.config import compose_file
from forktrail_lab.broker.layout import BrokerLayout
from forktrail_lab.broker.probe import free_port
from forktrail_lab.broker.state import BrokerState
from forktrail_lab.broker.status import status
from forktrail_schemas.errors import BrokerError

ENGINE = """echo "$FORKTRAIL_BROKER_PORT $*" >>"${0%/*}/calls" """
NO_ENGINE = "echo 'Cannot connect to the Docker daemon' >&2; exit 1"
FAILING_UP = 'case "$1" in info) exit 0;; esac; echo "pulling"; echo "port is already allocated" >&2; exit 1'


def calls(folder: str) -> list[str]:
    return (Path(folder) / "calls").read_text().splitlines()


@pytest.fixture
def container_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """The container of the fake Docker takes requests at once."""

    def answer(state: BrokerState, layout: BrokerLayout) -> None:
        assert state.engine == "docker"

    monkeypatch.setattr(control, "wait_ready", answer)


@pytest.mark.usefixtures("container_answers")
def test_docker_is_started_and_stopped_and_keeps_its_volume(home: Path, fake_tool: Callable[[str, str], str]) -> None:
    folder = fake_tool("docker", ENGINE)
    layout = BrokerLayout.of(home)
    port = free_port()
    lines: list[str] = []
    started = control.start(layout, port, lines.append, folder)
    assert started.state.bootstrap_servers == f"127.0.0.1:{port}"
    assert started.state.kafka_version == "4.4.0"
    assert any("Docker" in line for line in lines)
    compose = compose_file()
    assert calls(folder)[1:] == [f"{port} compose -f {compose} up -d --wait"]
    assert control.stop(layout, lines.append, folder).manner == "docker"
    assert calls(folder)[2].endswith(f"compose -f {compose} down")
    assert control.stop(layout, lines.append, folder).manner == "not running"


def test_without_an_engine_the_missing_java_is_the_error(home: Path, fake_tool: Callable[[str, str], str]) -> None:
    with pytest.raises(BrokerError) as raised:
        control.start(BrokerLayout.of(home), free_port(), print, fake_tool("docker", NO_ENGINE))
    assert raised.value.code == "java_missing"
    assert not status(BrokerLayout.of(home), datetime.now(UTC)).running


@pytest.mark.usefixtures("container_answers")
def test_with_java_but_without_maven_docker_stands_in_too(home: Path, fake_tool: Callable[[str, str], str]) -> None:
    fake_tool("java", """echo 'openjdk version "21.0.4"' >&2""")
    folder = fake_tool("docker", ENGINE)
    assert control.start(BrokerLayout.of(home), free_port(), print, folder).state.engine == "docker"


def test_a_compose_that_fails_is_quoted(home: Path, fake_tool: Callable[[str, str], str]) -> None:
    with pytest.raises(BrokerError, match="port is already allocated") as raised:
        control.start(BrokerLayout.of(home), free_port(), print, fake_tool("docker", FAILING_UP))
    assert raised.value.code == "docker_failed"


def test_an_engine_that_is_silent_counts_as_none(
    fake_tool: Callable[[str, str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(docker, "INFO_TIMEOUT_S", 0.1)
    assert not docker.answers(fake_tool("docker", "exec /bin/sleep 60"))
