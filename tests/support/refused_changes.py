"""Every way in which a rule of policies, patches and frames refuses an event."""

from __future__ import annotations

from forktrail_projectors.record import LogRecord
from forktrail_schemas import events
from forktrail_schemas.ids import derived_id
from support.changes import (
    close,
    decide,
    govern,
    hold,
    in_frame,
    open_frame,
    policy,
    proposal,
    propose,
    relation,
)
from support.objects import COMPANY, creation, declaration, ends, id_of, patch, retirement, said, tell, tell_all
from support.refusals import Refusal, case
from support.story import OPERATOR, REVIEWER, Story

CHANGES: list[Refusal] = []
NO_PATCH, NO_FRAME = "patch-ffffffffffffffffffff", "frame-ffffffffffffffffffff"


@case(CHANGES, "type_reserved", takes_id=False)
def a_policy_on_a_table_of_the_graphs_own(story: Story) -> LogRecord:
    story.open()
    return policy(story, "Finding", "create")


@case(CHANGES, "approval_required", takes_id=True)
def an_object_that_a_policy_holds(story: Story) -> LogRecord:
    tell_all(story)
    govern(story, "Company", "create")
    return said(story, events.ObjectCreated, creation("Company", 1, name="Other"))


@case(CHANGES, "approval_required", takes_id=True)
def a_patch_that_a_policy_holds(story: Story) -> LogRecord:
    tell_all(story)
    govern(story, "Company", "patch")
    return said(story, events.ObjectPatched, patch("Company", 0, name="Other"))


@case(CHANGES, "approval_required", takes_id=True)
def a_reference_of_another_type_to_what_a_policy_holds(story: Story) -> LogRecord:
    tell_all(story)
    govern(story, "Company", "relate")
    return said(story, events.ObjectCreated, creation("Claim", 2, text="it sells", about=id_of("Company", 0)))


@case(CHANGES, "approval_required", takes_id=True)
def a_relation_whose_own_type_a_policy_holds(story: Story) -> LogRecord:
    tell_all(story)
    govern(story, "SUPPORTS", "relate")
    return said(story, events.RelationCreated, {**ends(("Company", 0), ("Claim", 0)), "data": "{}"})


@case(CHANGES, "approval_required", takes_id=True)
def the_retirement_of_one_end_of_a_relation_that_a_policy_holds(story: Story) -> LogRecord:
    tell_all(story)
    govern(story, "SUPPORTS", "unrelate")
    return said(story, events.ObjectRetired, retirement("Claim", 1))


@case(CHANGES, "approval_required", takes_id=True)
def the_merge_of_a_frame_with_what_a_policy_holds(story: Story) -> LogRecord:
    tell_all(story)
    frame = open_frame(story)
    hold(story, frame, events.ObjectCreated, creation("Company", 1, name="Other"))
    govern(story, "Company", "create")
    return said(story, events.FrameClosed, {"frame_id": frame, "outcome": "merge", "reason": ""})


@case(CHANGES, "bad_patch", takes_id=False)
def a_creation_without_an_object(story: Story) -> LogRecord:
    tell_all(story)
    return said(story, events.PatchProposed, proposal("create", "Company", data={"name": "Other"}))


@case(CHANGES, "bad_patch", takes_id=False)
def a_retirement_with_data(story: Story) -> LogRecord:
    tell_all(story)
    return said(story, events.PatchProposed, proposal("retire", "Company", 0, data={}))


@case(CHANGES, "bad_patch", takes_id=False)
def a_creation_that_expects_a_version(story: Story) -> LogRecord:
    tell_all(story)
    fields = proposal("create", "Company", 1, data={"name": "Other"}, expected_version=1)
    return said(story, events.PatchProposed, fields)


@case(CHANGES, "bad_patch", takes_id=False)
def a_proposal_in_a_frame(story: Story) -> LogRecord:
    tell_all(story)
    return in_frame(story, open_frame(story), events.PatchProposed, proposal("retire", "Company", 0))


