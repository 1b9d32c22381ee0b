"""The `forktrail` command called in this process, with its output and exit code."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pytest

from forktrail_lab import cli


@dataclass(frozen=True)
class Said:
    """What a command printed, and its exit code."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Its output, read as JSON."""
        return json.loads(self.out)


class CommandLine:
    """Calls `forktrail`; the environment it sees is the test's own."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *words: str) -> Said:
        """Call it; never raises."""
        self._capsys.readouterr()
        try:
            code = cli.main(words)
        except SystemExit as ended:  # argparse, on wrong words and on --help
            code = int(ended.code or 0)
        out, err = self._capsys.readouterr()
        return Said(int(code), out, err)

    def ok(self, *words: str) -> Said:
        """Call it and insist on exit code 0."""
        said = self(*words)
        assert said.code == 0, said
        return said
