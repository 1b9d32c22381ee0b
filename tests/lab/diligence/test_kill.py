"""kill -9 of `forktrail behaviors run` at random points of a diligence run, on a real Kafka.

FORKTRAIL_TEST_KILLS sets how many kills (5), FORKTRAIL_TEST_SEED the dice.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from forktrail_lab.diligence.counts import counts_of
from forktrail_lab.diligence.opening import companies, company_fields
from forktrail_producers.producer import Producer, meta
from forktrail_projectors.content_digest import content_digest
from forktrail_projectors.fold import event_of
from forktrail_projectors.graph.memory import MemoryGraph
from forktrail_projectors.projection import fold_in_memory
from forktrail_projectors.reader import LogReader
from forktrail_schemas.events import ModelResponded, ObjectCreated, ToolResponded, WorkerClaimed
from forktrail_schemas.settings import Settings
from forktrail_schemas.wire import build
from support.command_line import CommandLine
from support.rows import SEED
from support.slow_diligence import CALLS_VARIABLE

KILLS = int(os.environ.get("FORKTRAIL_TEST_KILLS", "5"))
CALLS = 103 + 48
PACK = "support.slow_diligence"
# The tools and the models that one worker calls at once.
IN_FLIGHT_MAX = 8 + 4
WAIT_SECONDS = 120.0


class Trial:
    """A run, with the companies on its log, and a worker of it as a process of its own."""

    def __init__(self, forktrail: CommandLine, settings: Settings, calls: Path) -> None:
        self.run = forktrail.ok("run", "open", "--goal", "know our companies").out.strip()
        self._settings = settings
        self._calls = calls
        forktrail.ok("behaviors", "run", self.run, "--pack", PACK, "--until-idle")  # declares the types
        with Producer(settings.bootstrap_servers) as producer:
            producer.emit_all([(_company(self.run, name), None) for name in companies()])
        self.start = self.end()

    def worker(self) -> subprocess.Popen[bytes]:
        """Start a worker."""
        tests = Path(__file__).parents[2]
        return subprocess.Popen(
            [sys.executable, "-m", "forktrail_lab", "behaviors", "run", self.run, "--pack", PACK, "--until-idle"],
            cwd=tests,
            env=os.environ | {CALLS_VARIABLE: str(self._calls)},
            stderr=subprocess.DEVNULL,
        )

    def finish(self) -> None:
        """Let a worker come to the end."""
        assert self.worker().wait(WAIT_SECONDS) == 0

    def kill_at(self, offset: int) -> None:
        """Start a worker, and kill it once the log has come to an offset, and it has claimed the run."""
        target = max(offset, self.end() + 1)
        with self.worker() as process:
            until = time.monotonic() + WAIT_SECONDS
            while self.end() < target and process.poll() is None:
                assert time.monotonic() < until, f"the log doesn't come to {target}"
            process.kill()

    def end(self) -> int:
        """How long its log is."""
        with LogReader(self._settings.bootstrap_servers, self.run) as log:
            return log.end()

    def folded(self) -> MemoryGraph:
        """Its graph."""
        return fold_in_memory(self._settings, self.run)[0]

    def asked(self) -> Counter[str]:
        """How often each thing was asked of the model and the tools."""
        return Counter(self._calls.read_text().splitlines())


def _company(run: str, name: str) -> ObjectCreated:
    return build(ObjectCreated, {"meta": meta(run, "service", "crm"), **company_fields(name)})


@pytest.fixture
def importable(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A file for calls, in a process that finds the tests' modules."""
    monkeypatch.setenv(CALLS_VARIABLE, str(tmp_path / "none"))
    return tmp_path


def test_a_run_killed_at_random_points_comes_to_what_an_undisturbed_one_does(
    forktrail: CommandLine, settings: Settings, importable: Path
) -> None:
    calm = Trial(forktrail, settings, importable / "calm")
    calm.finish()
    length = calm.end() - calm.start
    assert sum(calm.asked().values()) == CALLS

    dice = random.Random(SEED)
    killed = Trial(forktrail, settings, importable / "killed")
    for point in sorted(dice.sample(range(1, length), KILLS)):
        killed.kill_at(killed.start + point)
    killed.finish()

    graphs = [trial.folded() for trial in (calm, killed)]
    first, second = (content_digest(graph.rows(), graph.tables) for graph in graphs)
    assert first == second, f"seed {SEED}"
    assert counts_of(graphs[1].rows()) == counts_of(graphs[0].rows())
    answers, claims = _told(settings, killed)
    assert len(answers) == CALLS
    assert set(answers.values()) == {1}, "nothing that had its answer on the log was asked again"
    assert killed.asked().keys() == calm.asked().keys()
    again = sum(killed.asked().values()) - CALLS
    assert claims == KILLS + 2, "of one that declares the types, of each that is killed, and of the last"
    assert again <= IN_FLIGHT_MAX * KILLS
    shown = forktrail.ok("replay", killed.run, "--pack", PACK, "--strict", "--format", "json").json
    assert (shown["divergences"], shown["unwritten"], shown["changed"]) == (0, 0, {})
    print(f"{KILLS} kills, seed {SEED}: {claims} workers, {CALLS} calls, {again} in flight asked again")


def _told(settings: Settings, trial: Trial) -> tuple[Counter[str], int]:
    """How many answers the log holds to each call, valid or not, and how many workers claimed the run."""
    answers: Counter[str] = Counter()
    claims = 0
    graph = trial.folded()
    with LogReader(settings.bootstrap_servers, trial.run) as log:
        for batch in log.read(0, log.end()):
            for record in batch:
                event = event_of(record, graph)
                claims += isinstance(event, WorkerClaimed)
                if isinstance(event, ModelResponded | ToolResponded):
                    answers[event.call_id] += 1
    return answers, claims