@case(CHANGES, "relation_exists", takes_id=True)
def a_proposal_of_what_is_so_already(story: Story) -> LogRecord:
    tell_all(story)
    return said(story, events.PatchProposed, relation("relate", ("Claim", 1), ("Claim", 0)))


@case(CHANGES, "unknown_patch", takes_id=True)
def a_decision_on_no_proposal(story: Story) -> LogRecord:
    tell_all(story)
    return _decision(story, NO_PATCH)


@case(CHANGES, "already_decided", takes_id=True)
def a_decision_on_what_was_done_at_once(story: Story) -> LogRecord:
    tell_all(story)
    return _decision(story, propose(story, proposal("retire", "Claim", 0)))


@case(CHANGES, "already_decided", takes_id=True)
def a_second_decision_on_a_proposal(story: Story) -> LogRecord:
    tell_all(story)
    patch_id = propose(story, proposal("retire", "Claim", 0, decision="always"))
    assert decide(story, patch_id, "reject").valid
    return _decision(story, patch_id)


@case(CHANGES, "version_conflict", takes_id=True)
def a_yes_to_a_proposal_that_expected_another_version(story: Story) -> LogRecord:
    tell_all(story)
    fields = proposal("patch", "Claim", 0, data={"text": "it shrinks"}, expected_version=1, decision="always")
    patch_id = propose(story, fields)
    assert tell(story, events.ObjectPatched, patch("Claim", 0, text="it stays")).valid
    return _decision(story, patch_id)


@case(CHANGES, "same_person", takes_id=True)
def a_yes_to_ones_own_proposal(story: Story) -> LogRecord:
    tell_all(story)
    event = story.event(events.PatchProposed, "ravi", **proposal("retire", "Claim", 0, decision="always"))
    assert story.append(story.record(event)).valid
    return _decision(story, derived_id("patch", event.meta.event_id))


@case(CHANGES, "role_missing", takes_id=False)
def a_decision_signed_by_an_operator(story: Story) -> LogRecord:
    tell_all(story)
    patch_id = propose(story, proposal("retire", "Claim", 0, decision="always"))
    event = story.event(events.PatchDecided, "olga", patch_id=patch_id, decision="accept", reason="")
    return story.record(event, OPERATOR)


@case(CHANGES, "unknown_frame", takes_id=True)
def a_change_in_no_frame(story: Story) -> LogRecord:
    tell_all(story)
    return in_frame(story, NO_FRAME, events.ObjectRetired, retirement("Claim", 0))


@case(CHANGES, "unknown_frame", takes_id=True)
def the_end_of_no_frame(story: Story) -> LogRecord:
    tell_all(story)
    return said(story, events.FrameClosed, {"frame_id": NO_FRAME, "outcome": "drop", "reason": ""})


@case(CHANGES, "frame_ended", takes_id=True)
def a_change_in_a_frame_that_was_merged(story: Story) -> LogRecord:
    tell_all(story)
    frame = open_frame(story)
    assert close(story, frame).valid
    return in_frame(story, frame, events.ObjectRetired, retirement("Claim", 0))


@case(CHANGES, "frame_ended", takes_id=True)
def the_merge_of_a_frame_that_was_dropped(story: Story) -> LogRecord:
    tell_all(story)
    frame = open_frame(story)
    assert close(story, frame, "drop").valid
    return said(story, events.FrameClosed, {"frame_id": frame, "outcome": "merge", "reason": ""})


@case(CHANGES, "merge_conflict", takes_id=True)
def the_merge_of_a_property_that_has_changed_meanwhile(story: Story) -> LogRecord:
    tell_all(story)
    frame = open_frame(story)
    hold(story, frame, events.ObjectPatched, patch("Claim", 0, text="it shrinks"))
    assert tell(story, events.ObjectPatched, patch("Claim", 0, text="it stays")).valid
    return said(story, events.FrameClosed, {"frame_id": frame, "outcome": "merge", "reason": ""})


