"""`forktrail project --follow` as a process of its own, and commands beside it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Thread

import pytest

from forktrail_lab.broker import control
from forktrail_lab.broker.layout import BrokerLayout
from forktrail_lab.broker.probe import free_port
from forktrail_producers.producer import Producer, meta
from forktrail_schemas.events import GoalSet
from forktrail_schemas.settings import Settings
from forktrail_schemas.topics import run_topic
from forktrail_schemas.wire import build
from support.command_line import CommandLine
from support.local_broker import ignore
from support.raw import told, write
from support.slow import DEAF, LISTENS
from support.staff import report
from support.workbench import wait_until

STOP_SECONDS = 2.0
# Within so long a process ends that the engine keeps busy, its start included.
STUCK_SECONDS = 5.0
COUNT = "MATCH (e:Event) RETURN count(*) AS n"


class Following:
    """A process that follows a run; its lines on stderr are collected."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.said: list[str] = []
        assert process.stdout is not None
        self.start = process.stdout.readline()
        Thread(target=self._collect, daemon=True).start()

    def stop(self, number: int) -> float:
        """Send a signal; returns the seconds until the process has ended, which it must with exit 0."""
        began = time.monotonic()
        self.process.send_signal(number)
        assert self.process.wait(30) == 0
        return time.monotonic() - began

    def heard(self, words: str) -> bool:
        """Whether a line with these words was said."""
        return any(words in line for line in self.said)

    def _collect(self) -> None:
        assert self.process.stderr is not None
        self.said.extend(self.process.stderr)


@contextmanager
def following(run: str, *words: str) -> Iterator[Following]:
    """Follow a run, under the environment as it is; killed at the latest when the block ends."""
    command = [sys.executable, "-m", "forktrail_lab", "project", run, "--follow", *words]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=dict(os.environ)
    ) as process:
        try:
            yield Following(process)
        finally:
            process.kill()


def emit(bootstrap_servers: str, run: str, count: int) -> None:
    """Write some events."""
    goals = [build(GoalSet, {"meta": meta(run, "human", "rita"), "text": f"goal {number}"}) for number in range(count)]
    with Producer(bootstrap_servers) as producer:
        producer.emit_all([(goal, None) for goal in goals])


def test_it_says_where_it_begins_and_where_it_answers(forktrail: CommandLine, run: str, settings: Settings) -> None:
    with following(run, "--format", "json") as follower:
        facts = json.loads(follower.start)
        assert (facts["run"], facts["next_offset"], facts["end"]) == (run, 0, 9)
        assert facts["process"] == follower.process.pid
        assert Path(facts["socket"]).is_socket()
    forktrail.ok("project", run)
    with following(run) as follower:
        assert follower.start.startswith(f"process {follower.process.pid} folds {run} live from offset 9 of 9; ")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_ends_in_good_order_at_once_also_with_much_to_fold(
    forktrail: CommandLine, run: str, settings: Settings, number: int
) -> None:
    with following(run) as follower:
        emit(settings.bootstrap_servers, run, 5_000)
        assert follower.stop(number) < STOP_SECONDS
    facts = forktrail.ok("project", run, "--format", "json").json
    assert (facts["next_offset"], facts["rebuilt"]) == (5_009, False)
    assert facts["state_digest"] == forktrail.ok("project", run, "--rebuild", "--format", "json").json["state_digest"]


def test_every_kind_of_command_works_beside_it(forktrail: CommandLine, run: str, tmp_path: Path) -> None:
    with following(run) as follower:
        case = report(forktrail, run)
        forktrail.ok("approve", run, case, "--key", "olga")
        assert forktrail("approve", run, case, "--key", "olga").code == 1
        assert forktrail.ok("query", run, COUNT, "--json").json == [{"n": 12}]
        assert forktrail.ok("query", run, COUNT, "--no-fold", "--json").json == [{"n": 12}]
        assert forktrail("query", run, "CREATE (:Asset {id: 'mine'})").code == 2
        assert forktrail.ok("case", "show", run, case, "--format", "json").json["case"]["status"] == "approved"
        assert forktrail.ok("run", "show", run, "--format", "json").json["next_offset"] == 12
        assert len(forktrail.ok("tail", run).out.splitlines()) == 13
        forktrail.ok("why-not", run, "invoice-chain")
        packet = tmp_path / "packet.json"
        forktrail.ok("handoff", run, "--output", str(packet))
        forktrail.ok("handoff", "verify", str(packet), "--with-log")
        beside = forktrail.ok("project", run, "--format", "json").json
        rebuilt = forktrail.ok("project", run, "--rebuild", "--format", "json").json
        assert rebuilt["state_digest"] == beside["state_digest"]
        second = forktrail("project", run, "--follow")
        assert (second.code, second.out) == (1, "")
        assert f"graph_owned: process {follower.process.pid} owns the graph" in second.err
    assert forktrail.ok("project", run, "--format", "json").json["state_digest"] == beside["state_digest"]


