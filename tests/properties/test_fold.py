"""The invariants of the fold, on streams of every event type, right and wrong, in any order.

Each test is named for the invariant that it would see broken. A failing stream shrinks to a short list of moves.
"""

from __future__ import annotations

import random
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast
from unittest.mock import patch

from hypothesis import given, settings
from hypothesis import strategies as st

from forktrail_projectors.content_digest import content_digest
from forktrail_projectors.graph import bulk
from forktrail_projectors.graph.cypher import CypherGraph
from forktrail_projectors.graph.memory import MemoryGraph
from forktrail_projectors.graph.protocol import Cursor, Graph
from forktrail_projectors.projector import Projector
from forktrail_projectors.record import LogRecord, Verdict
from forktrail_projectors.rules.reasons import IN_WORDS
from forktrail_projectors.state import EdgeKey, NodeKey, Row
from support.moves import Move, on_streams, streams
from support.refused_authority import AUTHORITY
from support.refused_evidence import EVIDENCE
from support.refused_graph import GRAPH
from support.refused_log import LOG
from support.refused_schemas import SCHEMAS
from support.refused_work import WORK
from support.rows import ENGINE
from support.story import TOPIC_ID
from support.tale import Tale

Outcome = tuple[dict[NodeKey | EdgeKey, Row], Cursor, str, list[Verdict]]
KINDS = {"valid", "duplicate", "void", "unreadable", "unhandled"}
# Whether a refusal for a reason takes the event's id; for a few it depends.
TAKES_ID: defaultdict[str, set[bool]] = defaultdict(set)
for refusal in (*LOG, *AUTHORITY, *EVIDENCE, *SCHEMAS, *GRAPH, *WORK):
    TAKES_ID[refusal.code].add(refusal.takes_id)