@case(CHANGES, "merge_conflict", takes_id=True)
def the_merge_of_a_relation_that_others_have_made_with_other_data(story: Story) -> LogRecord:
    tell_all(story)
    frame = open_frame(story)
    told = ends(("Company", 0), ("Claim", 0))
    hold(story, frame, events.RelationCreated, {**told, "data": '{"weight":1}'})
    assert tell(story, events.RelationCreated, {**told, "data": '{"weight":2}'}).valid
    return said(story, events.FrameClosed, {"frame_id": frame, "outcome": "merge", "reason": ""})


@case(CHANGES, "object_retired", takes_id=True)
def the_merge_into_an_object_that_was_retired_meanwhile(story: Story) -> LogRecord:
    tell_all(story)
    frame = open_frame(story)
    hold(story, frame, events.ObjectPatched, patch("Claim", 0, text="it shrinks"))
    assert tell(story, events.ObjectRetired, retirement("Claim", 0)).valid
    return said(story, events.FrameClosed, {"frame_id": frame, "outcome": "merge", "reason": ""})


@case(CHANGES, "object_exists", takes_id=True)
def an_object_made_twice_in_a_frame(story: Story) -> LogRecord:
    tell_all(story)
    frame = open_frame(story)
    hold(story, frame, events.ObjectCreated, creation("Company", 1, name="Other"))
    return in_frame(story, frame, events.ObjectCreated, creation("Company", 1, name="Other"))


@case(CHANGES, "object_retired", takes_id=True)
def a_reference_to_what_the_frame_has_retired(story: Story) -> LogRecord:
    tell_all(story)
    frame = open_frame(story)
    hold(story, frame, events.ObjectRetired, retirement("Company", 0))
    return in_frame(
        story, frame, events.ObjectCreated, creation("Claim", 2, text="it sells", about=id_of("Company", 0))
    )


@case(CHANGES, "unknown_object", takes_id=True)
def a_reference_to_what_only_another_frame_has_made(story: Story) -> LogRecord:
    tell_all(story)
    hold(story, open_frame(story), events.ObjectCreated, creation("Company", 1, name="Other"))
    fields = creation("Claim", 2, text="it sells", about=id_of("Company", 1))
    return in_frame(story, open_frame(story), events.ObjectCreated, fields)


@case(CHANGES, "unknown_relation", takes_id=True)
def the_end_of_a_relation_that_the_frame_has_ended(story: Story) -> LogRecord:
    tell_all(story)
    frame = open_frame(story)
    fields = {**ends(("Claim", 1), ("Claim", 0)), "reason": ""}
    hold(story, frame, events.RelationRetired, fields)
    return in_frame(story, frame, events.RelationRetired, fields)


@case(CHANGES, "version_conflict", takes_id=True)
def a_patch_in_a_frame_that_expects_another_version(story: Story) -> LogRecord:
    tell_all(story)
    return in_frame(story, open_frame(story), events.ObjectPatched, patch("Claim", 0, expected_version=2, text="a"))


@case(CHANGES, "bad_type", takes_id=False)
def a_text_that_is_merged_by_its_sum(story: Story) -> LogRecord:
    story.open()
    return declaration(story, COMPANY, merge=[{"property": "name", "by": "sum"}])


@case(CHANGES, "bad_type", takes_id=False)
def a_property_that_is_merged_in_two_ways(story: Story) -> LogRecord:
    story.open()
    merge = [{"property": "founded", "by": "min"}, {"property": "founded", "by": "max"}]
    return declaration(story, COMPANY, merge=merge)


def _decision(story: Story, patch_id: str) -> LogRecord:
    event = story.event(events.PatchDecided, "ravi", patch_id=patch_id, decision="accept", reason="")
    return story.record(event, REVIEWER)
