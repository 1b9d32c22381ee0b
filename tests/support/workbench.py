"""The `forktrail` command run in this process against a real broker, with a home of its own and the lab served."""

from __future__ import annotations

import io
import json
import os
import re
from collections.abc import Mapping
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

from forktrail_lab.cli import main
from forktrail_lab.registry import load_registry
from forktrail_lab.services import Lab
from forktrail_lab.targets import TARGETS_FILE, save_targets
from forktrail_schemas.settings import Settings

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
        out, err = io.StringIO(), io.StringIO()
        environ = {
            "FORKTRAIL_HOME": str(self.settings.home),
            "FORKTRAIL_BOOTSTRAP_SERVERS": self.settings.bootstrap_servers,
            "FORKTRAIL_GRAPH_ENGINE": self.settings.graph_engine,
        }
        with patch.dict(os.environ, {**environ, **self.environ}), redirect_stdout(out), redirect_stderr(err):
            try:
                code = main(words)
            except SystemExit as end:
                code = int(end.code or 0)
        return Done(code, out.getvalue(), err.getvalue())

    def ok(self, *words: str) -> Done:
        """Run a command that must end with exit 0."""
        done = self.command(*words)
        assert done.exit == 0, f"forktrail {' '.join(words)}: exit {done.exit}\n{done.out}{done.err}"
        return done

    def open(self) -> None:
        """Make keys, open the run, register the keys in it, and serve the lab."""
        for name in ("admin", *ROLES):
            self.ok("key", "new", name)
        self.run = self.ok("run", "open", "--registry", str(self.registry), "--goal", "look").out.split()[0]
        for name, role in ROLES.items():
            self.ok("key", "register", self.run, name, "--role", role)
        self.serve()

    def serve(self) -> None:
        """Serve the registry's services and say where, as `forktrail lab serve` does."""
        self.lab = Lab.start(load_registry(self.registry).registry)
        save_targets(self.settings.lab_dir / TARGETS_FILE, self.lab.targets())

    def report(self, test: str) -> str:
        """Report a test; returns the case that it opens."""
        return self.ok("report", self.run, test, "--summary", "look here", "--as", "rita").id("case")

    def propose(self) -> Any:
        """A fresh investigator's JSON."""
        return self.ok("investigate", self.run).json()

    def settle(self, case: str) -> str | None:
        """Approve, run and accept a case; returns the finding, or None where it makes none."""
        self.ok("approve", self.run, case, "--key", "olga")
        self.ok("runner", self.run, "--once")
        reviewed = self.ok("review", self.run, case, "accept", "--key", "ravi")
        return reviewed.id("finding") if "finding-" in reviewed.out else None

    def close(self) -> None:
        """Stop the lab."""
        if self.lab is not None:
            self.lab.close()
