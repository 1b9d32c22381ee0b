"""Every way in which a rule of declared types refuses an event."""

from __future__ import annotations

from typing import Any

from forktrail_projectors.record import LogRecord
from forktrail_schemas import events
from support.objects import (
    CLAIM,
    COMPANY,
    SUPPORTS,
    TEXT,
    creation,
    declaration,
    ends,
    id_of,
    open_with_types,
    patch,
    retirement,
    said,
    schema_text,
    tell,
    tell_all,
)
from support.refusals import Refusal, case
from support.story import Story

GRAPH: list[Refusal] = []


@case(GRAPH, "bad_type", takes_id=False)
def a_schema_with_a_word_that_declared_types_lack(story: Story) -> LogRecord:
    story.open()
    return declaration(story, COMPANY, json_schema=schema_text({"name": {"type": "string", "pattern": "^a"}}))


@case(GRAPH, "bad_type", takes_id=False)
def a_schema_that_is_no_object(story: Story) -> LogRecord:
    story.open()
    return declaration(story, COMPANY, json_schema="[]")


@case(GRAPH, "bad_type", takes_id=False)
def an_object_type_with_the_name_of_none(story: Story) -> LogRecord:
    story.open()
    return declaration(story, COMPANY, name="company")


@case(GRAPH, "bad_type", takes_id=False)
def a_relation_type_with_the_name_of_an_object_type(story: Story) -> LogRecord:
    story.open()
    return declaration(story, SUPPORTS, name="Supports")


@case(GRAPH, "bad_type", takes_id=False)
def an_object_type_that_joins_something(story: Story) -> LogRecord:
    story.open()
    return declaration(story, COMPANY, sources=["Company"])


@case(GRAPH, "bad_type", takes_id=False)
def a_relation_type_with_a_reference(story: Story) -> LogRecord:
    open_with_types(story)
    return declaration(story, SUPPORTS, name="DOUBTS", references=CLAIM["references"])


@case(GRAPH, "bad_type", takes_id=False)
def a_relation_type_that_joins_nothing(story: Story) -> LogRecord:
    open_with_types(story)
    return declaration(story, SUPPORTS, name="DOUBTS", targets=[])


@case(GRAPH, "bad_type", takes_id=False)
def a_relation_type_that_names_a_target_twice(story: Story) -> LogRecord:
    open_with_types(story)
    return declaration(story, SUPPORTS, name="DOUBTS", targets=["Claim", "Claim"])


@case(GRAPH, "bad_type", takes_id=False)
def a_relation_type_of_too_many_pairs(story: Story) -> LogRecord:
    story.open()
    names = [f"T{number}" for number in range(13)]
    return declaration(story, SUPPORTS, sources=names, targets=names[:5])


@case(GRAPH, "bad_type", takes_id=False)
def a_property_with_two_references(story: Story) -> LogRecord:
    story.open()
    return declaration(story, CLAIM, references=[{"property": "about", "object_type": "Claim"}] * 2)


@case(GRAPH, "bad_type", takes_id=False)
def a_reference_that_is_no_property(story: Story) -> LogRecord:
    story.open()
    return declaration(story, CLAIM, references=[{"property": "of", "object_type": "Claim"}])


@case(GRAPH, "bad_type", takes_id=False)
def a_reference_that_is_a_number(story: Story) -> LogRecord:
    story.open()
    return declaration(story, CLAIM, references=[{"property": "weight", "object_type": "Claim"}])


@case(GRAPH, "bad_type", takes_id=False)
def a_personal_property_that_is_none(story: Story) -> LogRecord:
    story.open()
    return declaration(story, COMPANY, personal=["phone"])


@case(GRAPH, "bad_type", takes_id=False)
def a_property_that_every_object_has(story: Story) -> LogRecord:
    story.open()
    return declaration(story, COMPANY, json_schema=schema_text({"version": TEXT}))


@case(GRAPH, "type_exists", takes_id=True)
def a_type_declared_again(story: Story) -> LogRecord:
    open_with_types(story)
    return declaration(story, COMPANY)


@case(GRAPH, "type_exists", takes_id=True)
def a_type_with_the_name_of_another_in_other_letters(story: Story) -> LogRecord:
    open_with_types(story)
    return declaration(story, COMPANY, name="COMPANY")


@case(GRAPH, "type_exists", takes_id=True)
def a_type_with_the_name_of_a_built_in_table(story: Story) -> LogRecord:
    story.open()
    return declaration(story, COMPANY, name="TESTCASE")


@case(GRAPH, "type_exists", takes_id=True)
def a_type_with_the_name_of_the_engines_own_table(story: Story) -> LogRecord:
    story.open()
    return declaration(story, COMPANY, name="Cursor")