LIMIT_AND_LIFT = (Move("budget", b=7), Move("budget", b=0))
# A graph on disk takes a second to make.
on_disk = settings(max_examples=max(4, settings().max_examples // 8))


def outcome(projector: Projector, graph: Graph, verdicts: Sequence[Verdict]) -> Outcome:
    """All that a fold comes to."""
    return dict(graph.rows()), projector.cursor, projector.state_digest, list(verdicts)


def content_of(graph: Graph) -> str:
    """The content digest of a graph, whatever types its run has declared."""
    return content_digest(graph.rows(), graph.tables)


def told(tale: Tale) -> Outcome:
    """What a tale came to, folded record by record as it was told."""
    return outcome(tale.projector, tale.graph, tale.verdicts)


def folded(batches: Sequence[Sequence[LogRecord]], graph: Graph) -> Outcome:
    """What the batches come to in a new graph."""
    projector = Projector(graph, TOPIC_ID)
    verdicts = [verdict for batch in batches for verdict in projector.apply(batch)]
    return outcome(projector, graph, verdicts)


def cut(records: Sequence[LogRecord], cuts: Sequence[int]) -> list[Sequence[LogRecord]]:
    """The records in batches, cut at the offsets given, whatever they are; some batches may be empty."""
    ends = sorted(cut % (len(records) + 1) for cut in cuts)
    return [records[start:end] for start, end in zip([0, *ends], [*ends, len(records)], strict=True)]


some_cuts = st.lists(st.integers(0, 10_000), max_size=12)


@on_streams
def test_a_rebuild_equals_the_live_fold(moves: list[Move]) -> None:
    tale = Tale(moves)
    assert folded([tale.records], MemoryGraph()) == told(tale)


@given(streams(), some_cuts)
def test_any_partition_into_batches_equals_one_by_one(moves: list[Move], cuts: list[int]) -> None:
    tale = Tale(moves)
    assert folded(cut(tale.records, cuts), MemoryGraph()) == told(tale)


@given(streams(), st.integers(0, 10_000), st.integers(0, 10))
def test_a_fold_resumed_at_any_offset_ends_the_same(moves: list[Move], at: int, again: int) -> None:
    """By another projector, which may be handed records that were folded before."""
    tale = Tale(moves)
    at %= len(tale.records) + 1
    graph = MemoryGraph()
    before = Projector(graph, TOPIC_ID).apply(tale.records[:at])
    start = max(0, at - again)
    later = Projector(graph, TOPIC_ID)
    verdicts = [*before[:start], *later.apply(tale.records[start:])]
    assert outcome(later, graph, verdicts) == told(tale)


@on_disk
@given(streams(), some_cuts)
def test_a_graph_on_disk_ends_as_the_one_in_memory(moves: list[Move], cuts: list[int]) -> None:
    """Whatever happens in one batch or over two; in the end a limit is set, and then lifted."""
    tale = Tale([*moves, *LIMIT_AND_LIFT])
    cuts = [*cuts, len(tale.records) - 1]
    with tempfile.TemporaryDirectory() as folder:
        graph = CypherGraph.open(Path(folder) / "run.graph", ENGINE)
        try:
            assert folded(cut(tale.records, cuts), graph) == told(tale)
            projector = Projector(graph, TOPIC_ID)
            assert projector.recomputed_digest() == tale.projector.state_digest
            assert content_of(graph) == content_of(tale.graph)
        finally:
            graph.close()


@on_disk
@given(streams(), st.booleans())
def test_a_graph_that_is_copied_into_a_file_is_the_one_in_memory(moves: list[Move], copied: bool) -> None:
    """Whether its tables are small, and committed together, or COPY takes each."""
    tale = Tale(moves)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "run.graph"
        with patch.object(bulk, "ROWS_TO_COPY", 1 if copied else bulk.ROWS_TO_COPY):
            bulk.build_graph(file, ENGINE, cast(MemoryGraph, tale.graph))
        graph = CypherGraph.open(file, ENGINE)
        try:
            projector = Projector(graph, TOPIC_ID)
            assert outcome(projector, graph, projector.apply(tale.records)) == told(tale)
            assert projector.recomputed_digest() == projector.state_digest
        finally:
            graph.close()


@given(streams(), some_cuts)
def test_a_digest_kept_incrementally_is_that_of_the_rows(moves: list[Move], cuts: list[int]) -> None:
    tale = Tale(moves)
    projector = Projector(MemoryGraph(), TOPIC_ID)
    for batch in cut(tale.records, cuts):
        projector.apply(batch)
        assert projector.recomputed_digest() == projector.state_digest


@on_streams
def test_every_record_gets_exactly_one_verdict_and_keeps_it(moves: list[Move]) -> None:
    tale = Tale(moves)
    assert [verdict.offset for verdict in tale.verdicts] == list(range(len(tale.records)))
    for verdict in tale.verdicts:
        assert verdict.kind in KINDS
        assert verdict.reason == "" if verdict.kind == "valid" else verdict.reason in {"", *IN_WORDS}
        assert verdict.reason or verdict.kind in ("valid", "duplicate")
    assert tale.projector.apply(tale.records) == tale.verdicts  # read back, not folded again
    offsets = [key.id for key in tale.rows() if isinstance(key, NodeKey) and key.table == "Event"]
    assert sorted(offsets) == list(range(len(tale.records)))


@on_streams
def test_what_does_not_count_changes_nothing_but_its_own_verdict(moves: list[Move]) -> None:
    """Neither a node nor a relation, nor what it says of an earlier record; but it may take its id."""
    tale = Tale()
    before = tale.rows()
    for move in moves:
        verdict = tale.take(move)
        after = tale.rows()
        if verdict.kind != "valid":
            own = {NodeKey("Event", verdict.offset)}
            if verdict.kind == "void":
                own.add(NodeKey("Identity", verdict.event_id))
            assert after.keys() - before.keys() <= own, verdict
            assert {key: row for key, row in after.items() if key in before} == before, verdict
        before = after


@on_streams
def test_an_event_refused_for_what_it_is_leaves_its_id_free_and_one_refused_for_when_it_came_takes_it(
    moves: list[Move],
) -> None:
    """As the refusals that are worked out by hand say of each reason (support/refused_*.py)."""
    tale = Tale(moves)
    taken = {row["offset"] for key, row in tale.rows().items() if key[0] == "Identity"}
    for verdict in tale.verdicts:
        if verdict.kind == "void":
            by_hand = TAKES_ID.get(verdict.reason, set())
            assert len(by_hand) != 1 or (verdict.offset in taken) in by_hand, verdict
        else:
            assert (verdict.offset in taken) is (verdict.kind == "valid")


@given(streams(), st.integers(0, 2**32))
def test_every_event_twice_gives_the_same_content_and_a_duplicate_each(moves: list[Move], seed: int) -> None:
    """Copies come at any time after their originals; those of records that don't take their id, right after them."""
    tale = Tale(moves, addresses=False)
    taken = {row["offset"] for key, row in tale.rows().items() if key[0] == "Identity"}
    chance = random.Random(seed)
    twice = Tale()
    late: list[LogRecord] = []
    for record, verdict in zip(tale.records, tale.verdicts, strict=True):
        assert again(twice, record).kind == verdict.kind
        if record.offset in taken:
            late.append(record)
        else:
            assert again(twice, record).kind == verdict.kind
        while late and chance.random() < 0.5:
            assert again(twice, late.pop(chance.randrange(len(late)))).kind == "duplicate"
    for record in chance.sample(late, len(late)):
        assert again(twice, record).kind == "duplicate"
    assert content_of(twice.graph) == content_of(tale.graph)


def again(tale: Tale, record: LogRecord) -> Verdict:
    """Put a record at the end of another log."""
    return tale.append(replace(record, offset=len(tale.records)))


@on_streams
def test_an_event_id_counts_once(moves: list[Move]) -> None:
    """The first that takes it keeps it: the same bytes are its duplicate, others are refused."""
    tale = Tale(moves)
    valid = [verdict.event_id for verdict in tale.verdicts if verdict.kind == "valid"]
    assert len(valid) == len(set(valid))
    holders = {id: row["offset"] for (table, id, *_), row in tale.rows().items() if table == "Identity"}
    for record, verdict in zip(tale.records, tale.verdicts, strict=True):
        first = holders.get(verdict.event_id)
        if isinstance(first, int) and first < record.offset:
            same = tale.records[first].value == record.value
            assert (verdict.kind, verdict.reason) == (
                ("duplicate", tale.verdicts[first].reason) if same else ("void", "id_reused")
            )
        else:
            assert verdict.kind != "duplicate"
            assert verdict.reason != "id_reused"
