"""Processes that die while they open a graph are counted, in a row; one that comes to an end of it ends the count."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from forktrail_projectors import opening

KILLED = """
import os, signal, sys
from pathlib import Path
from forktrail_projectors import opening
with opening.noted(Path(sys.argv[1])):
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def graph(tmp_path: Path) -> Path:
    return tmp_path / "run.graph"


def test_whoever_comes_to_an_end_of_it_leaves_nothing(graph: Path) -> None:
    with opening.noted(graph):
        assert opening.deaths(graph) == 1
    assert list(graph.parent.iterdir()) == []
    with pytest.raises(ValueError, match="damaged"), opening.noted(graph):
        raise ValueError("damaged")
    assert opening.deaths(graph) == 0


def test_the_killed_are_counted_until_one_is_not(graph: Path) -> None:
    for killed in range(1, opening.DEATHS_MAX + 1):
        subprocess.run([sys.executable, "-c", KILLED, str(graph)])
        assert opening.deaths(graph) == killed
    with opening.noted(graph):
        pass
    assert opening.deaths(graph) == 0


def test_where_no_note_can_be_made_the_graph_is_opened_all_the_same(tmp_path: Path) -> None:
    with opening.noted(tmp_path / "no folder" / "run.graph"):
        assert opening.deaths(tmp_path / "no folder" / "run.graph") == 0
