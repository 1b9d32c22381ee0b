from __future__ import annotations

import json

import pytest

from forktrail_projectors.graph.memory import MemoryGraph
from forktrail_projectors.projector import Projector
from forktrail_projectors.state import EdgeKey, NodeKey
from forktrail_schemas import events
from support.objects import (
    CLAIM,
    COMPANY,
    NUMBER,
    SUPPORTS,
    TEXT,
    Properties,
    creation,
    declaration,
    ends,
    id_of,
    open_with_types,
    patch,
    retirement,
    schema_text,
    tell,
    tell_all,
)
from support.refusals import Refusal, check
from support.refused_graph import GRAPH
from support.story import OPERATOR, TOPIC_ID, Story

COMPANY_0, CLAIM_0, CLAIM_1 = (
    NodeKey(name, id_of(name, number)) for name, number in (("Company", 0), ("Claim", 0), ("Claim", 1))
)


@pytest.mark.parametrize("refusal", GRAPH, ids=lambda refusal: str(refusal.name))
def test_a_refused_change_changes_nothing_and_takes_its_id_only_where_it_came_at_the_wrong_time(
    refusal: Refusal,
) -> None:
    check(refusal)


@pytest.fixture
def story() -> Story:
    """The run of `tell_all`."""
    told = Story()
    tell_all(told)
    return told


def settled(story: Story) -> None:
    """The digest that was kept is that of the rows, and one batch of all records comes to the same."""
    assert story.projector.recomputed_digest() == story.projector.state_digest
    at_once = Projector(MemoryGraph(), TOPIC_ID)
    at_once.apply(story.records)
    assert at_once.state_digest == story.projector.state_digest


def edges(story: Story, table: str) -> set[tuple[NodeKey, NodeKey]]:
    return {(key.source, key.target) for key in story.rows() if isinstance(key, EdgeKey) and key.table == table}


def test_a_declaration_is_a_row_and_makes_the_tables(story: Story) -> None:
    row = story.row("Type", "Claim")
    assert (row["kind"], row["schema"]) == ("object", CLAIM["json_schema"])
    assert (row["references"], row["personal"]) == (("about=Company", "follows=Claim"), ("text",))
    assert story.row("Type", "SUPPORTS")["sources"] == ("Company", "Claim")
    assert {"Company", "Claim"} <= story.graph.tables.nodes.keys()
    assert {"ABOUT", "FOLLOWS", "SUPPORTS"} <= story.graph.tables.edges.keys()
    settled(story)


def test_only_the_admin_declares() -> None:
    story = Story()
    story.open()
    assert story.signed(events.TypeDeclared, OPERATOR, **COMPANY)[1].reason == "role_missing"
    assert story.append(declaration(story, COMPANY)).valid


def test_two_types_may_refer_by_the_same_name_and_a_reference_may_name_its_own_type() -> None:
    story = Story()
    open_with_types(story)
    question = {"name": "Question", "kind": "object", "json_schema": schema_text({"about": TEXT})}
    assert story.append(
        declaration(story, question, references=[{"property": "about", "object_type": "Question"}])
    ).valid
    assert tell(story, events.ObjectCreated, creation("Question", 0)).valid
    assert tell(story, events.ObjectCreated, creation("Question", 1, about=id_of("Question", 0))).valid
    assert edges(story, "ABOUT") == {
        (NodeKey("Question", id_of("Question", 1)), NodeKey("Question", id_of("Question", 0)))
    }
    settled(story)


def test_an_object_is_a_row_with_its_stamps_and_the_relations_of_its_references(story: Story) -> None:
    made = 8  # after the opening's four records, three types and a company
    row = story.row(*CLAIM_0)
    assert row == {
        "id": CLAIM_0.id,
        "text": "it grows",
        "weight": None,
        "about": COMPANY_0.id,
        "follows": None,
        "version": 1,
        "retired": False,
        "created_event": story.row("Event", made)["id"],
        "created_offset": made,
        "changed_event": story.row("Event", made)["id"],
        "changed_offset": made,
    }
    assert edges(story, "ABOUT") == {(CLAIM_0, COMPANY_0), (CLAIM_1, COMPANY_0)}
    assert story.related("PRODUCED", NodeKey("Event", made)) == [CLAIM_0]


def test_each_kind_of_property_has_its_column() -> None:
    story = Story()
    story.open()
    properties: Properties = {
        "text": TEXT,
        "real": NUMBER,
        "integer": {"type": "integer"},
        "flag": {"type": "boolean"},
        "texts": {"type": "array", "items": TEXT},
        "rest": {"type": "object"},
        "maybe": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
    }
    assert story.append(declaration(story, COMPANY, name="Thing", json_schema=schema_text(properties))).valid
    data = {"text": "é", "real": 2, "integer": 3.0, "flag": True, "texts": ["b", "a"], "rest": {"b": 1, "a": [2.0]}}
    assert tell(story, events.ObjectCreated, creation("Thing", 0, **data, maybe=None)).valid
    row = story.row("Thing", id_of("Thing", 0))
    assert {name: row[name] for name in properties} == {
        **data,
        "texts": ("b", "a"),
        "rest": '{"a":[2],"b":1}',  # RFC 8785 writes 2.0 as 2
        "maybe": None,
    }
    assert [type(row[name]) for name in ("real", "integer")] == [float, int]
    settled(story)


