"""One run under load: its plan, its producer and its projector as processes, which are looked after."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType

import orjson

from chaos.broker import Broker, Say
from chaos.children import END_SECONDS, Child
from chaos.damage import wal_of
from chaos.examiner import Examiner
from chaos.journal import Journal, JournalWriter
from chaos.plan import Plan, PlanFile, Planned, PlanReader
from chaos.producer import Emitter
from forktrail_producers.kafka import Topics
from forktrail_producers.producer import Producer
from forktrail_projectors.graph.engine import database_files
from forktrail_projectors.lock import holder
from forktrail_projectors.projection import graph_file, lock_file
from forktrail_schemas.ids import new_run_id
from forktrail_schemas.settings import Settings
from forktrail_schemas.topics import run_topic_spec

EVENTS_AHEAD = 300
EVENTS_PER_LOOK = 100
EVENTS_PER_WRITE = 200
REST_SECONDS = 180.0
_LOOK_SECONDS = 0.004


class NotInTime(Exception):
    """Something that had to come about didn't."""


class Rig:
    """A run with its processes. Use in a `with` block."""

    def __init__(self, folder: Path, broker: Broker, seed: int, say: Say, engine: str = "ladybug") -> None:
        """Make the run's topic; nothing runs yet.

        Args:
            folder: takes everything: journal, graph, what processes print.
        """
        folder.mkdir(parents=True)
        self.folder = folder
        self.broker = broker
        self.say = say
        self.run = new_run_id()
        self.settings = Settings(folder / "home", broker.bootstrap_servers, external_kafka=True, graph_engine=engine)
        self.examiner = Examiner(engine)
        self.journal = Journal(folder / "journal.jsonl")
        self.plan = PlanFile(folder / "plan.jsonl", Plan(self.run, seed))
        Topics(broker.bootstrap_servers).make(run_topic_spec(self.run))
        self._wal_seen = 0, 0  # the projector's life, and the size of its write-ahead log when that was looked at first
        environment = self.environment()
        producer = [sys.executable, "-m", "chaos.producer", "--plan", str(self.plan.path)]
        producer += ["--journal", str(folder / "journal.jsonl"), "--seed", str(seed)]
        producer += ["--bootstrap-servers", broker.bootstrap_servers]
        self.producer = Child("producer", producer, environment, folder, may_finish=True)
        follow = [*self.command("project", self.run, "--follow"), "--format", "json"]
        self.projector = Child("projector", follow, environment, folder)

    def __enter__(self) -> Rig:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.producer.close()
        self.projector.close()
        self.examiner.close()

    @property
    def graph(self) -> Path:
        """The graph's file."""
        return graph_file(self.settings, self.run)

    @property
    def serving(self) -> bool:
        """Whether the projector has opened the graph in this life, and says so."""
        return '"next_offset"' in self.projector.said

    @property
    def opening(self) -> bool:
        """Whether the projector has taken the graph's lock in this life: next it opens the graph."""
        found = holder(lock_file(self.settings, self.run))
        return found is not None and found.process == self.projector.process_id

    @property
    def committed(self) -> bool:
        """Whether the projector, which serves, has committed anything in this life since that was asked first."""
        try:
            size = wal_of(self.graph).stat().st_size
        except FileNotFoundError:
            size = 0
        life, before = self._wal_seen
        if life != self.projector.lives:
            self._wal_seen = self.projector.lives, size
            return False
        return size != before

    def environment(self) -> dict[str, str]:
        """What a `forktrail` command has to see."""
        return {
            "FORKTRAIL_HOME": str(self.settings.home),
            "FORKTRAIL_BOOTSTRAP_SERVERS": self.settings.bootstrap_servers,
            "FORKTRAIL_GRAPH_ENGINE": self.settings.graph_engine,
        }

    def command(self, *words: str) -> list[str]:
        """The command line of a `forktrail` command."""
        return [sys.executable, "-m", "forktrail_lab", *words]

    def start(self) -> None:
        """Start both processes."""
        self.plan.extend(EVENTS_AHEAD)
        self.producer.start()
        self.projector.start()

    def planned(self, count: int) -> list[Planned]:
        """The next events to send, for `write`; not beside a producer process."""
        begin = len(self.journal.sent)
        self.plan.extend(max(0, begin + count - self.plan.length))
        return PlanReader(self.plan.path, begin).take(count)

    def write(self, planned: Sequence[Planned]) -> None:
        """Send events from this process, as the producer would; not beside one."""
        with (
            JournalWriter(self.folder / "journal.jsonl") as journal,
            Producer(self.settings.bootstrap_servers) as producer,
        ):
            emitter = Emitter(producer, journal, self.say, len(self.journal.sent))
            for start in range(0, len(planned), EVENTS_PER_WRITE):
                emitter.send(planned[start : start + EVENTS_PER_WRITE])
        self.journal.update()

    def tend(self) -> None:
        """Read the journal, write the plan on, start again what ended."""
        self.journal.update()
        if not self.plan.ended and self.plan.length - len(self.journal.sent) < EVENTS_AHEAD:
            self.plan.extend(EVENTS_PER_LOOK)
        self.producer.tend()
        self.projector.tend()

    def kill_producer(self) -> int | None:
        """SIGKILL the producer and start it again; returns how many events it left unacknowledged.

        None where it had ended by itself.
        """
        if not self.producer.kill():
            return None
        self.journal.update()
        self.journal.cut_half_line()
        left = len(self.journal.in_flight)
        self.producer.start()
        return left

    def wait_until(self, true: Callable[[], bool], what: str, seconds: float = END_SECONDS) -> None:
        """Look after everything until something is so.

        Raises:
            NotInTime: it didn't come about.
        """
        deadline = time.monotonic() + seconds
        while not true():
            if time.monotonic() > deadline:
                raise NotInTime(f"{what}: not within {seconds:.0f} s; {self.state()}")
            self.tend()
            time.sleep(_LOOK_SECONDS)

    def wait(self, seconds: float) -> None:
        """Look after everything for a while."""
        until = time.monotonic() + seconds
        self.wait_until(lambda: time.monotonic() >= until, "a pause", seconds + END_SECONDS)

    def state(self) -> str:
        """Where everything stands, in words."""
        return (
            f"{len(self.journal.sent):,} events sent, {len(self.journal.in_flight)} of them unacknowledged; "
            f"producer in life {self.producer.lives}, projector in life {self.projector.lives}"
        )

    def rest(self) -> None:
        """Let the producer finish and the projector catch up.

        Raises:
            NotInTime: they don't.
        """
        self.wait_until(lambda: self.broker.up, "the broker's start")
        self.plan.end()
        self.wait_until(lambda: self.producer.done, "the producer's end", REST_SECONDS)
        self.wait_until(lambda: self.serving, "the projector's start")

    def project(self, *words: str) -> tuple[str, str]:
        """Run `forktrail project`; returns its state digest, or what went wrong, and what it says beside."""
        command = [*self.command("project", self.run, *words), "--format", "json"]
        done = subprocess.run(command, env=self.projector.environment, capture_output=True, text=True)
        with (self.folder / "project.err").open("a") as file:
            file.write(f"--- exit {done.returncode}\n{done.stderr}")
        if done.returncode != 0:
            return f"exit {done.returncode}: {done.stderr.strip()[-200:]}", done.stderr
        return str(orjson.loads(done.stdout)["state_digest"]), done.stderr

    def rebuilds(self) -> list[str]:
        """Why the projector that follows made its graph anew, each time."""
        return re.findall(
            r"was rebuilt from the log: (.*?)(?:; the old one is kept|$)", self.projector.err.read_text(), re.M
        )

    def copy_graph(self, folder: Path) -> Path:
        """Copy the files of a graph that nobody has open; returns the copy's path."""
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        for file in database_files(self.graph):
            shutil.copyfile(file, folder / file.name)
        return folder / self.graph.name
