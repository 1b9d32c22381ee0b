"""Stand-ins for the programs that the broker calls."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

FakeTool = Callable[[str, str], str]


@pytest.fixture
def fake_tool(tmp_path: Path) -> FakeTool:
    """Makes a shell script of the given name and text; returns the search path that holds nothing else."""
    folder = tmp_path / "bin"
    folder.mkdir()

    def make(name: str, script: str) -> str:
        path = folder / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        return str(folder)

    return make