def test_a_patch_changes_what_it_names_and_counts(story: Story) -> None:
    assert tell(story, events.ObjectPatched, patch("Company", 0, expected_version=1, founded=1999)).valid
    assert tell(story, events.ObjectPatched, patch("Company", 0, expected_version=2, name="Acme Ltd")).valid
    row = story.row(*COMPANY_0)
    assert (row["name"], row["founded"], row["version"]) == ("Acme Ltd", 1999, 3)
    assert tell(story, events.ObjectPatched, patch("Company", 0, founded=None)).valid
    row = story.row(*COMPANY_0)
    assert (row["name"], row["founded"], row["version"]) == ("Acme Ltd", None, 4)
    settled(story)


def test_a_patched_reference_takes_its_relation_along(story: Story) -> None:
    assert tell(story, events.ObjectCreated, creation("Company", 1, name="Other")).valid
    other = NodeKey("Company", id_of("Company", 1))
    assert tell(story, events.ObjectPatched, patch("Claim", 0, about=other.id, follows=CLAIM_1.id)).valid
    assert edges(story, "ABOUT") == {(CLAIM_0, other), (CLAIM_1, COMPANY_0)}
    assert edges(story, "FOLLOWS") == {(CLAIM_0, CLAIM_1)}
    assert tell(story, events.ObjectPatched, patch("Claim", 0, about=other.id, text="again")).valid
    assert edges(story, "ABOUT") == {(CLAIM_0, other), (CLAIM_1, COMPANY_0)}
    assert tell(story, events.ObjectPatched, patch("Claim", 0, about=None)).valid
    assert edges(story, "ABOUT") == {(CLAIM_1, COMPANY_0)}
    assert story.row(*CLAIM_0)["about"] is None
    settled(story)


def test_a_retired_object_keeps_its_row_and_loses_its_relations_of_declared_types(story: Story) -> None:
    assert tell(story, events.ObjectPatched, patch("Claim", 1, follows=CLAIM_1.id)).valid  # itself
    produced = edges(story, "PRODUCED")
    assert tell(story, events.ObjectRetired, retirement("Claim", 1)).valid
    row = story.row(*CLAIM_1)
    assert (row["retired"], row["version"], row["text"]) == (True, 3, "it hires")
    assert [edges(story, table) for table in ("SUPPORTS", "FOLLOWS", "ABOUT")] == [set(), set(), {(CLAIM_0, COMPANY_0)}]
    assert edges(story, "PRODUCED") == produced
    settled(story)


def test_what_referred_to_a_retired_object_keeps_its_id_and_can_refer_to_another(story: Story) -> None:
    assert tell(story, events.ObjectRetired, retirement("Company", 0)).valid
    assert story.row(*CLAIM_0)["about"] == COMPANY_0.id
    assert edges(story, "ABOUT") == set()
    assert tell(story, events.ObjectPatched, patch("Claim", 0, text="it shrinks")).valid
    assert tell(story, events.ObjectCreated, creation("Company", 1, name="Other")).valid
    assert tell(story, events.ObjectPatched, patch("Claim", 0, about=id_of("Company", 1))).valid
    assert edges(story, "ABOUT") == {(CLAIM_0, NodeKey("Company", id_of("Company", 1)))}
    settled(story)


def test_a_relation_has_its_data_ends_and_can_be_made_again(story: Story) -> None:
    key = EdgeKey("SUPPORTS", CLAIM_1, CLAIM_0)
    assert story.rows()[key]["weight"] == 0.5
    joined = ends(("Claim", 1), ("Claim", 0))
    assert tell(story, events.RelationRetired, {**joined, "reason": ""}).valid
    assert key not in story.rows()
    assert tell(story, events.RelationCreated, {**joined, "data": "{}"}).valid
    assert story.rows()[key]["weight"] is None
    assert story.rows()[key]["created_offset"] == len(story.records) - 1
    settled(story)


def test_a_type_can_be_used_by_the_next_record_of_the_same_batch(story: Story) -> None:
    """`settled` folds all records in one batch; here is what it then holds."""
    graph = MemoryGraph()
    verdicts = Projector(graph, TOPIC_ID).apply(story.records)
    assert all(verdict.valid for verdict in verdicts)
    assert dict(graph.rows()) == story.rows()


def test_properties_may_be_called_as_anything_in_the_code(story: Story) -> None:
    """Names that a function of ours has for its own arguments."""
    names = ("self", "table", "source", "target", "key", "row", "data", "event", "values", "kind", "offset", "label")
    schema = schema_text(dict.fromkeys(names, TEXT))
    assert story.append(declaration(story, COMPANY, name="Odd", json_schema=schema)).valid
    data = {name: name.upper() for name in names}
    assert tell(story, events.ObjectCreated, creation("Odd", 0, **{"source": "x"})).valid
    fields = {**creation("Odd", 0), "data": json.dumps(data), "expected_version": None}
    assert tell(story, events.ObjectPatched, fields).valid
    row = story.row("Odd", id_of("Odd", 0))
    assert {name: row[name] for name in names} == data
    relation = {**SUPPORTS, "name": "ODDLY", "json_schema": schema}
    assert story.append(declaration(story, relation)).valid
    joined = ends(("Claim", 0), ("Claim", 1), "ODDLY")
    assert tell(story, events.RelationCreated, {**joined, "data": json.dumps(data)}).valid
    row = story.rows()[EdgeKey("ODDLY", CLAIM_0, CLAIM_1)]
    assert {name: row[name] for name in names} == data
