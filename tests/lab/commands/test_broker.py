"""What `forktrail broker` says in a folder that has no broker, while one of another home may answer on its port."""

from __future__ import annotations

import argparse
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from forktrail_lab import cli
from forktrail_lab.broker import probe
from forktrail_lab.broker.probe import LOOPBACK, free_port
from support.command_line import CommandLine


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder: empty, with no setting but a port on which nothing listens."""
    monkeypatch.chdir(tmp_path)
    for name in ("FORKTRAIL_HOME", "FORKTRAIL_BOOTSTRAP_SERVERS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("FORKTRAIL_BROKER_PORT", str(free_port()))
    return tmp_path


@pytest.fixture
def broker(folder: Path, capsys: pytest.CaptureFixture[str]) -> CommandLine:
    return CommandLine(capsys)


@pytest.fixture
def other_kafka(folder: Path, kafka: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """Address of a Kafka of another home, which listens on the port set here."""
    host, _, port = kafka.rpartition(":")
    if host not in (LOOPBACK, "localhost"):
        pytest.skip("the session's Kafka is not on this machine")
    monkeypatch.setenv("FORKTRAIL_BROKER_PORT", port)
    return f"{LOOPBACK}:{port}"


@pytest.fixture
def listener(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """The port set here, on which something listens that says nothing."""
    monkeypatch.setattr(probe, "STRANGER_TIMEOUT_S", 0.2)
    with socket.socket() as server:
        server.bind((LOOPBACK, 0))
        server.listen()
        port = int(server.getsockname()[1])
        monkeypatch.setenv("FORKTRAIL_BROKER_PORT", str(port))
        yield port


def ways(address: str) -> str:
    return f"set FORKTRAIL_HOME to its folder, or FORKTRAIL_BOOTSTRAP_SERVERS={address} to use it"


@pytest.mark.parametrize(("action", "code"), [("status", 1), ("stop", 0)])
class TestNoBrokerHere:
    def test_the_home_that_was_looked_at_is_named(
        self, folder: Path, broker: CommandLine, action: str, code: int
    ) -> None:
        said = broker("broker", action)
        assert (said.code, said.out) == (code, f"no broker of {folder / '.forktrail'} is running\n")

    def test_no_file_is_made(self, folder: Path, broker: CommandLine, action: str, code: int) -> None:
        broker("broker", action)
        assert list(folder.iterdir()) == []

    def test_a_kafka_of_another_home_is_told_with_the_ways_to_use_it(
        self, other_kafka: str, folder: Path, broker: CommandLine, action: str, code: int
    ) -> None:
        said = broker("broker", action)
        assert said.code == code
        assert said.out.count("\n") == 1
        assert said.out.startswith(f"no broker of {folder / '.forktrail'} is running; another Kafka answers at ")
        assert f"{other_kafka} ({ways(other_kafka)})" in said.out
        assert list(folder.iterdir()) == []

    def test_a_kafka_of_another_home_is_in_the_json(
        self, other_kafka: str, folder: Path, broker: CommandLine, action: str, code: int
    ) -> None:
        said = broker("broker", action, "--format", "json")
        assert said.code == code
        assert said.json["home"] == str(folder / ".forktrail")
        assert said.json["other_kafka"] == other_kafka
        assert said.json.get("running", False) is said.json.get("stopped", False) is False

    @pytest.mark.usefixtures("listener")
    def test_what_listens_there_and_is_no_kafka_is_not_called_one(
        self, broker: CommandLine, action: str, code: int
    ) -> None:
        said = broker("broker", action)
        assert said.code == code
        assert "Kafka" not in said.out


class TestStart:
    @pytest.fixture(autouse=True)
    def without_java(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A start that went past the taken port ends there, and leaves no broker."""
        monkeypatch.setenv("PATH", "")

    def test_a_port_taken_by_a_kafka_of_another_home_is_told_with_the_ways_to_use_it(
        self, other_kafka: str, folder: Path, broker: CommandLine
    ) -> None:
        said = broker("broker", "start")
        assert (said.code, said.out, said.err.count("\n")) == (1, "", 1)
        assert said.err.startswith(f"forktrail broker: port_taken: no broker of {folder / '.forktrail'} is running")
        assert f"another Kafka, {other_kafka}" in said.err
        assert ways(other_kafka) in said.err
        assert "--port" in said.err

    def test_a_port_taken_by_something_else_is_not_called_a_kafka(
        self, listener: int, folder: Path, broker: CommandLine
    ) -> None:
        said = broker("broker", "start")
        assert said.code == 1
        assert (
            f"no broker of {folder / '.forktrail'} is running, and port {listener} of {LOOPBACK} is taken" in said.err
        )
        assert "another Kafka" not in said.err


class TestExternalKafka:
    def test_one_that_is_silent_is_named(self, broker: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("forktrail_lab.commands.broker.EXTERNAL_TIMEOUT_S", 0.1)
        address = f"{LOOPBACK}:{free_port()}"
        monkeypatch.setenv("FORKTRAIL_BOOTSTRAP_SERVERS", address)
        said = broker("broker", "status")
        assert (said.code, said.out) == (
            1,
            f"no Kafka answers at {address}, which FORKTRAIL_BOOTSTRAP_SERVERS names\n",
        )
        assert broker("broker", "status", "--format", "json").json["running"] is False

    def test_one_that_answers_is_described(
        self, kafka: str, broker: CommandLine, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("FORKTRAIL_BOOTSTRAP_SERVERS", kafka)
        assert broker.ok("broker", "start", "--format", "json").json["bootstrap_servers"] == kafka
        lines = broker.ok("broker", "status").out.splitlines()
        facts = dict(line.split(maxsplit=1) for line in lines)
        assert (facts["running"], facts["engine"], facts["bootstrap_servers"]) == ("true", "external", kafka)


@pytest.mark.parametrize(
    ("name", "action"), [("broker", "start"), ("broker", "stop"), ("broker", "status"), ("lab", "serve")]
)
def test_each_action_says_what_it_does_and_shows_an_example(name: str, action: str, broker: CommandLine) -> None:
    said = broker.ok(name, action, "--help")
    parser = cli.command_parser(name, cli.load_command(name))
    (actions,) = (found for found in parser._actions if isinstance(found, argparse._SubParsersAction))
    description = actions.choices[action].description
    assert description
    assert description.split()[0] in said.out
    assert f"forktrail {name} {action}" in said.out.partition("example:")[2]


@pytest.mark.parametrize("action", ["start", "stop", "status"])
def test_each_action_prints_a_table_or_json(action: str, broker: CommandLine) -> None:
    assert "--format {table,json}" in broker.ok("broker", action, "--help").out
    assert broker("broker", action, "--format", "text").code == 2