@case(GRAPH, "type_exists", takes_id=True)
def a_relation_type_with_the_name_that_a_reference_makes(story: Story) -> LogRecord:
    open_with_types(story)
    return declaration(story, SUPPORTS, name="ABOUT")


@case(GRAPH, "type_exists", takes_id=True)
def a_reference_whose_relation_is_declared(story: Story) -> LogRecord:
    open_with_types(story)
    fields: dict[str, Any] = {"name": "Doubt", "json_schema": schema_text({"supports": TEXT})}
    return declaration(story, COMPANY, **fields, references=[{"property": "supports", "object_type": "Claim"}])


@case(GRAPH, "type_exists", takes_id=True)
def a_reference_called_as_its_own_type(story: Story) -> LogRecord:
    open_with_types(story)
    fields: dict[str, Any] = {"name": "Doubt", "json_schema": schema_text({"doubt": TEXT})}
    return declaration(story, COMPANY, **fields, references=[{"property": "doubt", "object_type": "Claim"}])


@case(GRAPH, "unknown_type", takes_id=True)
def a_reference_to_a_type_that_is_declared_later(story: Story) -> LogRecord:
    story.open()
    return declaration(story, CLAIM)


@case(GRAPH, "unknown_type", takes_id=True)
def a_relation_type_of_types_that_are_not_declared(story: Story) -> LogRecord:
    story.open()
    return declaration(story, SUPPORTS)


@case(GRAPH, "unknown_type", takes_id=True)
def a_relation_type_of_a_built_in_table(story: Story) -> LogRecord:
    open_with_types(story)
    return declaration(story, SUPPORTS, name="DOUBTS", targets=["Finding"])


@case(GRAPH, "unknown_type", takes_id=True)
def an_object_of_no_type(story: Story) -> LogRecord:
    story.open()
    return said(story, events.ObjectCreated, creation("Company", 0, name="Acme"))


@case(GRAPH, "unknown_type", takes_id=True)
def an_object_in_a_built_in_table(story: Story) -> LogRecord:
    open_with_types(story)
    return said(story, events.ObjectCreated, creation("Event", 0))


@case(GRAPH, "unknown_type", takes_id=True)
def a_retirement_in_a_built_in_table(story: Story) -> LogRecord:
    open_with_types(story)
    return said(story, events.ObjectRetired, retirement("Event", 0))


@case(GRAPH, "unknown_type", takes_id=True)
def a_relation_of_no_type(story: Story) -> LogRecord:
    tell_all(story)
    fields = {**ends(("Claim", 1), ("Claim", 0), "DOUBTS"), "data": "{}"}
    return said(story, events.RelationCreated, fields)


@case(GRAPH, "unknown_type", takes_id=True)
def a_relation_in_a_built_in_table(story: Story) -> LogRecord:
    tell_all(story)
    fields = {**ends(("Claim", 1), ("Claim", 0), "PRODUCED"), "reason": ""}
    return said(story, events.RelationRetired, fields)


@case(GRAPH, "bad_data", takes_id=False)
def an_object_that_lacks_a_property(story: Story) -> LogRecord:
    open_with_types(story)
    return said(story, events.ObjectCreated, creation("Company", 0, founded=1999))


@case(GRAPH, "bad_data", takes_id=False)
def an_object_with_a_property_of_another_type(story: Story) -> LogRecord:
    open_with_types(story)
    return said(story, events.ObjectCreated, creation("Company", 0, name="Acme", founded="1999"))


@case(GRAPH, "bad_data", takes_id=False)
def an_object_with_a_property_that_its_type_lacks(story: Story) -> LogRecord:
    open_with_types(story)
    return said(story, events.ObjectCreated, creation("Company", 0, name="Acme", phone="1"))


@case(GRAPH, "bad_data", takes_id=False)
def data_that_is_a_list(story: Story) -> LogRecord:
    open_with_types(story)
    return said(story, events.ObjectCreated, {**creation("Company", 0), "data": "[]"})


@case(GRAPH, "bad_data", takes_id=False)
def a_patch_that_clears_what_must_be_there(story: Story) -> LogRecord:
    tell_all(story)
    return said(story, events.ObjectPatched, patch("Company", 0, name=None))


@case(GRAPH, "bad_data", takes_id=False)
def a_relation_with_wrong_data(story: Story) -> LogRecord:
    tell_all(story)
    return said(story, events.RelationCreated, {**ends(("Company", 0), ("Claim", 0)), "data": '{"weight":"much"}'})


@case(GRAPH, "object_exists", takes_id=True)
def an_object_made_again(story: Story) -> LogRecord:
    tell_all(story)
    return said(story, events.ObjectCreated, creation("Company", 0, name="Other"))


@case(GRAPH, "object_exists", takes_id=True)
def an_object_made_again_after_its_retirement(story: Story) -> LogRecord:
    tell_all(story)
    assert tell(story, events.ObjectRetired, retirement("Company", 0)).valid
    return said(story, events.ObjectCreated, creation("Company", 0, name="Other"))


