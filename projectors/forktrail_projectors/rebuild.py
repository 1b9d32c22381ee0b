"""Folds a log from its start into a new graph file: in memory first, then loaded at once."""

from __future__ import annotations

from pathlib import Path

from forktrail_projectors.collector import no_garbage_collection
from forktrail_projectors.graph.bulk import build_graph, events_to_copy
from forktrail_projectors.graph.engine import database_files
from forktrail_projectors.graph.memory import MemoryGraph
from forktrail_projectors.projector import Projector
from forktrail_projectors.reader import LogReader

# What is folded in memory takes up to 1 KB an event; the records of a longer log are committed to the file batch by
# batch, by whoever catches up.
EVENTS_IN_MEMORY_MAX = 2_000_000


def pays(engine: str, events: int) -> bool:
    """Whether a log of so many events is folded faster by a rebuild than into an empty file."""
    return events >= events_to_copy(engine)


def rebuild(path: Path, engine: str, reader: LogReader) -> None:
    """Make a graph file from the start of a log up to its end, or up to EVENTS_IN_MEMORY_MAX.

    Every row of the file is compared with what was folded. If it raises, or its process is killed, what lies at the
    path isn't to be used, and the next call removes it; so make it under a temporary name.

    Args:
        path: of the file; one that is there is removed.

    Raises:
        Corruption: the file doesn't hold what was folded.
        ForeignTransaction: a record is missing from the log.
        LogUnavailable: Kafka stopped answering.
        GraphError: the engine failed.
    """
    remove(path)
    with no_garbage_collection():
        graph, _ = fold_log(reader, min(reader.end(), EVENTS_IN_MEMORY_MAX))
        build_graph(path, engine, graph)


def remove(path: Path) -> None:
    """Remove a database file with what the engine laid beside it."""
    for file in database_files(path):
        file.unlink(missing_ok=True)


def fold_log(reader: LogReader, end: int) -> tuple[MemoryGraph, Projector]:
    """Fold a log from its start up to `end` in memory.

    Raises:
        ForeignTransaction: a record is missing from the log.
        LogUnavailable: Kafka stopped answering.
    """
    graph = MemoryGraph()
    projector = Projector(graph, reader.topic_id)
    with no_garbage_collection():
        for batch in reader.read(0, end):
            projector.apply(batch)
    return graph, projector
