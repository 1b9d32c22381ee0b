from __future__ import annotations

import pytest

from forktrail_projectors.graph.memory import MemoryGraph
from forktrail_projectors.projector import Projector
from forktrail_projectors.row_diff import DifferenceGroup, RowDifference, grouped, row_differences
from forktrail_projectors.state import EdgeKey, NodeKey, Row, Value
from support.history_stories import demo
from support.story import TOPIC_ID, Story

Rows = dict[NodeKey | EdgeKey, Row]
A, B = NodeKey("Asset", "a"), NodeKey("Asset", "b")
TARGETS = EdgeKey("TARGETS", NodeKey("TestCase", "t"), A)


def differences(before: Rows, after: Rows) -> list[RowDifference]:
    return list(row_differences(before.items(), after.items()))


def test_equal_rows_do_not_differ_whatever_their_order() -> None:
    story = Story()
    demo(story)
    other = MemoryGraph()
    Projector(other, TOPIC_ID).apply(story.records)
    assert list(row_differences(story.graph.rows(), reversed(list(other.rows())))) == []


def test_a_row_is_added_removed_or_changed_in_named_columns() -> None:
    before: Rows = {A: {"id": "a", "x": 1, "y": 2, "z": 3}, B: {"id": "b"}}
    after: Rows = {A: {"id": "a", "x": 9, "y": 2, "z": None}, TARGETS: {"created_offset": 1}}
    assert differences(before, after) == [
        RowDifference(A, "changed", ("x", "z"), before[A], after[A]),
        RowDifference(TARGETS, "added", (), None, after[TARGETS]),
        RowDifference(B, "removed", (), before[B], None),
    ]


@pytest.mark.parametrize(
    ("old", "new"), [({}, {"details": ""}), ({"details": "d"}, {}), ({"details": None}, {"details": 0})]
)
def test_a_column_that_one_table_lacks_differs_where_the_other_says_something(old: Row, new: Row) -> None:
    (difference,) = differences({A: old}, {A: new})
    assert difference.columns == ("details",)


def test_a_column_that_one_table_lacks_and_the_other_leaves_null_is_no_difference() -> None:
    assert differences({A: {"id": "a"}}, {A: {"id": "a", "details": None}}) == []
    assert differences({A: {"id": "a", "gone": None}}, {A: {"id": "a"}}) == []


@pytest.mark.parametrize(("one", "another"), [(1, True), (0, False), ("1", 1), ((), None), (("a",), "a"), ("", None)])
def test_values_that_look_alike_differ(one: Value, another: Value) -> None:
    assert len(differences({A: {"x": one}}, {A: {"x": another}})) == 1


def test_groups_count_and_show_the_first_few() -> None:
    before: Rows = {NodeKey("Goal", f"g{number}"): {"text": "old"} for number in range(5)}
    after: Rows = {key: {"text": "new"} for key in before}
    after[NodeKey("Goal", "g9")] = {"text": "new"}
    after[TARGETS] = {}
    assert grouped(differences(before, after)) == [
        DifferenceGroup("Goal", "added", (), 1, ("g9",)),
        DifferenceGroup("Goal", "changed", ("text",), 5, ("g0", "g1", "g2")),
        DifferenceGroup("TARGETS", "added", (), 1, ("t -> a",)),
    ]
