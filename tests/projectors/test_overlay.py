from __future__ import annotations

from collections.abc import Collection

import pytest

from forktrail_projectors.graph.declared_tables import BUILT_IN
from forktrail_projectors.state import (
    EdgeKey,
    EdgesKey,
    NodeChange,
    NodeId,
    NodeKey,
    Overlay,
    Row,
    edge_order,
)

CASE, TEST = NodeKey("Case", "c"), NodeKey("TestCase", "t")
ATTEMPT = EdgeKey("ATTEMPTS", CASE, TEST)
AT_TEST, FROM_CASE = EdgesKey("ATTEMPTS", "target", TEST), EdgesKey("ATTEMPTS", "source", CASE)


class Source:
    """Rows that count how often they were asked for."""

    def __init__(self, nodes: dict[NodeKey, Row] | None = None, edges: Collection[EdgeKey] = ()) -> None:
        self._nodes = nodes or {}
        self._edges = edges
        self.asked: list[NodeKey | EdgesKey] = []

    tables = BUILT_IN

    def node(self, table: str, id: NodeId) -> Row | None:
        return self.nodes([NodeKey(table, id)]).get(NodeKey(table, id))

    def nodes(self, keys: Collection[NodeKey]) -> dict[NodeKey, Row]:
        self.asked += keys
        return {key: self._nodes[key] for key in keys if key in self._nodes}

    def edges(self, keys: Collection[EdgesKey]) -> dict[EdgesKey, tuple[EdgeKey, ...]]:
        self.asked += keys
        return {key: tuple(edge for edge in self._edges if _at(edge, key)) for key in keys}

    def edge(self, key: EdgeKey) -> Row | None:
        return {} if key in self._edges else None


def _at(edge: EdgeKey, key: EdgesKey) -> bool:
    return edge.table == key.table and (edge.source if key.end == "source" else edge.target) == key.node


def test_what_was_not_prefetched_is_read_from_the_source_once() -> None:
    source = Source({CASE: {"id": "c"}}, [ATTEMPT])
    overlay = Overlay(source)
    for _ in range(2):
        assert overlay.node(*CASE) == {"id": "c"}
        assert overlay.node(*TEST) is None
        assert overlay.neighbours("ATTEMPTS", "target", TEST) == (CASE,)
    assert source.asked == [CASE, TEST, AT_TEST]


def test_a_changed_node_knows_what_the_source_held() -> None:
    overlay = Overlay(Source({CASE: {"id": "c"}}))
    overlay.put_node(CASE, {"id": "c", "status": "proposed"})
    assert overlay.changes.nodes == {CASE: NodeChange({"id": "c"}, {"id": "c", "status": "proposed"})}


def test_prefetched_rows_and_relations_are_the_sources() -> None:
    overlay = Overlay(Source({CASE: {"id": "c"}}, [ATTEMPT]))
    overlay.prefetch([CASE, TEST, AT_TEST])
    assert overlay.node(*CASE) == {"id": "c"}
    assert overlay.node(*TEST) is None
    assert overlay.neighbours("ATTEMPTS", "target", TEST) == (CASE,)


def test_a_key_is_asked_for_once() -> None:
    source = Source()
    overlay = Overlay(source)
    overlay.prefetch([CASE, CASE, AT_TEST, AT_TEST])
    overlay.prefetch([CASE, AT_TEST])
    assert source.asked == [CASE, AT_TEST]


def test_prefetching_again_does_not_undo_a_change() -> None:
    overlay = Overlay(Source({CASE: {"id": "c", "status": "proposed"}}))
    overlay.prefetch([CASE])
    overlay.put_node(CASE, {"id": "c", "status": "approved"})
    overlay.prefetch([CASE])
    assert overlay.node(*CASE) == {"id": "c", "status": "approved"}


def test_changes_of_a_key_are_coalesced_from_first_to_last() -> None:
    overlay = Overlay(Source({CASE: {"status": "1"}}))
    overlay.prefetch([CASE, TEST])
    for key, status in ((CASE, "2"), (TEST, "a"), (CASE, "3"), (TEST, "b")):
        overlay.put_node(key, {"status": status})
    assert overlay.changes.nodes == {
        CASE: NodeChange({"status": "1"}, {"status": "3"}),
        TEST: NodeChange(None, {"status": "b"}),
    }


