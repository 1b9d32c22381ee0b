from __future__ import annotations

import hashlib
import random
from dataclasses import replace
from typing import Any

import pytest

from forktrail_projectors.content_digest import content_digest
from forktrail_projectors.graph.declared_tables import BUILT_IN
from forktrail_projectors.graph.schema import STAMP_CHANGED, STAMP_CREATED, ColumnType, Content
from forktrail_projectors.state import EdgeKey, NodeKey, Row, Value
from forktrail_schemas import events
from forktrail_schemas.errors import Corruption
from forktrail_schemas.signatures import SigningKey
from support.declared import declared_tables
from support.history_stories import demo
from support.rows import edge, node
from support.story import OPERATOR, RUNNER, STRANGER, Story

OTHER: dict[ColumnType, tuple[Value, Value]] = {
    ColumnType.STRING: ("a", "b"),
    ColumnType.INT64: (1, 2),
    ColumnType.DOUBLE: (0.1, 0.2),
    ColumnType.BOOL: (False, True),
    ColumnType.STRINGS: (("a", "b"), ("a,b",)),
}
TABLES = declared_tables()
Rows = dict[NodeKey | EdgeKey, Row]


def contents() -> list[tuple[str, Content]]:
    return [(table.name, table.content) for table in BUILT_IN.nodes.values() if table.content is not None]


DATA = [(table, column) for table, content in contents() for column in content.data]
REFERENCES = [(table, column) for table, content in contents() for column in content.references]
LEFT_OUT = [
    (table, column)
    for table, content in contents()
    for column in content.left_out
    if content.only is None or column != content.only[0]
]
STAMPS = STAMP_CREATED.keys() | STAMP_CHANGED.keys()


def of(*rows: tuple[NodeKey | EdgeKey, Row]) -> str:
    return content_digest(rows)


def told(story: Story) -> str:
    return content_digest(story.graph.rows())


def row_of(table: str, **changes: Value) -> tuple[NodeKey, Row]:
    """A row with a value in every column that is no reference."""
    content = BUILT_IN.nodes[table].content
    assert content is not None
    columns = BUILT_IN.nodes[table].columns
    row = {name: None if name in content.references else OTHER[kind][0] for name, kind in columns.items()}
    if content.only is not None:
        row[content.only[0]] = content.only[1][0]
    return NodeKey(table, "a"), row | changes


# What is declared.


@pytest.mark.parametrize(("table", "content"), contents())
def test_every_column_is_data_a_reference_or_left_out(table: str, content: Content) -> None:
    """A new column has to be put in one of the three before this passes."""
    declared = [*content.data, *content.references, *content.left_out]
    assert sorted(declared) == sorted(BUILT_IN.nodes[table].columns)
    assert set(content.left_out) >= STAMPS
    assert all(BUILT_IN.nodes[target].content is not None for target in content.references.values())


def test_the_tables_without_content_are_the_logs_own_and_those_that_vouch_for_it() -> None:
    without = {table.name for table in BUILT_IN.nodes.values() if table.content is None}
    assert {"Event", "Identity", "Key"} <= without
    # Whoever adds one says here that logs which differ in it alone came to the same conclusions.
    assert without <= {
        *("Event", "Identity", "Match"),
        *("Key", "Schema"),
        *("Type", "Behavior", "BehaviorVersion", "Worker"),
        *("Policy", "Patch", "Frame", "FrameChange"),
    }


def test_relations_have_no_columns_but_their_stamps() -> None:
    """One that says more must be taken into the digest."""
    for table in BUILT_IN.edges.values():
        assert table.columns.keys() <= STAMP_CREATED.keys(), table.name


# What counts and what doesn't.


@pytest.mark.parametrize(("table", "column"), DATA)
def test_data_counts(table: str, column: str) -> None:
    kind = BUILT_IN.nodes[table].columns[column]
    content = BUILT_IN.nodes[table].content
    assert content is not None
    # Of a column that says which rows count, another value may leave out the row.
    only = content.only if content.only is not None and content.only[0] == column else None
    values = (*only[1], None) if only else (*OTHER[kind], None)
    digests = {of(row_of(table, **{column: value})) for value in values}
    assert len(digests) == len(values)


def test_what_is_not_finished_does_not_count_nor_do_relations_to_it() -> None:
    def told(execution: str, call: str) -> str:
        first, second = node("Execution", "e", status=execution), node("Call", "c", status=call)
        return of(first, second, edge("ASKED", first[0], second[0]))

    assert told("running", "pending") == told("running", "unknown") == of()
    done, answered = node("Execution", "e", status="completed"), node("Call", "c", status="answered")
    assert told("completed", "pending") == of(done)
    assert told("running", "answered") == of(answered)
    assert told("completed", "answered") != of(done, answered)


