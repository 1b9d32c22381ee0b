"""Graphs on disk that several benchmarks use: folded once, then opened or copied."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.logs import StoredLog
from benchmarks.stage import Stage
from forktrail_projectors.graph.cypher import CypherGraph
from forktrail_projectors.graph.engine import database_files
from forktrail_projectors.projection import graph_file, open_projection


def make_graph(stage: Stage, log: StoredLog) -> Path:
    """The file of a log's graph, folded to the log's end."""
    with open_projection(stage.settings, log.run):
        return graph_file(stage.settings, log.run)


@contextmanager
def open_copy(stage: Stage, path: Path) -> Iterator[CypherGraph]:
    """A graph opened for writing from a copy of its files, which ends with the `with` block."""
    with TemporaryDirectory(dir=stage.folder) as folder:
        for file in database_files(path):
            shutil.copy(file, folder)
        graph = CypherGraph.open(Path(folder) / path.name, stage.graph_engine)
        try:
            yield graph
        finally:
            graph.close()