@case(GRAPH, "unknown_object", takes_id=True)
def a_patch_of_no_object(story: Story) -> LogRecord:
    tell_all(story)
    return said(story, events.ObjectPatched, patch("Company", 9, name="Other"))


@case(GRAPH, "unknown_object", takes_id=True)
def a_retirement_of_no_object(story: Story) -> LogRecord:
    tell_all(story)
    return said(story, events.ObjectRetired, retirement("Company", 9))


@case(GRAPH, "unknown_object", takes_id=True)
def a_reference_to_no_object(story: Story) -> LogRecord:
    tell_all(story)
    return said(story, events.ObjectCreated, creation("Claim", 2, text="a", about=id_of("Company", 9)))


@case(GRAPH, "unknown_object", takes_id=True)
def a_reference_to_an_object_of_another_type(story: Story) -> LogRecord:
    tell_all(story)
    return said(story, events.ObjectPatched, patch("Claim", 1, about=id_of("Claim", 0)))


@case(GRAPH, "unknown_object", takes_id=True)
def a_relation_to_no_object(story: Story) -> LogRecord:
    tell_all(story)
    return said(story, events.RelationCreated, {**ends(("Company", 0), ("Claim", 9)), "data": "{}"})


@case(GRAPH, "object_retired", takes_id=True)
def a_patch_of_a_retired_object(story: Story) -> LogRecord:
    tell_all(story)
    assert tell(story, events.ObjectRetired, retirement("Company", 0)).valid
    return said(story, events.ObjectPatched, patch("Company", 0, name="Other"))


@case(GRAPH, "object_retired", takes_id=True)
def a_second_retirement(story: Story) -> LogRecord:
    tell_all(story)
    assert tell(story, events.ObjectRetired, retirement("Company", 0)).valid
    return said(story, events.ObjectRetired, retirement("Company", 0))


@case(GRAPH, "object_retired", takes_id=True)
def a_reference_to_a_retired_object(story: Story) -> LogRecord:
    tell_all(story)
    assert tell(story, events.ObjectRetired, retirement("Company", 0)).valid
    return said(story, events.ObjectPatched, patch("Claim", 0, about=id_of("Company", 0)))


@case(GRAPH, "object_retired", takes_id=True)
def a_relation_from_a_retired_object(story: Story) -> LogRecord:
    tell_all(story)
    assert tell(story, events.ObjectRetired, retirement("Company", 0)).valid
    return said(story, events.RelationCreated, {**ends(("Company", 0), ("Claim", 0)), "data": "{}"})


@case(GRAPH, "version_conflict", takes_id=True)
def a_patch_of_an_earlier_version(story: Story) -> LogRecord:
    tell_all(story)
    assert tell(story, events.ObjectPatched, patch("Company", 0, name="Acme Ltd", expected_version=1)).valid
    return said(story, events.ObjectPatched, patch("Company", 0, name="Acme Inc", expected_version=1))


@case(GRAPH, "wrong_ends", takes_id=False)
def a_relation_the_wrong_way_round(story: Story) -> LogRecord:
    tell_all(story)
    return said(story, events.RelationCreated, {**ends(("Claim", 0), ("Company", 0)), "data": "{}"})


@case(GRAPH, "relation_exists", takes_id=True)
def a_relation_made_again(story: Story) -> LogRecord:
    tell_all(story)
    return said(story, events.RelationCreated, {**ends(("Claim", 1), ("Claim", 0)), "data": "{}"})


@case(GRAPH, "unknown_relation", takes_id=True)
def the_end_of_no_relation(story: Story) -> LogRecord:
    tell_all(story)
    return said(story, events.RelationRetired, {**ends(("Claim", 0), ("Claim", 1)), "reason": ""})


@case(GRAPH, "unknown_relation", takes_id=True)
def the_end_of_a_relation_that_ended_with_its_object(story: Story) -> LogRecord:
    tell_all(story)
    assert tell(story, events.ObjectRetired, retirement("Claim", 1)).valid
    return said(story, events.RelationRetired, {**ends(("Claim", 1), ("Claim", 0)), "reason": ""})


@case(GRAPH, "relation_implied", takes_id=False)
def a_relation_that_a_reference_makes(story: Story) -> LogRecord:
    tell_all(story)
    return said(story, events.RelationCreated, {**ends(("Claim", 1), ("Claim", 0), "FOLLOWS"), "data": "{}"})


@case(GRAPH, "relation_implied", takes_id=False)
def the_end_of_a_relation_that_a_reference_made(story: Story) -> LogRecord:
    tell_all(story)
    return said(story, events.RelationRetired, {**ends(("Claim", 0), ("Company", 0), "ABOUT"), "reason": ""})