@pytest.mark.parametrize(("table", "column"), LEFT_OUT)
def test_ids_offsets_keys_and_signatures_do_not(table: str, column: str) -> None:
    kind = BUILT_IN.nodes[table].columns[column]
    assert of(row_of(table)) == of(row_of(table, **{column: OTHER[kind][1]})) == of(row_of(table, **{column: None}))


@pytest.mark.parametrize(("table", "column"), REFERENCES)
def test_a_reference_counts_by_what_it_leads_to_whatever_its_id(table: str, column: str) -> None:
    content = BUILT_IN.nodes[table].content
    assert content is not None
    target = content.references[column]
    target_content = BUILT_IN.nodes[target].content
    assert target_content is not None
    name = target_content.data[0]

    def leading_to(id: str, said: str) -> str:
        return of(row_of(table, **{column: id}), node(target, id, **{name: said}))

    assert leading_to("x-1", "one") == leading_to("x-2", "one")
    assert leading_to("x-1", "one") != leading_to("x-1", "two")
    assert leading_to("x-1", "one") != of(row_of(table, **{column: None}), node(target, "x-1", **{name: "one"}))


def test_a_reference_counts_by_its_column() -> None:
    case, review = node("Case", "case-1"), node("Observation", "observation-1")
    one = of(case, review, node("Finding", "f", case_id="case-1"))
    assert one != of(case, review, node("Finding", "f", observation="observation-1"))


def test_a_relation_counts_by_its_table_and_its_ends() -> None:
    nodes = [node("TestCase", "t"), node("Capability", "one"), node("Capability", "two")]

    def related(*relations: tuple[str, str]) -> str:
        test = NodeKey("TestCase", "t")
        return of(*nodes, *(edge(table, test, NodeKey("Capability", capability)) for table, capability in relations))

    told = [
        related(),
        related(("REQUIRES", "one")),
        related(("REQUIRES", "two")),
        related(("WOULD_ENABLE", "one")),
        related(("REQUIRES", "one"), ("REQUIRES", "two")),
        related(("REQUIRES", "one"), ("WOULD_ENABLE", "two")),
    ]
    assert len(set(told)) == len(told)
    stamped = edge("REQUIRES", NodeKey("TestCase", "t"), NodeKey("Capability", "one"), created_offset=9)
    assert of(*nodes, stamped) == told[1]


def test_a_row_more_counts_even_if_it_reads_like_another() -> None:
    one, two = node("Report", "report-1", summary="s"), node("Report", "report-2", summary="s")
    assert len({of(), of(one), of(one, two)}) == 3
    assert of(one) == of(two)


def test_an_asset_alone_worked_by_hand() -> None:
    """Its data, hashed; twice more with nothing around it; then the digest of all there is."""
    sha256 = hashlib.sha256
    own = sha256(b'["Asset","gateway"]').digest()
    refined = sha256(sha256(own).digest()).digest()
    assert of(node("Asset", "gateway", created_offset=3)) == sha256(refined).hexdigest()


def test_a_relation_worked_by_hand() -> None:
    def sha256(*parts: bytes) -> bytes:
        return hashlib.sha256(b"".join(parts)).digest()

    test = sha256(b'["TestCase","t",null,null,null,null,null]')
    asset = sha256(b'["Asset","a"]')
    for _ in range(2):
        test, asset = sha256(test, b">\x07TARGETS", asset), sha256(asset, b"<\x07TARGETS", test)
    expected = sha256(*sorted([test, asset, sha256(b"\x07TARGETS", test, asset)])).hex()
    targets = edge("TARGETS", NodeKey("TestCase", "t"), NodeKey("Asset", "a"))
    assert of(node("TestCase", "t"), node("Asset", "a"), targets) == expected


def test_a_node_that_is_not_there_is_corruption() -> None:
    with pytest.raises(Corruption):
        of(node("Report", "r", case_id="case-1"))
    with pytest.raises(Corruption):
        of(node("Asset", "a"), edge("TARGETS", NodeKey("TestCase", "t"), NodeKey("Asset", "a")))


# What a run declares.


def objects(*rows: tuple[NodeKey | EdgeKey, Row]) -> str:
    return content_digest(rows, TABLES)


def test_an_object_counts_by_its_data_whatever_its_id_and_stamps() -> None:
    said = objects(node("Company", "c-1", text="x", weight=0.1, version=1, retired=False))
    assert said == objects(node("Company", "c-2", text="x", weight=0.1, version=1, retired=False, created_offset=9))
    other: dict[str, Value] = {"text": "y", "weight": 0.2, "version": 2, "retired": True, "tags": ("t",), "count": 1}
    for column, value in other.items():
        row: dict[str, Value] = {"text": "x", "weight": 0.1, "version": 1, "retired": False, column: value}
        assert objects(node("Company", "c-1", **row)) != said, column


