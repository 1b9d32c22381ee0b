"""A full disk, with the real Kafka: told in one line, and nothing that was acknowledged is lost."""

from __future__ import annotations

import os
import re
import resource
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from forktrail_lab.broker import control, java_broker
from forktrail_lab.broker.layout import BrokerLayout
from forktrail_lab.broker.probe import free_port
from forktrail_lab.broker.process import birth_mark
from forktrail_lab.broker.state import read_state
from forktrail_producers.kafka import Topics
from forktrail_producers.producer import Producer, meta
from forktrail_projectors.reader import LogReader
from forktrail_schemas.errors import BrokerError, LogUnavailable
from forktrail_schemas.events import GoalSet
from forktrail_schemas.ids import new_run_id
from forktrail_schemas.topics import run_topic_spec
from forktrail_schemas.wire import build, decode
from support.command_line import CommandLine
from support.local_broker import (
    ignore,
    new_topic,
    one_line,
    wait_until_gone,
)

DISK_BYTES = 40 * 1024 * 1024
GIVES_UP_S = 5.0


class TestFullDisk:
    @pytest.fixture
    def home(self, tmp_path: Path, mount: Callable[..., None]) -> Path:
        """A home on a small disk of its own."""
        disk = tmp_path / "disk"
        disk.mkdir()
        mount("-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", str(disk))
        return disk / "home"

    @pytest.fixture
    def ballast(self, home: Path) -> Path:
        """A file to fill the disk with."""
        return home.parent / "ballast"

    def fill(self, ballast: Path, leave: int) -> None:
        free = shutil.disk_usage(ballast.parent).free
        with ballast.open("ab") as file:
            os.posix_fallocate(file.fileno(), ballast.stat().st_size, free - leave)

    def test_a_start_is_refused_before_anything_runs_and_works_with_room(
        self, command: CommandLine, layout: BrokerLayout, ballast: Path
    ) -> None:
        self.fill(ballast, leave=200_000)
        said = command("broker", "start")
        assert (said.code, said.out) == (1, "")
        assert one_line(said.err).startswith("forktrail broker: disk_full: the disk of ")
        assert "make room" in said.err
        assert not layout.state_file.exists()
        ballast.unlink()
        assert command.ok("broker", "start").out.startswith("broker started in ")

    @pytest.mark.parametrize("pages", [0, 2, 8])
    def test_a_format_without_room_leaves_nothing_and_is_done_again(
        self, layout: BrokerLayout, ballast: Path, pages: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        layout.lock_file.write_text("1")
        layout.logs.mkdir()
        self.fill(ballast, leave=pages * resource.getpagesize())
        with monkeypatch.context() as patched:
            patched.setattr(java_broker, "check_room", ignore)
            with pytest.raises((BrokerError, OSError)) as raised:
                control.start(layout, free_port(), ignore)
        said = f"{raised.value}"
        assert "No space left on device" in said or re.search(r"has 0\.0 MB free \(make room", said)
        assert read_state(layout.state_file) is None
        ballast.unlink()
        address = control.start(layout, free_port(), ignore).state.bootstrap_servers
        assert new_topic(address)

    def test_a_broker_that_runs_full_ends_and_all_that_was_acknowledged_is_there_once_there_is_room(
        self, command: CommandLine, layout: BrokerLayout, ballast: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("forktrail_producers.producer.DELIVERY_TIMEOUT_SECONDS", GIVES_UP_S)
        port = free_port()
        state = control.start(layout, port, ignore).state
        run = new_run_id()
        Topics(state.bootstrap_servers).make(run_topic_spec(run))
        self.fill(ballast, leave=2_000_000)
        acknowledged, error = emit_until_it_fails(state.bootstrap_servers, run)
        assert 10 < len(acknowledged) < 40, "of 50,000 bytes each, on a disk with 2,000,000 left"
        assert isinstance(error, LogUnavailable)
        assert one_line(f"{error}\n")
        assert "emit the same event again" in error.hint
        wait_until_gone(state.pid)

        said = command("broker", "status")
        assert (said.code, one_line(said.out).startswith("no broker of ")) == (1, True)
        assert f"process {state.pid}, which is no broker of ours any more: " in one_line(said.err)
        assert "No space left on device" in said.err or "MB free" in said.err
        assert "disk_full" in command("broker", "start").err
        ballast.unlink()

        with LogReader(control.start(layout, port, ignore).state.bootstrap_servers, run) as reader:
            assert event_ids(reader)[: len(acknowledged)] == acknowledged

    def test_a_broker_that_can_not_be_noted_is_ended(
        self, layout: BrokerLayout, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Else it would run, and no command could find it."""
        pids = []

        def full(path: Path, state: object) -> None:
            pids.append(state.pid)  # type: ignore[attr-defined]  # a BrokerState
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(java_broker, "write_state", full)
        with pytest.raises(OSError, match="No space left"):
            control.start(layout, free_port(), ignore)
        assert [birth_mark(pid) for pid in pids] == [None]


def test_a_log_that_may_grow_no_further_ends_the_broker_as_a_full_disk_does(
    layout: BrokerLayout, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A limit on the size of files needs no mount: this runs where the tests above are skipped."""
    if not hasattr(resource, "prlimit"):
        pytest.skip("limits of another process can't be set here")
    monkeypatch.setattr("forktrail_producers.producer.DELIVERY_TIMEOUT_SECONDS", GIVES_UP_S)
    port = free_port()
    state = control.start(layout, port, ignore).state
    run = new_run_id()
    Topics(state.bootstrap_servers).make(run_topic_spec(run))
    resource.prlimit(state.pid, resource.RLIMIT_FSIZE, (1_000_000, 1_000_000))
    acknowledged, error = emit_until_it_fails(state.bootstrap_servers, run)
    assert isinstance(error, LogUnavailable)
    wait_until_gone(state.pid)
    lines: list[str] = []
    with LogReader(control.start(layout, port, lines.append).state.bootstrap_servers, run) as reader:
        assert event_ids(reader)[: len(acknowledged)] == acknowledged
    assert len(acknowledged) > 10
    assert [line for line in lines if f"process {state.pid}" in line and "File too large; make room" in line]


def emit_until_it_fails(bootstrap_servers: str, run: str) -> tuple[list[str], Exception]:
    """Emit large events one by one; returns the ids of those that were acknowledged, and the first error."""
    acknowledged: list[str] = []
    with Producer(bootstrap_servers) as producer:
        while True:
            event = build(GoalSet, {"meta": meta(run, "service", "scanner-7"), "text": "x" * 50_000})
            try:
                producer.emit(event)
            except LogUnavailable as error:
                return acknowledged, error
            acknowledged.append(event.meta.event_id)


def event_ids(reader: LogReader) -> list[str]:
    """The ids of all goals on a log, in order."""
    events = (decode(record.value or b"") for batch in reader.read(0, reader.end()) for record in batch)
    return [event.meta.event_id for event in events if isinstance(event, GoalSet)]
