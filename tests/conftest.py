"""Fixtures of all tests: one real Kafka for the session, and a home of its own for each test."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from forktrail_lab.broker import control, docker, java_broker
from forktrail_lab.broker.config import config_folder
from forktrail_lab.broker.jars import ensure_jars
from forktrail_lab.broker.java import find_java
from forktrail_lab.broker.layout import BrokerLayout
from forktrail_lab.broker.probe import free_port
from forktrail_schemas.errors import BrokerError
from forktrail_schemas.settings import Settings

BROKER_FIXTURES = {"kafka", "kafka_libs"}
SHARED_HOME = Path(__file__).parents[1] / ".forktrail"
CONTAINER_IMAGE = "confluentinc/cp-kafka:8.0.0"
KAFKA_USED = pytest.StashKey[str]()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test that needs a broker, through whichever fixture it asks for one."""
    for item in items:
        if BROKER_FIXTURES & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.broker)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say which Kafka the tests ran on."""
    if KAFKA_USED in config.stash:
        terminalreporter.write_line(f"Kafka used: {config.stash[KAFKA_USED]}")


@pytest.fixture(scope="session")
def kafka_libs() -> Path:
    """The checkout's folder of Kafka's jars, which every broker of the tests shares, resolved if need be."""
    layout = BrokerLayout.of(SHARED_HOME)
    try:
        find_java()
        layout.logs.mkdir(parents=True, exist_ok=True)
        ensure_jars(layout.libs, config_folder() / "pom.xml", layout.logs / "maven.log", _report)
    except BrokerError as error:
        if error.code in control.REPLACED_BY_DOCKER:
            pytest.skip(f"a broker of the test's own can't be started: {error.message}")
        raise
    return layout.libs


@pytest.fixture(scope="session")
def kafka(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Bootstrap servers of a real Kafka: each test makes topics of its own in it.

    It is the one that FORKTRAIL_BOOTSTRAP_SERVERS names, else a local broker in a temporary home, else a
    container. The latter two end with the session, after SIGTERM too.
    """
    # A `timeout` around pytest sends SIGTERM, which would end Python without stopping the broker.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with ExitStack() as stack:
        external = os.environ.get("FORKTRAIL_BOOTSTRAP_SERVERS", "").strip()
        if external:
            address, kind = external, "FORKTRAIL_BOOTSTRAP_SERVERS"
        else:
            address, kind = _own_kafka(stack, tmp_path_factory.mktemp("kafka"))
        pytestconfig.stash[KAFKA_USED] = f"{kind} at {address}"
        yield address


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A folder of local state for one test."""
    return tmp_path / "home"


@pytest.fixture(scope="module")
def shared_settings(tmp_path_factory: pytest.TempPathFactory, kafka: str) -> Settings:
    """Settings that the tests of one module share: one home, the session's Kafka."""
    home = tmp_path_factory.mktemp("shared") / "home"
    return Settings(home=home, bootstrap_servers=kafka, external_kafka=False, graph_engine="ladybug")


@pytest.fixture
def settings(home: Path, kafka: str) -> Settings:
    """Settings of one test: its own home, the session's Kafka."""
    return Settings(home=home, bootstrap_servers=kafka, external_kafka=False, graph_engine="ladybug")


def _own_kafka(stack: ExitStack, folder: Path) -> tuple[str, str]:
    layout = BrokerLayout.of(folder, libs=BrokerLayout.of(SHARED_HOME).libs)
    stack.callback(shutil.rmtree, folder, ignore_errors=True)
    stack.callback(control.stop, layout, _report)
    try:
        return java_broker.launch(layout, free_port(), _report).bootstrap_servers, "local broker"
    except BrokerError as error:
        if error.code not in control.REPLACED_BY_DOCKER:
            raise
        if not docker.answers():
            pytest.fail(f"no Kafka to test on: {error}; nor does a Docker engine answer", pytrace=False)
    return _container(stack), f"container {CONTAINER_IMAGE}"


def _container(stack: ExitStack) -> str:
    from testcontainers.community.kafka import KafkaContainer  # imports Docker's client, which few sessions need

    container = KafkaContainer(CONTAINER_IMAGE).with_kraft()
    container.with_env("KAFKA_AUTO_CREATE_TOPICS_ENABLE", "false").with_env("KAFKA_MESSAGE_MAX_BYTES", "4194304")
    return str(stack.enter_context(container).get_bootstrap_server())


def _report(line: str) -> None:
    print(line, file=sys.stderr)
