"""The local broker as its users meet it: it keeps events, heals itself, and says what is wrong in one line."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import ConfigResource
from confluent_kafka.admin._resource import ResourceType

from forktrail_lab import cli
from forktrail_lab.broker import control
from forktrail_lab.broker.java_broker import wait_ready
from forktrail_lab.broker.layout import BrokerLayout
from forktrail_lab.broker.probe import free_port
from forktrail_lab.broker.process import birth_mark
from forktrail_lab.broker.state import BrokerState, read_state, write_state
from forktrail_lab.broker.status import Status, status
from forktrail_lab.commands import broker as command
from forktrail_schemas.errors import BrokerError, LogUnavailable
from forktrail_schemas.settings import Settings
from support.local_broker import TIMEOUT_S, bare_environment, consume_all, forktrail, ignore, new_topic, produce


@pytest.fixture
def layout(home: Path, kafka_libs: Path) -> Iterator[BrokerLayout]:
    """A broker of the test's own, stopped when the test ends."""
    layout = BrokerLayout.of(home, kafka_libs)
    yield layout
    control.stop(layout, ignore, grace_s=5.0)


@pytest.fixture
def environment(home: Path, kafka_libs: Path) -> Iterator[dict[str, str]]:
    """The environment of `forktrail` commands with a broker of the test's own."""
    layout = BrokerLayout.of(home)
    layout.folder.mkdir(parents=True)
    layout.libs.symlink_to(kafka_libs)
    yield {**os.environ, **bare_environment(home)}
    control.stop(BrokerLayout.of(home), ignore, grace_s=5.0)


def test_a_record_goes_through_and_comes_back(kafka: str) -> None:
    topic = new_topic(kafka)
    produce(kafka, topic, [b"one", b"two"])
    assert consume_all(kafka, topic) == [b"one", b"two"]


def test_a_record_of_four_mebibytes_goes_through(kafka: str) -> None:
    topic = new_topic(kafka)
    producer = Producer({"bootstrap.servers": kafka, "message.max.bytes": 4194304})
    producer.produce(topic, bytes(4194304 - 4096))
    assert producer.flush(TIMEOUT_S) == 0
    assert AdminClient({"bootstrap.servers": kafka}).list_topics(topic, timeout=TIMEOUT_S).topics[topic].error is None
    consumer = Consumer({"bootstrap.servers": kafka, "group.id": "test"})
    assert consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=TIMEOUT_S) == (0, 1)
    consumer.close()


def test_topics_keep_their_events_for_ever_and_are_not_made_by_accident(layout: BrokerLayout) -> None:
    address = control.start(layout, free_port(), ignore).state.bootstrap_servers
    admin = AdminClient({"bootstrap.servers": address})
    topic = new_topic(address)
    resource = ConfigResource(ResourceType.TOPIC, topic)
    entries = admin.describe_configs([resource])[resource].result(TIMEOUT_S)
    kept = {name: entries[name].value for name in ("retention.ms", "retention.bytes", "cleanup.policy")}
    assert kept == {"retention.ms": "-1", "retention.bytes": "-1", "cleanup.policy": "delete"}
    assert entries["message.timestamp.type"].value == "CreateTime"
    admin.list_topics("never-made", timeout=TIMEOUT_S)
    assert list(admin.list_topics(timeout=TIMEOUT_S).topics) == [topic]


def test_a_restart_keeps_every_event(layout: BrokerLayout) -> None:
    first = control.start(layout, free_port(), ignore).state
    topic = new_topic(first.bootstrap_servers)
    values = [b"%d" % number for number in range(3000)]
    produce(first.bootstrap_servers, topic, values)
    assert control.stop(layout, ignore).manner == "by itself"
    second = control.start(layout, free_port(), ignore).state
    assert second.cluster_id == first.cluster_id
    assert consume_all(second.bootstrap_servers, topic) == values


def test_kill_9_keeps_every_acknowledged_event(layout: BrokerLayout) -> None:
    port = free_port()
    first = control.start(layout, port, ignore).state
    topic = new_topic(first.bootstrap_servers)
    producer = Producer({"bootstrap.servers": first.bootstrap_servers, "enable.idempotence": True, "log_level": 0})
    acknowledged: list[bytes] = []

    def on_delivery(error: object, message: object) -> None:
        if error is None:
            acknowledged.append(message.value())  # type: ignore[attr-defined]  # its stub says object

    sent = 0
    deadline = time.monotonic() + TIMEOUT_S
    while len(acknowledged) < 500 or len(producer) < 1000:  # some acknowledged, and more under way
        assert time.monotonic() < deadline
        if len(producer) < 1000:
            producer.produce(topic, b"%d" % sent, on_delivery=on_delivery)
            sent += 1
        else:
            producer.poll(0.01)
    os.kill(first.pid, signal.SIGKILL)
    producer.purge()
    producer.flush(TIMEOUT_S)

    lines: list[str] = []
    second = control.start(layout, port, lines.append)
    assert not second.was_running
    assert any(f"process {first.pid}" in line for line in lines)
    kept = consume_all(second.state.bootstrap_servers, topic)
    assert kept[: len(acknowledged)] == acknowledged
    assert kept == [b"%d" % number for number in range(len(kept))]


