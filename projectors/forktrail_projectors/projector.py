"""Folds records into a graph: batch by batch, rows and cursor in one commit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import cast

from forktrail_projectors import digest, merkle
from forktrail_projectors.collector import no_garbage_collection
from forktrail_projectors.fold import FOLD_VERSION, decode_record, fold, known_keys
from forktrail_projectors.graph.protocol import Cursor, Graph
from forktrail_projectors.record import LogRecord, Verdict, VerdictKind
from forktrail_projectors.rules.context import number, text
from forktrail_projectors.state import Overlay, Row
from forktrail_schemas.errors import ForeignTransaction

# Rows that stay at hand from one batch to the next: those of tests, budgets and whatever else many events name.
OVERLAY_KEYS_MAX = 20_000


class Projector:
    """The one writer of a graph."""

    def __init__(self, graph: Graph, topic_id: str) -> None:
        """Take over a graph where it stands.

        Args:
            topic_id: of the topic that a graph without a cursor is to be folded from.
        """
        self._graph = graph
        self._overlay = Overlay(graph)
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
        fresh = self._fresh(records)
        if not fresh:
            return [recorded_verdict(self._overlay, record.offset) for record in records]
        try:
            with no_garbage_collection():
                verdicts = {verdict.offset: verdict for verdict in self._fold(fresh)}
                cursor = self._advanced(fresh)
                self._graph.commit(self._overlay.changes, cursor)
        except BaseException:
            self._overlay = Overlay(self._graph)  # it holds changes that the graph doesn't
            raise
        self.cursor = cursor
        self._overlay.flushed()
        if len(self._overlay) > OVERLAY_KEYS_MAX:
            self._overlay = Overlay(self._graph)
        return [verdicts.get(record.offset) or recorded_verdict(self._overlay, record.offset) for record in records]

    def recomputed_digest(self) -> str:
        """The state digest made anew from every row."""
        return digest.state_digest(digest.recompute(self._graph.rows(), self._graph.tables))

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

    def _fold(self, records: Sequence[LogRecord]) -> list[Verdict]:
        overlay = self._overlay
        if not self._graph.prefetch_pays:
            return [fold(decode_record(record), overlay) for record in records]
        decoded = [decode_record(record) for record in records]
        overlay.prefetch(key for item in decoded for key in known_keys(item))
        return [fold(item, overlay) for item in decoded]

    def _advanced(self, records: Sequence[LogRecord]) -> Cursor:
        cursor = self.cursor
        leaves = [merkle.leaf(record) for record in records]
        return replace(
            cursor,
            next_offset=cursor.next_offset + len(records),
            record_hash=leaves[-1].hex(),
            frontier=merkle.grow(cursor.frontier, cursor.next_offset, leaves),
            accumulator=digest.advance(cursor.accumulator, self._overlay.changes, self._overlay.tables),
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