def test_a_command_takes_over_from_one_that_was_killed(forktrail: CommandLine, run: str) -> None:
    with following(run) as follower:
        before = forktrail.ok("project", run, "--format", "json").json
        follower.process.kill()
        follower.process.wait()
    assert forktrail.ok("project", run, "--format", "json").json == before


def test_a_query_beside_it_that_is_interrupted_leaves_it_idle(forktrail: CommandLine, run: str) -> None:
    slow = "UNWIND range(1, 1000000) AS a UNWIND range(1, 1000000) AS b RETURN sum(a * b % 7)"
    with following(run) as follower:
        command = [sys.executable, "-m", "forktrail_lab", "query", run, slow]
        pid = follower.process.pid
        with subprocess.Popen(command, env=dict(os.environ), stderr=subprocess.DEVNULL) as asking:
            wait_until(lambda: cpu_seconds(pid, 0.2) > 0.1)
            asking.kill()
        wait_until(lambda: cpu_seconds(pid, 0.5) < 0.1)
        assert forktrail.ok("query", run, "RETURN 41 + 1 AS n", "--json").json == [{"n": 42}]
        assert follower.process.poll() is None


def test_it_ends_soon_beside_a_query_that_the_engine_does_not_end(forktrail: CommandLine, run: str) -> None:
    with following(run) as follower:
        before = forktrail.ok("project", run, "--format", "json").json
        pid = follower.process.pid
        deaf = DEAF.format(size=300_000)
        gives_up(run, deaf)
        assert cpu_seconds(pid, 0.5) > 0.2  # nobody waits for it any more, and yet it goes on
        assert forktrail.ok("query", run, "RETURN 41 + 1 AS n", "--json").json == [{"n": 42}]
        assert follower.stop(signal.SIGTERM) < STUCK_SECONDS
        assert follower.heard("a query runs on, whatever the engine is told; nothing that was folded is lost")
    assert forktrail.ok("project", run, "--format", "json").json == before