def test_of_two_starts_at_once_one_starts_it_and_the_other_finds_it_running(environment: dict[str, str]) -> None:
    starts = [forktrail(environment, "broker", "start") for _ in range(2)]
    answers = sorted(start.communicate(timeout=90)[0] for start in starts)
    assert [start.returncode for start in starts] == [0, 0]
    assert answers[0].startswith("broker is running already:")
    assert answers[1].startswith("broker started in ")
    pids = {answer.strip().rpartition("pid ")[2] for answer in answers}
    assert len(pids) == 1


def test_status_shows_the_broker_and_its_exit_code_says_whether_it_runs(environment: dict[str, str]) -> None:
    assert forktrail(environment, "broker", "status").wait(30) == 1
    assert forktrail(environment, "broker", "start").wait(90) == 0
    looked = forktrail(environment, "broker", "status", "--format", "json")
    facts = json.loads(looked.communicate(timeout=30)[0])
    assert looked.returncode == 0
    assert facts["running"] is facts["answers"] is True
    assert facts["bootstrap_servers"] == f"127.0.0.1:{environment['FORKTRAIL_BROKER_PORT']}"
    assert facts["kafka_version"] == "4.4.0"
    assert facts["topics"] == 0
    assert facts["rss_bytes"] > 50_000_000
    assert facts["home"] == environment["FORKTRAIL_HOME"]
    again = json.loads(forktrail(environment, "broker", "start", "--format", "json").communicate(timeout=30)[0])
    assert (again["was_running"], again["pid"]) == (True, facts["pid"])
    table = forktrail(environment, "broker", "status").communicate(timeout=30)[0]
    assert [line.split()[0] for line in table.splitlines()] == list(facts)
    assert forktrail(environment, "broker", "stop").wait(60) == 0
    assert forktrail(environment, "broker", "status").wait(30) == 1


def test_a_start_that_was_killed_is_taken_over_by_the_next(home: Path, environment: dict[str, str]) -> None:
    layout = BrokerLayout.of(home)
    first = forktrail(environment, "broker", "start")
    deadline = time.monotonic() + TIMEOUT_S
    while not layout.state_file.exists():
        assert time.monotonic() < deadline
        assert first.poll() is None
    first.kill()
    first.communicate()
    again = control.start(layout, free_port(), ignore)
    assert again.was_running
    assert new_topic(again.state.bootstrap_servers)


def test_a_home_with_blanks_and_accents_works(tmp_path: Path, kafka_libs: Path) -> None:
    layout = BrokerLayout.of(tmp_path / "mon été \U0001f680", kafka_libs)
    try:
        address = control.start(layout, free_port(), ignore).state.bootstrap_servers
        topic = new_topic(address)
        produce(address, topic, [b"x"])
        assert (layout.data / f"{topic}-0").is_dir()
    finally:
        control.stop(layout, ignore)


def test_a_lost_metadata_log_is_refused_and_the_topics_stay(layout: BrokerLayout) -> None:
    address = control.start(layout, free_port(), ignore).state.bootstrap_servers
    topic = new_topic(address)
    produce(address, topic, [b"x"])
    control.stop(layout, ignore)
    (layout.data / "__cluster_metadata-0").rename(layout.home / "aside")
    with pytest.raises(BrokerError) as raised:
        control.start(layout, free_port(), ignore)
    assert raised.value.code == "data_damaged"
    (layout.home / "aside").rename(layout.data / "__cluster_metadata-0")
    assert consume_all(control.start(layout, free_port(), ignore).state.bootstrap_servers, topic) == [b"x"]


def test_a_kafka_that_can_not_start_says_why_and_what_to_do_and_leaves_nothing_running(layout: BrokerLayout) -> None:
    address = control.start(layout, free_port(), ignore).state.bootstrap_servers
    topic = new_topic(address)
    produce(address, topic, [b"x"])
    control.stop(layout, ignore)
    checkpoint = layout.data / "recovery-point-offset-checkpoint"
    checkpoint.write_text("no checkpoint")
    with pytest.raises(BrokerError, match=rf"Malformed line in checkpoint file \[{checkpoint}\]") as raised:
        control.start(layout, free_port(), ignore)
    assert raised.value.code == "start_failed"
    assert raised.value.hint.startswith("move that file away, and start it again: Kafka makes it anew")
    assert str(layout.log_file) in raised.value.hint
    assert not layout.state_file.exists()
    checkpoint.rename(layout.home / "away")
    assert consume_all(control.start(layout, free_port(), ignore).state.bootstrap_servers, topic) == [b"x"]


