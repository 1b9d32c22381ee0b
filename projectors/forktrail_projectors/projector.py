"""Folds records into a graph: batch by batch, rows and cursor in one commit."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import cast

from forktrail_projectors import digest, merkle
from forktrail_projectors.fold import FOLD_VERSION, Decoded, decode_record, fold, known_keys
from forktrail_projectors.graph.protocol import Cursor, Graph
from forktrail_projectors.record import LogRecord, Verdict, VerdictKind
from forktrail_projectors.rules.context import number, text
from forktrail_projectors.state import Key, NodeKey, Overlay, Row
from forktrail_schemas.errors import ForeignTransaction


class Projector:
    """The one writer of a graph."""

    def __init__(self, graph: Graph, topic_id: str) -> None:
        """Take over a graph where it stands.

        Args:
            topic_id: of the topic that a graph without a cursor is to be folded from.
        """
        self._graph = graph
        self.cursor = graph.cursor() or Cursor(topic_id, 0, "", (), digest.EMPTY, FOLD_VERSION)

    @property
    def state_digest(self) -> str:
        """The digest of the graph as it stands, as it was kept."""
        return digest.state_digest(self.cursor.accumulator)

    def apply(self, records: Sequence[LogRecord]) -> list[Verdict]:
        """Fold records in the order of their offsets and commit; returns a verdict for each.

        A record below the cursor was folded before: it changes nothing and its verdict is read back.

        Raises:
            ForeignTransaction: an offset is missing between the cursor and a record.
            GraphError: nothing of this batch was written.
        """
        fresh = [decode_record(record) for record in self._fresh(records)]
        overlay = Overlay(self._graph)
        overlay.prefetch(list(self._keys(records, fresh)))
        cursor = self.cursor
        verdicts: dict[int, Verdict] = {}
        for decoded in fresh:
            verdicts[decoded.record.offset] = fold(decoded, overlay)
            cursor = _advanced(cursor, decoded.record)
        if fresh:
            cursor = replace(cursor, accumulator=digest.advance(cursor.accumulator, overlay.changes))
            self._graph.commit(overlay.changes, cursor)
            self.cursor = cursor
        return [verdicts.get(record.offset) or recorded_verdict(overlay, record.offset) for record in records]

    def recomputed_digest(self) -> str:
        """The state digest made anew from every row."""
        return digest.state_digest(digest.recompute(self._graph.rows()))

    def _fresh(self, records: Sequence[LogRecord]) -> list[LogRecord]:
        fresh = []
        expected = self.cursor.next_offset
        for record in records:
            if record.offset > expected:
                raise ForeignTransaction(
                    f"offset {expected} is missing: the next record is {record.offset}", offset=expected - 1
                )
            if record.offset == expected:
                fresh.append(record)
                expected += 1
        return fresh

    def _keys(self, records: Sequence[LogRecord], fresh: Iterable[Decoded]) -> Iterable[Key]:
        for record in records:
            yield NodeKey("Event", record.offset)
        for decoded in fresh:
            yield from known_keys(decoded)


def _advanced(cursor: Cursor, record: LogRecord) -> Cursor:
    leaf = merkle.record_hash(record)
    return replace(
        cursor,
        next_offset=cursor.next_offset + 1,
        record_hash=leaf,
        frontier=merkle.grow(cursor.frontier, cursor.next_offset, leaf),
    )


def recorded_verdict(overlay: Overlay, offset: int) -> Verdict:
    """The verdict that a graph holds for an offset."""
    row = overlay.node("Event", offset)
    assert row is not None, "a folded offset has a row"
    return verdict_of_row(row)


def verdict_of_row(row: Row) -> Verdict:
    """The verdict in an event's row."""
    return Verdict(
        offset=number(row, "offset"),
        kind=cast(VerdictKind, row["verdict"]),
        reason=text(row, "reason"),
        detail=text(row, "detail"),
        event_id=text(row, "id"),
        type=text(row, "type"),
    )
