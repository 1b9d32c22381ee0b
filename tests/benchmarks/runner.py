"""Runs benchmarks: each step in a process of its own, so that neither memory nor warmth leaks into the next."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.catalog import load
from benchmarks.figures import Line, Reading

TESTS_FOLDER = Path(__file__).parents[1]


class Failed(Exception):
    """A benchmark gave a wrong result, or broke off."""


@dataclass(frozen=True)
class Run:
    """How benchmarks are run.

    Attributes:
        folder: what their processes share.
        repeats: how often each is measured.
        profiled: the figure or benchmark to profile, "" for none.
        say: told what is going on.
    """

    folder: Path
    bootstrap_servers: str
    graph_engine: str
    quick: bool
    repeats: int
    say: Callable[[str], None]
    profiled: str = ""

    def lines(self, name: str) -> list[Line]:
        """Prepare and measure one benchmark.

        Raises:
            Failed: with the reason in one line; a traceback, if there is one, went to stderr.
        """
        figures = load(name).FIGURES
        self.say(f"{name}: preparing")
        self._step("prepare", name)
        readings: list[Reading] = []
        for repeat in range(1, self.repeats + 1):
            self.say(f"{name}: {repeat} of {self.repeats}")
            readings += self._step("measure", name)
        known = {figure.name for figure in figures}
        for reading in readings:
            if reading.figure not in known:
                raise Failed(f"{name} states {reading.figure}, which isn't among its FIGURES")
        return [Line(figure, tuple(one for one in readings if one.figure == figure.name)) for figure in figures]

    def _step(self, step: str, name: str) -> list[Reading]:
        command = [sys.executable, "-m", "benchmarks.child", step, name, "--folder", str(self.folder)]
        command += ["--bootstrap-servers", self.bootstrap_servers, "--graph-engine", self.graph_engine]
        if self.quick:
            command.append("--quick")
        if self.profiled:
            command += ["--profiled", self.profiled]
        search_path = os.pathsep.join(filter(None, [str(TESTS_FOLDER), os.environ.get("PYTHONPATH")]))
        environment = {**os.environ, "PYTHONPATH": search_path}
        answer = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True)
        said = json.loads(answer.stdout) if answer.stdout.startswith("{") else {}
        if "wrong" in said:
            raise Failed(f"wrong result: {said['wrong']}")
        if answer.returncode != 0:
            raise Failed(f"{step} ended with exit code {answer.returncode}")
        return [Reading(**fields) for fields in said["readings"]]