def test_an_external_kafka_is_used_and_never_stopped(
    home: Path, kafka: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORKTRAIL_HOME", str(home))
    monkeypatch.setenv("FORKTRAIL_BOOTSTRAP_SERVERS", kafka)
    assert cli.main(["broker", "start"]) == 0
    assert kafka in capsys.readouterr().out
    assert cli.main(["broker", "status"]) == 0
    assert cli.main(["broker", "stop"]) == 1
    assert "external_kafka" in capsys.readouterr().err
    assert not home.exists()


def test_an_external_kafka_that_is_silent_is_an_error(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "EXTERNAL_TIMEOUT_S", 0.1)
    silent = Settings(home, f"127.0.0.1:{free_port()}", external_kafka=True, graph_engine="ladybug")
    parser = cli.command_parser("broker", cli.load_command("broker"))
    with pytest.raises(LogUnavailable):
        command.run(parser.parse_args(["start"]), silent)
    assert command.run(parser.parse_args(["status"]), silent) == 1


def test_a_taken_port_is_named_with_the_ways_out(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in bare_environment(home).items():
        monkeypatch.setenv(name, value)
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        assert cli.main(["broker", "start", "--port", str(port)]) == 1
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert f"port {port} " in error
    assert "--port" in error
    assert "FORKTRAIL_BOOTSTRAP_SERVERS" in error


def test_without_java_the_error_is_one_line_and_names_java(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {**bare_environment(home), "PATH": ""}.items():
        monkeypatch.setenv(name, value)
    assert cli.main(["broker", "start"]) == 1
    error = capsys.readouterr().err
    assert error.startswith("forktrail broker: java_missing: Java is not installed")
    assert error.count("\n") == 1


@pytest.mark.parametrize("whose", ["nobody", "another"])
def test_a_stale_state_file_is_reported_and_healed_and_no_process_is_touched(home: Path, whose: str) -> None:
    layout = BrokerLayout.of(home)
    layout.folder.mkdir(parents=True)
    with subprocess.Popen(["/bin/sleep", "60"]) as bystander:
        if whose == "nobody":
            bystander.kill()
            bystander.wait()
        write_state(layout.state_file, broker_state(bystander.pid, "the mark of a process of yesterday"))
        lines: list[str] = []
        assert not status(layout, datetime.now(UTC)).running
        assert control.stop(layout, lines.append).manner == "not running"
        assert any(str(bystander.pid) in line for line in lines)
        assert not layout.state_file.exists()
        assert (bystander.poll() is None) == (whose == "another")
        bystander.kill()


def test_a_broker_that_takes_too_long_is_left_to_go_on(home: Path) -> None:
    own = os.getpid()
    layout = BrokerLayout.of(home)
    layout.folder.mkdir(parents=True)
    state = broker_state(own, birth_mark(own) or "")
    write_state(layout.state_file, state)
    with pytest.raises(BrokerError, match="takes no requests") as raised:
        wait_ready(state, layout, wait_s=0.1)
    assert raised.value.code == "start_timeout"
    assert read_state(layout.state_file) == state


def test_a_state_file_of_no_sense_is_an_error_with_a_remedy(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in bare_environment(home).items():
        monkeypatch.setenv(name, value)
    layout = BrokerLayout.of(home)
    layout.folder.mkdir(parents=True)
    layout.state_file.write_text("{")
    assert cli.main(["broker", "status"]) == 2
    assert "delete it" in capsys.readouterr().err


@pytest.mark.parametrize("port", ["0", "65536", "-1", "9o92", "٩"])
def test_a_port_that_is_none_is_a_usage_error(home: Path, port: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {**bare_environment(home), "FORKTRAIL_BROKER_PORT": port}.items():
        monkeypatch.setenv(name, value)
    assert cli.main(["broker", "status"]) == 2
    monkeypatch.setenv("FORKTRAIL_BROKER_PORT", "")
    with pytest.raises(SystemExit) as raised:
        cli.main(["broker", "start", f"--port={port}"])
    assert raised.value.code == 2


def test_files_that_can_not_be_written_are_one_line(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in bare_environment(home).items():
        monkeypatch.setenv(name, value)
    layout = BrokerLayout.of(home)
    layout.folder.mkdir(parents=True)
    layout.logs.touch()
    assert cli.main(["broker", "start"]) == 1
    error = capsys.readouterr().err
    assert error.startswith("forktrail broker: files_unusable: ")
    assert error.count("\n") == 1


def test_stop_and_status_without_a_broker_make_no_files(home: Path) -> None:
    layout = BrokerLayout.of(home)
    assert control.stop(layout, ignore).manner == "not running"
    assert status(layout, datetime.now(UTC)) == Status(False, False, None)
    assert not home.exists()


def broker_state(pid: int, mark: str) -> BrokerState:
    return BrokerState("java", pid, mark, f"127.0.0.1:{free_port()}", "", "4.4.0", "2026-01-01T00:00:00+00:00")