def test_an_object_counts_by_what_its_references_lead_to() -> None:
    def asked(id: str, text: str) -> str:
        return objects(node("Company", id, text=text), node("Question", "q", about=id))

    assert asked("c-1", "one") == asked("c-2", "one")
    assert asked("c-1", "one") != asked("c-1", "two")


def test_a_declared_relation_counts_by_its_ends_and_its_data() -> None:
    one, two = node("Company", "c-1", text="one"), node("Company", "c-2", text="two")

    def cites(source: NodeKey, target: NodeKey, **values: Value) -> str:
        return objects(one, two, edge("CITES", source, target, **values))

    assert cites(one[0], two[0]) == cites(one[0], two[0], created_event="e", created_offset=9)
    assert len({objects(one, two), cites(one[0], two[0]), cites(two[0], one[0])}) == 3
    data: dict[str, Value] = {"weight": 0.5, "text": "t", "open": False, "tags": (), "count": 0}
    for column, value in data.items():
        assert cites(one[0], two[0], **{column: value}) != cites(one[0], two[0]), column


def two_attempts(reviews: tuple[str, str]) -> str:
    """Two attempts that read the same but for why they were approved and what their review notes."""
    rows: list[tuple[NodeKey | EdgeKey, Row]] = []
    for number, (reason, note) in enumerate(zip(("first", "second"), reviews, strict=True)):
        case, seen, review = f"case-{number}", f"observation-{number}", f"review-{number}"
        approval = f"approval-{number}"
        rows += [
            node("Case", case, test="t", approval=approval, observation=seen),
            node("Approval", approval, case_id=case, reason=reason),
            node("Observation", seen, case_id=case, outcome="inconclusive"),
            node("Review", review, case_id=case, observation=seen, note=note),
            edge("DECIDES", NodeKey("Approval", approval), NodeKey("Case", case)),
            edge("OBSERVES", NodeKey("Observation", seen), NodeKey("Case", case)),
            edge("REVIEWS", NodeKey("Review", review), NodeKey("Observation", seen)),
        ]
    return of(*rows)


def test_two_attempts_that_read_alike_cannot_swap_their_reviews() -> None:
    assert two_attempts(("seen", "not seen")) != two_attempts(("not seen", "seen"))


# Whole logs.


def demo_told() -> Story:
    story = Story()
    demo(story)
    return story


def test_the_order_of_rows_makes_no_difference() -> None:
    rows = list(demo_told().graph.rows())
    expected = content_digest(rows)
    for seed in range(3):
        random.Random(seed).shuffle(rows)
        assert content_digest(rows) == expected


def test_other_event_ids_times_run_and_order_of_the_same_work_make_no_difference() -> None:
    def told_in(order: list[str], run: str, before: int) -> str:
        story = Story(run)
        for _ in range(before):  # moments pass: later events have other ids and times
            story.event(events.GoalSet, text="unsaid")
        story.open("look")
        for test in order:
            story.register(test, enables=["way"])
        for test in order:
            story.settle(story.report(test))
        return told(story)

    assert told_in(["a", "b"], "one", 0) == told_in(["b", "a"], "another", 7)


def test_another_key_of_the_same_person_makes_no_difference() -> None:
    def approved(key: SigningKey) -> str:
        story = Story()
        story.open()
        story.register("t")
        case = story.report("t")
        if key is not OPERATOR:
            assert story.add_key(key, "operator", holder="olga").valid
        fields: dict[str, Any] = {"subject": {"kind": "case", "id": case}, "decision": "approve", "reason": ""}
        assert story.tell(story.event(events.ApprovalDecided, "olga", **fields), key).valid
        return told(story)

    assert approved(OPERATOR) == approved(STRANGER)


def settled(decision: str) -> str:
    story = Story()
    story.open()
    story.register("root", enables=["way"])
    case = story.report("root")
    assert story.decide(case).valid
    assert story.start(case).valid
    assert story.tell(story.observation(case, "reproduced"), RUNNER).valid
    assert story.review(case, decision)[1].valid
    return told(story)


def test_a_refused_review_makes_another_digest() -> None:
    assert settled("accept") != settled("reject")
    assert settled("accept") == settled("accept")


def test_every_event_twice_gives_the_same_digest_and_a_duplicate_each() -> None:
    story = demo_told()
    twice = Story()
    for record in story.records:
        assert twice.append(replace(record, offset=len(twice.records))).kind == "valid"
        assert twice.append(replace(record, offset=len(twice.records))).kind == "duplicate"
    assert told(twice) == told(story)
    assert twice.projector.state_digest != story.projector.state_digest


def test_the_end_of_any_prefix_but_of_keys_shows() -> None:
    """Each event of the demo leaves a trace in the digest, but for those that only let a key sign."""
    story, digests = Story(), []
    for record in demo_told().records:
        story.append(record)
        digests.append(told(story))
    assert len(set(digests)) == len(digests) - 3  # three keys are registered
