"""The cursor as rows of a table of its own, which no fold and no digest sees.

Each commit appends a row. One row that every commit updates gets slower with each: the engine keeps all its versions
until the next CHECKPOINT.
"""

from __future__ import annotations

from collections.abc import Iterator

from forktrail_projectors.graph.protocol import Cursor
from forktrail_projectors.graph.schema import CURSOR_TABLE
from forktrail_projectors.graph.session import Session
from forktrail_projectors.graph.writes import Statement

CREATE_CURSOR_TABLE = (
    f"CREATE NODE TABLE {CURSOR_TABLE}(number INT64, topic_id STRING, next_offset INT64, record_hash STRING,"
    " frontier STRING[], accumulator STRING, fold_version INT64, PRIMARY KEY(number))"
)
# The engine frees the space of pruned rows by and by.
COMMITS_PER_PRUNING = 1_000


def append_cursor(number: int, cursor: Cursor) -> Iterator[Statement]:
    """The statements that write the cursor of commit `number`; numbers count up."""
    yield Statement(
        f"CREATE (:{CURSOR_TABLE} {{number: $number, topic_id: $topic_id, next_offset: $next_offset,"
        " record_hash: $record_hash, frontier: $frontier, accumulator: $accumulator, fold_version: $fold_version})",
        {
            "number": number,
            "topic_id": cursor.topic_id,
            "next_offset": cursor.next_offset,
            "record_hash": cursor.record_hash,
            "frontier": list(cursor.frontier),
            "accumulator": cursor.accumulator,
            "fold_version": cursor.fold_version,
        },
    )
    if number % COMMITS_PER_PRUNING == 0:
        yield Statement(f"MATCH (c:{CURSOR_TABLE}) WHERE c.number < $number DELETE c", {"number": number})


def last_cursor(session: Session) -> tuple[int, Cursor | None]:
    """The number of the last commit, and the cursor it wrote; 0 and None before the first.

    Raises:
        GraphError: the table can't be read.
    """
    number = session.run(f"MATCH (c:{CURSOR_TABLE}) RETURN max(c.number)")[0][0]
    if number is None:
        return 0, None
    fields = "c.topic_id, c.next_offset, c.record_hash, c.frontier, c.accumulator, c.fold_version"
    row = session.run(f"MATCH (c:{CURSOR_TABLE}) WHERE c.number = $number RETURN {fields}", {"number": number})[0]
    topic_id, next_offset, record_hash, frontier, accumulator, fold_version = row
    return number, Cursor(topic_id, next_offset, record_hash, tuple(frontier), accumulator, fold_version)