@pytest.mark.parametrize("prefetched_first", [True, False])
def test_a_new_relation_is_seen_at_both_ends_whenever_they_were_prefetched(prefetched_first: bool) -> None:
    older = EdgeKey("ATTEMPTS", NodeKey("Case", "b"), TEST)
    overlay = Overlay(Source({}, [older]))
    if prefetched_first:
        overlay.prefetch([AT_TEST, FROM_CASE])
    overlay.put_edge(*ATTEMPT, {})
    overlay.prefetch([AT_TEST, FROM_CASE])
    assert overlay.neighbours("ATTEMPTS", "target", TEST) == (older.source, CASE)
    assert overlay.neighbours("ATTEMPTS", "source", CASE) == (TEST,)


def test_a_relation_is_seen_only_in_its_table_and_at_its_end() -> None:
    overlay = Overlay(Source())
    keys = [EdgesKey("ATTEMPTS", "source", TEST), EdgesKey("ATTEMPTS", "target", CASE), EdgesKey("X", "target", TEST)]
    overlay.prefetch(keys[:2])
    overlay.put_edge(*ATTEMPT, {})
    overlay.prefetch(keys)
    assert [overlay.neighbours(*key) for key in keys] == [(), (), ()]


def test_a_relation_made_twice_is_one_as_it_was_first() -> None:
    overlay = Overlay(Source())
    overlay.put_edge(*ATTEMPT, {"created_offset": 1})
    overlay.put_edge(*ATTEMPT, {"created_offset": 2})
    assert overlay.changes.edges == {ATTEMPT: {"created_offset": 1}}


def test_relations_come_sorted_whatever_the_order_they_were_made_in() -> None:
    offsets = [NodeKey("Event", offset) for offset in (2, 10, 1)]
    edges = [EdgeKey("PRODUCED", event, CASE) for event in offsets]
    overlay = Overlay(Source({}, edges[:1]))
    overlay.prefetch([EdgesKey("PRODUCED", "target", CASE)])
    for edge in edges[1:]:
        overlay.put_edge(*edge, {})
    assert [event.id for event in overlay.neighbours("PRODUCED", "target", CASE)] == [1, 2, 10]
    assert sorted(edges, key=edge_order) == [edges[2], edges[0], edges[1]]


def test_a_flush_forgets_the_changes_and_keeps_the_rows() -> None:
    overlay = Overlay(Source())
    overlay.prefetch([CASE])
    overlay.put_node(CASE, {"status": "1"})
    overlay.flushed()
    assert not overlay.changes
    overlay.put_node(CASE, {"status": "2"})
    assert overlay.changes.nodes == {CASE: NodeChange({"status": "1"}, {"status": "2"})}


def test_a_relation_that_is_removed_is_gone_from_both_its_ends_before_and_after_they_are_read() -> None:
    other = EdgeKey("ATTEMPTS", NodeKey("Case", "d"), TEST)
    overlay = Overlay(Source({}, [ATTEMPT, other]))
    assert overlay.neighbours("ATTEMPTS", "target", TEST) == (CASE, other.source)
    overlay.remove_edge(ATTEMPT, {})
    assert overlay.neighbours("ATTEMPTS", "target", TEST) == (other.source,)
    assert overlay.neighbours("ATTEMPTS", "source", CASE) == ()
    assert overlay.edge(ATTEMPT) is None
    assert overlay.edge(other) == {}


def test_a_relation_made_and_removed_in_one_batch_leaves_no_change() -> None:
    overlay = Overlay(Source())
    overlay.put_edge(*ATTEMPT, {"created_offset": 3})
    assert overlay.edge(ATTEMPT) == {"created_offset": 3}
    overlay.remove_edge(ATTEMPT, {"created_offset": 3})
    assert overlay.edge(ATTEMPT) is None
    assert not overlay.changes


def test_a_relation_removed_and_made_anew_is_a_change_of_its_row() -> None:
    overlay = Overlay(Source({}, [ATTEMPT]))
    overlay.remove_edge(ATTEMPT, {"created_offset": 1})
    overlay.put_edge(*ATTEMPT, {"created_offset": 9})
    tables, ends = ("ATTEMPTS", "Case", "TestCase"), ("c", "t")
    assert overlay.changes.parted == {tables: {ends: {"created_offset": 1}}}
    assert overlay.changes.joined == {tables: {ends: {"created_offset": 9}}}
    assert overlay.edge(ATTEMPT) == {"created_offset": 9}
    overlay.remove_edge(ATTEMPT, {"created_offset": 9})
    assert overlay.changes.parted == {tables: {ends: {"created_offset": 1}}}
    assert not overlay.changes.joined
