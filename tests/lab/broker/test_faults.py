"""Faults with the real Kafka: each is one line that says what to do; nothing hangs, nothing acknowledged is lost."""

from __future__ import annotations

import http.server
import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from forktrail_lab.broker import control, java_broker
from forktrail_lab.broker.layout import BrokerLayout
from forktrail_lab.broker.probe import LOOPBACK, accepts_connections, free_port
from forktrail_lab.broker.state import read_state
from forktrail_schemas.errors import BrokerError
from support.command_line import CommandLine
from support.local_broker import (
    TIMEOUT_S,
    consume_all,
    forktrail,
    ignore,
    new_topic,
    one_line,
    produce,
    values_after_a_start,
    wait_until_gone,
)

HANGS_S = 30.0


class TestStrangersOnThePort:
    @pytest.fixture(autouse=True)
    def soon(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("forktrail_producers.kafka.REQUEST_TIMEOUT_SECONDS", 2.0)

    @pytest.fixture(params=["silent", "hangs up", "http"])
    def stranger(self, request: pytest.FixtureRequest, environment: dict[str, str]) -> Iterator[int]:
        port = int(environment["FORKTRAIL_BROKER_PORT"])
        with listening(request.param, port):
            yield port

    def test_a_start_names_the_port_and_the_ways_out(self, stranger: int, command: CommandLine) -> None:
        said = command("broker", "start")
        assert (said.code, said.out) == (1, "")
        assert one_line(said.err).startswith("forktrail broker: port_taken: no broker of ")
        assert f"port {stranger} of {LOOPBACK} is taken by another process" in said.err
        assert "choose another port with --port" in said.err
        assert command.ok("broker", "start", "--port", str(free_port())).out.startswith("broker started in ")

    def test_status_and_stop_say_why_a_start_needs_another_port(self, stranger: int, command: CommandLine) -> None:
        for action, code in (("status", 1), ("stop", 0)):
            said = command("broker", action)
            assert said.code == code
            assert f"another process has port {stranger}" in one_line(said.out)
            assert "--port" in said.out

    def test_a_command_gives_up_in_one_line(self, stranger: int, command: CommandLine) -> None:
        for words in (("run", "list"), ("run", "show", "run-1"), ("report", "run-1", "a", "--summary", "x")):
            began = time.monotonic()
            said = command(*words)
            assert time.monotonic() - began < HANGS_S
            assert (said.code, said.out) == (1, "")
            assert one_line(said.err).startswith(
                f"forktrail {words[0]}: log_unavailable: Kafka at {LOOPBACK}:{stranger}"
            )
            assert "FORKTRAIL_BOOTSTRAP_SERVERS" in said.err

    def test_a_kafka_that_was_quicker_is_not_taken_for_ours(
        self, kafka: str, layout: BrokerLayout, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """It took the port after we had looked."""
        host, _, port = kafka.rpartition(":")
        if host != LOOPBACK:
            pytest.skip("the session's Kafka is not on this machine's loopback")
        monkeypatch.setattr(control, "port_is_free", lambda port: True)
        with pytest.raises(BrokerError, match=f"{kafka}: Address already in use") as raised:
            control.start(layout, int(port), ignore)
        assert raised.value.code == "start_failed"
        assert "--port" in raised.value.hint
        assert not layout.state_file.exists()
        assert AdminClient({"bootstrap.servers": kafka}).list_topics(timeout=TIMEOUT_S).brokers


@contextmanager
def listening(how: str, port: int) -> Iterator[None]:
    """Something on a port that is no Kafka: it says nothing, hangs up on everyone, or speaks HTTP."""
    if how == "http":

        class Quiet(http.server.BaseHTTPRequestHandler):
            def log_message(self, format: str, *words: object) -> None:
                """Say nothing."""

        server = http.server.ThreadingHTTPServer((LOOPBACK, port), Quiet)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield
        server.shutdown()
        server.server_close()
        return
    with socket.create_server((LOOPBACK, port), backlog=200) as listener:
        if how == "hangs up":
            threading.Thread(target=hang_up, args=(listener,), daemon=True).start()
        yield
        listener.shutdown(socket.SHUT_RDWR)


def hang_up(listener: socket.socket) -> None:
    with suppress(OSError):  # the test is over
        while True:
            listener.accept()[0].close()


class TestTheControllersPort:
    def test_one_that_is_taken_meanwhile_is_replaced(
        self, layout: BrokerLayout, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        port = free_port()
        lines: list[str] = []
        with socket.create_server((LOOPBACK, 0)) as other:
            taken = int(other.getsockname()[1])
            # The broker's own port is no choice either; the formatter takes two for itself first.
            choices = iter([free_port(), free_port(), taken, port])
            monkeypatch.setattr(java_broker, "free_port", lambda: next(choices, None) or free_port())
            state = control.start(layout, port, lines.append).state
        assert state.bootstrap_servers == f"{LOOPBACK}:{port}"
        assert [line for line in lines if f"port {taken}, meant for Kafka's controller, was taken" in line]

    def test_where_each_is_taken_it_is_said_and_nothing_runs(
        self, layout: BrokerLayout, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with socket.create_server((LOOPBACK, 0)) as other:
            taken = int(other.getsockname()[1])
            choices = iter([free_port(), free_port(), taken, taken, taken])
            monkeypatch.setattr(java_broker, "free_port", lambda: next(choices))
            with pytest.raises(BrokerError, match=f"{taken}: Address already in use") as raised:
                control.start(layout, free_port(), ignore)
        assert raised.value.code == "start_failed"
        assert read_state(layout.state_file) is None


class TestFormatKilled:
    @pytest.mark.parametrize("whom", ["the command", "the formatter"])
    def test_the_next_start_formats_and_works(
        self, layout: BrokerLayout, environment: dict[str, str], whom: str
    ) -> None:
        command = forktrail(environment, "broker", "start")
        formatter = await_formatter(layout, command.pid)
        os.kill(command.pid if whom == "the command" else formatter, signal.SIGKILL)
        _, error = command.communicate(timeout=HANGS_S)
        if whom == "the formatter":
            assert command.returncode == 1
            assert one_line(error).startswith("forktrail broker: format_failed: Kafka can't format ")
        assert not layout.data.exists()
        address = control.start(layout, free_port(), ignore).state.bootstrap_servers
        topic = new_topic(address)
        produce(address, topic, [b"x"])
        assert consume_all(address, topic) == [b"x"]
        wait_until_gone(formatter)
        assert (layout.data / f"{topic}-0").is_dir()


def await_formatter(layout: BrokerLayout, parent: int) -> int:
    """The pid of Kafka's formatter, once it is at work for a command."""
    if not Path("/proc/self/task").is_dir():
        pytest.skip("children of a process can't be told here")
    deadline = time.monotonic() + HANGS_S
    while True:
        assert time.monotonic() < deadline
        for pid in Path(f"/proc/{parent}/task/{parent}/children").read_text().split():
            with suppress(OSError):
                if b"kafka.tools.StorageTool" in Path(f"/proc/{pid}/cmdline").read_bytes():
                    return int(pid)
        time.sleep(0.005)


@pytest.mark.parametrize(
    ("options", "code"),
    [("-Xmx99999999g", "java_failed"), ("-Xmx99999999999999g", "java_failed"), ("-Xmx64m", "format_failed")],
)
def test_a_java_without_memory_is_told_with_what_to_do_and_nothing_runs(
    command: CommandLine,
    layout: BrokerLayout,
    environment: dict[str, str],
    options: str,
    code: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With 64 MB Java itself runs, but not with the 128 MB that the broker starts with."""
    monkeypatch.setenv("_JAVA_OPTIONS", options)
    said = command("broker", "start")
    assert (said.code, said.out) == (1, "")
    assert one_line(said.err).startswith(f"forktrail broker: {code}: ")
    assert "heap" in said.err
    assert "let Java have 1 GB" in said.err
    assert not layout.state_file.exists()
    assert not accepts_connections(int(environment["FORKTRAIL_BROKER_PORT"]))


def test_a_format_done_before_a_start_without_memory_is_kept(
    layout: BrokerLayout, used: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setenv("_JAVA_OPTIONS", "-Xmx64m")
        with pytest.raises(BrokerError, match="heap size") as raised:
            control.start(layout, free_port(), ignore)
    assert raised.value.code == "start_failed"
    assert "let Java have 1 GB" in raised.value.hint
    assert values_after_a_start(layout, used) == [b"x"]