def test_whatever_holds_it_up_it_ends_soon() -> None:
    held_up = """
import time
from forktrail_lab.commands import project
project.STOP_SECONDS_MAX = 0.3
with project._until_stopped():
    try:
        print("begun", flush=True)
        time.sleep(60)
    finally:
        time.sleep(60)
"""
    with subprocess.Popen(
        [sys.executable, "-c", held_up], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "begun\n"
            process.send_signal(signal.SIGTERM)
            _, said = process.communicate(timeout=10)
        finally:
            process.kill()
    assert (process.returncode, said.count("\n")) == (0, 1)
    assert "the graph is let go of at once: it isn't closed yet" in said


@pytest.mark.parametrize("cypher", [DEAF.format(size=300_000), LISTENS], ids=["deaf", "listens"])
def test_a_query_without_an_owner_ends_at_its_deadline_and_by_ctrl_c(
    forktrail: CommandLine, run: str, cypher: str
) -> None:
    before = forktrail.ok("project", run, "--format", "json").json
    gives_up(run, cypher)
    with asking(run, cypher) as client:
        wait_until(lambda: cpu_seconds(client.pid, 0.2) > 0.1 and has_loaded_the_engine(client.pid))
        time.sleep(0.5)
        began = time.monotonic()
        client.send_signal(signal.SIGINT)
        assert client.wait(30) == 130
        assert time.monotonic() - began < 2
        assert client.stderr is not None
        assert client.stderr.read() == ""
    assert forktrail.ok("project", run, "--format", "json").json == before


def gives_up(run: str, cypher: str) -> None:
    """Ask with a deadline, and see that it is kept and told."""
    with asking(run, cypher, "--timeout", "1") as client:
        began = time.monotonic()
        assert client.wait(30) == 1
        assert time.monotonic() - began < STUCK_SECONDS
        assert client.stderr is not None
        assert "query_timeout: the query ran out of time" in client.stderr.read()


@contextmanager
def asking(run: str, cypher: str, *words: str) -> Iterator[subprocess.Popen[str]]:
    """A process that asks; killed at the latest when the block ends."""
    command = [sys.executable, "-m", "forktrail_lab", "query", run, cypher, *words]
    with subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, env=dict(os.environ), preexec_fn=hear_ctrl_c
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def hear_ctrl_c() -> None:
    """A job that a shell put into the background ignores SIGINT, and so do its children."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def has_loaded_the_engine(pid: int) -> bool:
    """Whether a process has come so far as to open a graph."""
    return "ladybug" in Path(f"/proc/{pid}/maps").read_text()


def cpu_seconds(pid: int, seconds: float) -> float:
    """The processor time that a process takes within so long."""

    def ticks() -> int:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return int(fields[11]) + int(fields[12])

    before = ticks()
    time.sleep(seconds)
    return (ticks() - before) / os.sysconf("SC_CLK_TCK")


@dataclass
class OwnBroker:
    """A broker that a test may stop and damage, with a run in its log."""

    layout: BrokerLayout
    port: int
    servers: str = ""
    run: str = ""
    records: int = 0

    def start(self) -> None:
        """Start it, again maybe."""
        self.servers = control.start(self.layout, self.port, ignore).state.bootstrap_servers

    def stop(self) -> None:
        """Stop it in good order."""
        control.stop(self.layout, ignore, grace_s=10.0)

    def lose_last_record(self) -> None:
        """Cut the log's last batch off, as a loss of power may; while it is stopped."""
        folder = self.layout.data / f"{run_topic(self.run)}-0"
        segment = max(folder.glob("*.log"))
        data, batch, place = segment.read_bytes(), 0, 0
        while place < len(data):
            batch, place = place, place + 12 + int.from_bytes(data[place + 8 : place + 12])
        os.truncate(segment, batch)
        for file in (*folder.glob("*.index"), *folder.glob("*.timeindex"), *folder.glob("*.snapshot")):
            file.unlink()
        for name in (".kafka_cleanshutdown", "recovery-point-offset-checkpoint"):
            (self.layout.data / name).unlink(missing_ok=True)


@pytest.fixture
def broker(home: Path, kafka_libs: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[OwnBroker]:
    """A broker of the test's own; commands find it and the run's home by the environment."""
    broker = OwnBroker(BrokerLayout.of(home, kafka_libs), free_port())
    try:
        broker.start()
        monkeypatch.setenv("FORKTRAIL_HOME", str(home))
        monkeypatch.setenv("FORKTRAIL_BOOTSTRAP_SERVERS", broker.servers)
        story = told(broker.servers)
        story.open()
        write(broker.servers, story.run, story.records)
        broker.run, broker.records = story.run, len(story.records)
        yield broker
    finally:
        broker.stop()


def test_it_survives_a_broker_that_goes_away_and_comes_back(
    broker: OwnBroker, capsys: pytest.CaptureFixture[str]
) -> None:
    forktrail = CommandLine(capsys)
    with following(broker.run) as follower:
        assert forktrail.ok("query", broker.run, COUNT, "--json").json == [{"n": broker.records}]
        broker.stop()
        wait_until(lambda: follower.heard("doesn't answer"))
        away = forktrail("query", broker.run, COUNT)
        assert (away.code, "log_unavailable" in away.err) == (1, True)
        broker.start()
        wait_until(lambda: follower.heard("Kafka answers again"))
        emit(broker.servers, broker.run, 3)
        assert forktrail.ok("query", broker.run, COUNT, "--json").json == [{"n": broker.records + 3}]
        broker.stop()
        assert follower.stop(signal.SIGTERM) < STOP_SECONDS


def test_a_log_that_came_back_shorter_has_the_graph_set_aside_and_made_anew(
    broker: OwnBroker, capsys: pytest.CaptureFixture[str]
) -> None:
    forktrail = CommandLine(capsys)
    for _ in range(2):
        emit(broker.servers, broker.run, 1)
    with following(broker.run) as follower:
        assert forktrail.ok("query", broker.run, COUNT, "--json").json == [{"n": broker.records + 2}]
        broker.stop()
        broker.lose_last_record()
        broker.start()
        end = broker.records + 2
        wait_until(lambda: follower.heard(f"it is at offset {end}, ahead of its log, which ends at {end - 1}"))
        emit(broker.servers, broker.run, 2)
        facts = forktrail.ok("project", broker.run, "--format", "json").json
        assert (facts["next_offset"], facts["end"]) == (broker.records + 3, broker.records + 3)
        rebuilt = forktrail.ok("project", broker.run, "--rebuild", "--format", "json").json
        assert rebuilt["state_digest"] == facts["state_digest"]
