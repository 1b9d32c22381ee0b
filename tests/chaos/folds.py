"""Folds in memory: of a log as it lies on Kafka, and of the events that a journal holds, as if nothing had happened."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice

from chaos.journal import Sent
from forktrail_projectors.content_digest import content_digest
from forktrail_projectors.graph.memory import MemoryGraph
from forktrail_projectors.projector import Projector
from forktrail_projectors.reader import LogReader
from forktrail_projectors.record import LogRecord
from forktrail_schemas.settings import Settings

BATCH_RECORDS = 1_000


def read_log(settings: Settings, run: str) -> list[LogRecord]:
    """Every record of a run, to the end that its log has now."""
    with LogReader(settings.bootstrap_servers, run) as reader:
        return [record for batch in reader.read(0, reader.end()) for record in batch]


def fold_log(log: Sequence[LogRecord]) -> tuple[str, str]:
    """The state digest and the content digest of a log."""
    graph, projector = _folded(log)
    return projector.state_digest, content_digest(graph.rows(), graph.tables)


def calm_content_digest(sent: Iterable[Sent]) -> str:
    """The content digest of the events that must count, each once, in the order in which they were sent."""
    valid = (event for event in sent if event.expected.kind == "valid")
    records = [LogRecord(offset, *event.content) for offset, event in enumerate(valid)]
    return content_digest(_folded(records)[0].rows())


def _folded(log: Sequence[LogRecord]) -> tuple[MemoryGraph, Projector]:
    graph = MemoryGraph()
    projector = Projector(graph, "a topic")
    records = iter(log)
    while batch := list(islice(records, BATCH_RECORDS)):
        projector.apply(batch)
    return graph, projector
