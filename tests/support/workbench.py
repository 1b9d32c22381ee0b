"""The `forktrail` command run in this process against a real broker, with a home of its own and the lab served."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Mapping
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

from forktrail_lab.cli import main
from forktrail_lab.exchange.targets import TARGETS_FILE, save_targets
from forktrail_lab.registry.file import load_registry
from forktrail_lab.services import REQUESTS_PATH, Lab
from forktrail_producers.keys import KeyStore
from forktrail_projectors.reader import LogReader
from forktrail_schemas.settings import Settings
from forktrail_schemas.wire import decode
from support.staff import GATEWAY, register

ROLES = {"olga": "operator", "ravi": "reviewer", "runner": "runner"}


@dataclass(frozen=True)
class Done:
    """What a command printed and how it ended."""

    exit: int
    out: str
    err: str

    def json(self) -> Any:
        """Its stdout as JSON."""
        return json.loads(self.out)

    def id(self, kind: str) -> str:
        """The id of one kind that it printed; fails where it printed none."""
        found = re.search(rf"\b{kind}-[0-9a-f]{{20}}\b", self.out)
        assert found, f"no {kind} in {self.out!r} {self.err!r}"
        return found[0]


@dataclass
class Workbench:
    """A home, a registry and a run opened with it."""

    settings: Settings
    registry: Path
    run: str = ""
    lab: Lab | None = None
    environ: Mapping[str, str] = field(default_factory=dict)

    def command(self, *words: str) -> Done:
        """Run a command; returns what it printed and its exit code, whatever it is."""
        out, err = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.StringIO()
        with patch.dict(os.environ, self._environ()), redirect_stdout(out), redirect_stderr(err):
            try:
                code = main(words)
            except SystemExit as end:
                code = int(end.code or 0)
        out.flush()
        return Done(code, out.buffer.getvalue().decode(), err.getvalue())

    def ok(self, *words: str) -> Done:
        """Run a command that must end with exit 0."""
        done = self.command(*words)
        assert done.exit == 0, f"forktrail {' '.join(words)}: exit {done.exit}\n{done.out}{done.err}"
        return done

    def start(self, *words: str, home: Path | None = None) -> subprocess.Popen[str]:
        """Start a command as a process of its own, in this home or another."""
        environ = {**os.environ, **self._environ()}
        if home is not None:
            environ["FORKTRAIL_HOME"] = str(home)
        return subprocess.Popen(
            [sys.executable, "-m", "forktrail_lab", *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environ,
        )

    def open(self) -> None:
        """Make keys, open the run, register the keys in it, and serve the lab."""
        for name in ("admin", *ROLES):
            self.ok("key", "new", name)
        self.open_run()
        self.serve()

    def open_run(self) -> None:
        """Open a run with the keys that there are."""
        self.run = self.ok("run", "open", "--registry", str(self.registry), "--goal", "look").out.split()[0]
        store = KeyStore(self.settings.keys_dir)
        register(self.settings, self.run, [(store.load(name), name, role) for name, role in ROLES.items()])

    def another(self, registry: Path | None = None) -> Workbench:
        """Another run, with the same keys and lab."""
        other = replace(self, registry=registry or self.registry, run="")
        other.open_run()
        return other

    def serve(self, targets: Path | None = None) -> None:
        """Serve the registry's services and say where, as `forktrail lab serve` does."""
        self.lab = Lab.start(load_registry(self.registry).registry)
        save_targets(targets or self.settings.lab_dir / TARGETS_FILE, self.lab.targets())

    def report(self, test: str) -> str:
        """Report a test; returns the case that it opens."""
        return self.ok("report", self.run, test, "--summary", "look here", "--as", "rita").id("case")

    def approved(self, test: str = GATEWAY) -> str:
        """Report a test and approve the case."""
        case = self.report(test)
        self.ok("approve", self.run, case, "--key", "olga")
        return case

    def propose(self) -> Any:
        """A fresh investigator's JSON."""
        return self.ok("investigate", self.run, "--format", "json").json()

    def settle(self, case: str) -> str | None:
        """Approve, run and accept a case; returns the finding, or None where it makes none."""
        self.ok("approve", self.run, case, "--key", "olga")
        self.ok("runner", self.run, "--once")
        reviewed = self.ok("review", self.run, case, "accept", "--key", "ravi")
        return reviewed.id("finding") if "finding-" in reviewed.out else None

    def query(self, cypher: str) -> Any:
        """The rows of a query."""
        return self.ok("query", self.run, cypher, "--json").json()

    def status(self, case: str) -> str:
        """A case's status in the graph."""
        (row,) = self.query(f"MATCH (c:`Case`) WHERE c.id = '{case}' RETURN c.status AS status")
        return str(row["status"])

    def types(self) -> list[str]:
        """The types of the events on the log, in order, without `forktrail.`."""
        with LogReader(self.settings.bootstrap_servers, self.run) as reader:
            records = [record for batch in reader.read(0, reader.end()) for record in batch]
        return [decode(record.value or b"").TYPE.rpartition(".")[2] for record in records]

    def end(self) -> int:
        """The offset after the log's last record."""
        with LogReader(self.settings.bootstrap_servers, self.run) as reader:
            return reader.end()

    def asked(self) -> int:
        """How many requests the lab's services have answered in all."""
        assert self.lab is not None
        return sum(_requests(service.origin) for service in self.lab.services)

    def close(self) -> None:
        """Stop the lab."""
        if self.lab is not None:
            self.lab.close()

    def _environ(self) -> dict[str, str]:
        return {
            "FORKTRAIL_HOME": str(self.settings.home),
            "FORKTRAIL_BOOTSTRAP_SERVERS": self.settings.bootstrap_servers,
            "FORKTRAIL_GRAPH_ENGINE": self.settings.graph_engine,
            **self.environ,
        }


def play_r1(bench: Workbench) -> dict[str, str | None]:
    """Play the shipped registry's r1 to its end; returns each test's finding, or None where it made none."""
    findings = {GATEWAY: bench.settle(bench.report(GATEWAY))}
    while (proposal := bench.propose())["status"] == "proposed":
        findings[proposal["selection"]["test_id"]] = bench.settle(proposal["case_id"])
    return findings


def wait_until(true: Callable[[], bool], seconds: float = 30.0) -> None:
    """Wait for something that another process brings about; fails where it takes too long."""
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "it didn't come true"
        time.sleep(0.02)


def _requests(origin: str) -> int:
    with urllib.request.urlopen(origin + REQUESTS_PATH, timeout=10) as answer:
        return int(json.load(answer)["count"])
