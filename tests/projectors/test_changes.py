"""Policies, patches and frames: what they let through, and what comes of it."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forktrail_projectors.content_digest import content_digest
from forktrail_projectors.state import EdgeKey, NodeKey
from forktrail_schemas import events
from support.changes import close, decide, govern, hold, open_frame, proposal, propose, relation
from support.objects import TEXT, creation, declaration, ends, id_of, patch, retirement, schema_text, tell, tell_all
from support.refusals import Refusal, check
from support.refused_changes import CHANGES
from support.story import Story

COMPANY_0, COMPANY_1, CLAIM_0, CLAIM_1, CLAIM_2 = (
    NodeKey(name, id_of(name, number))
    for name, number in (("Company", 0), ("Company", 1), ("Claim", 0), ("Claim", 1), ("Claim", 2))
)


@pytest.mark.parametrize("refusal", CHANGES, ids=lambda refusal: str(refusal.name))
def test_a_refused_change_changes_nothing(refusal: Refusal) -> None:
    check(refusal)


@pytest.fixture
def story() -> Story:
    told = Story()
    tell_all(told)
    return told


def settled(story: Story) -> None:
    assert story.projector.recomputed_digest() == story.projector.state_digest


# Patches.


def test_what_no_policy_holds_is_done_as_it_is_proposed(story: Story) -> None:
    patch_id = propose(story, proposal("patch", "Claim", 0, data={"text": "it shrinks"}, expected_version=1))
    row = story.row("Patch", patch_id)
    assert (row["status"], row["decided_by"]) == ("applied", None)
    assert (story.row(*CLAIM_0)["text"], story.row(*CLAIM_0)["version"]) == ("it shrinks", 2)
    settled(story)


DONE: list[tuple[str, dict[str, Any], Callable[[Story], bool]]] = [
    (
        "create",
        proposal("create", "Company", 1, data={"name": "Other"}),
        lambda story: story.rows().get(COMPANY_1, {}).get("name") == "Other",
    ),
    (
        "patch",
        proposal("patch", "Claim", 0, data={"text": "b"}),
        lambda story: story.row(*CLAIM_0)["text"] == "b",
    ),
    ("retire", proposal("retire", "Claim", 0), lambda story: story.row(*CLAIM_0)["retired"] is True),
    (
        "relate",
        relation("relate", ("Company", 0), ("Claim", 0)),
        lambda story: EdgeKey("SUPPORTS", COMPANY_0, CLAIM_0) in story.rows(),
    ),
    (
        "unrelate",
        relation("unrelate", ("Claim", 1), ("Claim", 0)),
        lambda story: EdgeKey("SUPPORTS", CLAIM_1, CLAIM_0) not in story.rows(),
    ),
]


@pytest.mark.parametrize("decision", ["accept", "reject"])
@pytest.mark.parametrize("held_by", ["policy", "always"])
@pytest.mark.parametrize(("op", "fields", "done"), DONE, ids=[op for op, *_ in DONE])
def test_a_proposal_that_is_held_waits_for_a_reviewer(
    story: Story, op: str, fields: dict[str, Any], done: Callable[[Story], bool], held_by: str, decision: str
) -> None:
    if held_by == "policy":
        govern(story, fields["type_name"], op)
    else:
        fields = {**fields, "decision": "always"}
    patch_id = propose(story, fields)
    assert not done(story)
    assert story.row("Patch", patch_id)["status"] == "proposed"
    assert decide(story, patch_id, decision).valid
    assert done(story) == (decision == "accept")
    row = story.row("Patch", patch_id)
    assert (row["status"], row["decided_by"], row["reason"]) == (
        "applied" if decision == "accept" else "rejected",
        "ravi",
        "fine",
    )
    settled(story)


def test_the_changed_object_carries_the_decision_that_changed_it(story: Story) -> None:
    govern(story, "Claim", "patch")
    patch_id = propose(story, proposal("patch", "Claim", 0, data={"text": "b"}))
    offset = len(story.records)
    assert decide(story, patch_id).valid
    assert story.row(*CLAIM_0)["changed_offset"] == offset


def test_a_lifted_policy_holds_nothing_and_one_of_other_changes_neither(story: Story) -> None:
    govern(story, "Company", "create", "patch", "create")
    assert story.row("Policy", "Company")["changes"] == ("create", "patch")
    govern(story, "Company", "retire")
    assert tell(story, events.ObjectPatched, patch("Company", 0, name="Other")).valid
    assert tell(story, events.ObjectRetired, retirement("Company", 0)).reason == "approval_required"
    govern(story, "Company")
    assert tell(story, events.ObjectRetired, retirement("Company", 0)).valid
    settled(story)


def test_a_policy_may_come_before_its_type(story: Story) -> None:
    govern(story, "Memo", "create")
    memo = {"name": "Memo", "kind": "object", "json_schema": schema_text({"text": TEXT})}
    assert story.append(declaration(story, memo)).valid
    assert tell(story, events.ObjectCreated, creation("Memo", 0, text="a")).reason == "approval_required"


def test_one_person_may_decide_on_their_own_proposal_where_the_run_lets_them(story: Story) -> None:
    assert story.set("same-person-may-review", "true").valid
    event = story.event(events.PatchProposed, "ravi", **proposal("retire", "Claim", 0, decision="always"))
    assert story.append(story.record(event)).valid
    (patch_id,) = [key.id for key in story.rows() if isinstance(key, NodeKey) and key.table == "Patch"]
    assert decide(story, str(patch_id)).valid


def test_proposals_that_were_rejected_are_no_content(story: Story) -> None:
    before = content_digest(story.graph.rows(), story.graph.tables)
    patch_id = propose(story, proposal("retire", "Claim", 0, decision="always"))
    assert decide(story, patch_id, "reject").valid
    assert content_digest(story.graph.rows(), story.graph.tables) == before


# Frames.


def test_what_is_changed_in_a_frame_is_seen_once_it_is_merged(story: Story) -> None:
    frame = open_frame(story)
    before = {key: row for key, row in story.rows().items() if key[0] in ("Company", "Claim", "SUPPORTS", "ABOUT")}
    hold(story, frame, events.ObjectCreated, creation("Company", 1, name="Other"))
    hold(story, frame, events.ObjectPatched, patch("Company", 1, founded=1999))
    hold(story, frame, events.ObjectCreated, creation("Claim", 2, text="it sells", about=id_of("Company", 1)))
    hold(story, frame, events.RelationCreated, {**ends(("Company", 1), ("Claim", 2)), "data": "{}"})
    hold(story, frame, events.ObjectPatched, patch("Claim", 0, text="it shrinks"))
    hold(story, frame, events.ObjectPatched, patch("Claim", 0, weight=1.5, about=id_of("Company", 1)))
    hold(story, frame, events.ObjectRetired, retirement("Claim", 1))
    assert before == {key: row for key, row in story.rows().items() if key in before}
    assert COMPANY_1 not in story.rows()
    assert close(story, frame).valid
    assert (story.row(*COMPANY_1)["name"], story.row(*COMPANY_1)["founded"]) == ("Other", 1999)
    assert story.row(*COMPANY_1)["version"] == 1
    row = story.row(*CLAIM_0)
    assert (row["text"], row["weight"], row["version"]) == ("it shrinks", 1.5, 2)
    assert story.related("ABOUT", CLAIM_0) == [COMPANY_1]
    assert story.related("ABOUT", CLAIM_2) == [COMPANY_1]
    assert story.related("SUPPORTS", COMPANY_1) == [CLAIM_2]
    assert story.row(*CLAIM_1)["retired"] is True
    assert EdgeKey("SUPPORTS", CLAIM_1, CLAIM_0) not in story.rows()
    settled(story)


@pytest.mark.parametrize("number", range(4, 8))
def test_objects_of_a_frame_may_refer_to_each_other(story: Story, number: int) -> None:
    """Whichever of them comes first by its id."""
    for one, other in ((number, number + 8), (number + 4, number - 2)):
        frame = open_frame(story)
        follows = {"follows": id_of("Claim", one)}
        hold(story, frame, events.ObjectCreated, creation("Claim", one, text="one"))
        hold(story, frame, events.ObjectCreated, creation("Claim", other, text="another", **follows))
        hold(story, frame, events.ObjectPatched, patch("Claim", one, follows=id_of("Claim", other)))
        verdict = close(story, frame)
        assert verdict.valid, verdict
        keys = [NodeKey("Claim", id_of("Claim", id)) for id in (one, other)]
        assert [story.related("FOLLOWS", key) for key in keys] == [[keys[1]], [keys[0]]]
    settled(story)


def test_what_refers_to_an_object_that_the_frame_then_retires_refers_to_nothing(story: Story) -> None:
    frame = open_frame(story)
    hold(story, frame, events.ObjectCreated, creation("Claim", 2, text="it sells", about=id_of("Company", 0)))
    hold(story, frame, events.ObjectRetired, retirement("Company", 0))
    assert close(story, frame).valid
    assert story.row(*COMPANY_0)["retired"] is True
    assert [story.related("ABOUT", claim) for claim in (CLAIM_0, CLAIM_1, CLAIM_2)] == [[], [], []]
    settled(story)


def test_a_dropped_frame_leaves_nothing(story: Story) -> None:
    before = content_digest(story.graph.rows(), story.graph.tables)
    frame = open_frame(story)
    hold(story, frame, events.ObjectCreated, creation("Company", 1, name="Other"))
    hold(story, frame, events.ObjectRetired, retirement("Claim", 1))
    assert close(story, frame, "drop").valid
    assert content_digest(story.graph.rows(), story.graph.tables) == before
    settled(story)


def test_what_was_made_and_retired_in_a_frame_never_was(story: Story) -> None:
    frame = open_frame(story)
    hold(story, frame, events.ObjectCreated, creation("Company", 1, name="Other"))
    hold(story, frame, events.RelationCreated, {**ends(("Company", 1), ("Claim", 0)), "data": "{}"})
    hold(story, frame, events.ObjectRetired, retirement("Company", 1))
    assert close(story, frame).valid
    assert COMPANY_1 not in story.rows()
    settled(story)


def test_a_frame_that_a_policy_holds_stays_open_and_may_be_merged_once_that_is_lifted(story: Story) -> None:
    frame = open_frame(story)
    hold(story, frame, events.ObjectCreated, creation("Company", 1, name="Other"))
    govern(story, "Company", "create")
    assert close(story, frame).reason == "approval_required"
    assert story.row("Frame", frame)["status"] == "open"
    govern(story, "Company")
    assert close(story, frame).valid
    settled(story)


def test_two_frames_that_set_a_property_to_the_same_value_come_together(story: Story) -> None:
    frames = [open_frame(story), open_frame(story)]
    for frame in frames:
        hold(story, frame, events.ObjectPatched, patch("Claim", 0, text="it shrinks"))
    assert [close(story, frame).valid for frame in frames] == [True, True]
    assert story.row(*CLAIM_0)["text"] == "it shrinks"


TALLY: dict[str, Any] = {
    "name": "Tally",
    "kind": "object",
    "json_schema": schema_text(
        {
            "most": {"type": "integer"},
            "least": {"type": "integer"},
            "total": {"type": "integer"},
            "tags": {"type": "array", "items": {"type": "string"}},
            "ever": {"type": "boolean"},
            "always": {"type": "boolean"},
        }
    ),
    "merge": [
        {"property": "most", "by": "max"},
        {"property": "least", "by": "min"},
        {"property": "total", "by": "sum"},
        {"property": "tags", "by": "union"},
        {"property": "ever", "by": "any"},
        {"property": "always", "by": "all"},
    ],
}
TALLY_0 = NodeKey("Tally", id_of("Tally", 0))
Values = dict[str, Any]
# What is there, what each of two frames sets, and what comes of it, worked out by hand.
MERGES: list[tuple[str, Values, Values, Values, object]] = [
    ("most", {"most": 5}, {"most": 9}, {"most": 7}, 9),
    ("most", {"most": 5}, {"most": 3}, {"most": 4}, 5),
    ("most", {}, {"most": 3}, {"most": -4}, 3),
    ("least", {"least": 5}, {"least": 9}, {"least": 2}, 2),
    ("total", {"total": 10}, {"total": 13}, {"total": 8}, 11),
    ("total", {}, {"total": 3}, {"total": 4}, 7),
    ("tags", {"tags": ["b"]}, {"tags": ["b", "c"]}, {"tags": ["a"]}, ("a", "b", "c")),
    ("ever", {"ever": False}, {"ever": True}, {"ever": False}, True),
    ("always", {"always": True}, {"always": False}, {"always": True}, False),
    ("always", {}, {"always": True}, {"always": True}, True),
]


def tallied(there: Values | None, sets: Sequence[Sequence[Values]], order: Sequence[int]) -> Story:
    """A run with a tally, changed in frames that are merged in an order; where it isn't there, each makes it."""
    story = Story("tally")
    story.open()
    assert story.append(declaration(story, TALLY)).valid
    if there is not None:
        assert tell(story, events.ObjectCreated, creation("Tally", 0, **there)).valid
    frames = [open_frame(story) for _ in sets]
    for frame, patches in zip(frames, sets, strict=True):
        for number, values in enumerate(patches):
            if there is None and number == 0:
                hold(story, frame, events.ObjectCreated, creation("Tally", 0, **values))
            else:
                hold(story, frame, events.ObjectPatched, patch("Tally", 0, **values))
    for place in order:
        verdict = close(story, frames[place])
        assert verdict.valid, verdict
    settled(story)
    return story


def frames_of(story: Story) -> list[str]:
    """The ids of its frames, in the order in which they were opened."""
    frames = [str(key.id) for key in story.rows() if isinstance(key, NodeKey) and key.table == "Frame"]
    return sorted(frames, key=lambda frame: int(str(story.row("Frame", frame)["created_offset"])))


def content(story: Story) -> str:
    return content_digest(story.graph.rows(), story.graph.tables)


@pytest.mark.parametrize(("name", "there", "one", "other", "merged"), MERGES)
def test_two_frames_come_together_by_the_declared_rule_in_either_order(
    name: str, there: Values, one: Values, other: Values, merged: object
) -> None:
    first, second = (tallied(there, [[one], [other]], order) for order in ((0, 1), (1, 0)))
    assert first.row(*TALLY_0)[name] == second.row(*TALLY_0)[name] == merged
    assert content(first) == content(second)


def test_two_frames_that_make_the_same_object_come_together() -> None:
    sets: list[list[Values]] = [
        [{"most": 1, "total": 2, "tags": ["b"]}, {"total": 5}],
        [{"most": 3, "total": 4, "tags": ["a", "b"]}],
    ]
    first, second = (tallied(None, sets, order) for order in ((0, 1), (1, 0)))
    row = first.row(*TALLY_0)
    assert (row["most"], row["total"], row["tags"], row["version"]) == (3, 9, ("a", "b"), 2)
    assert content(first) == content(second)


def test_a_sum_that_no_event_could_say_is_a_conflict_and_stops_nothing() -> None:
    most = 2**53 - 1
    story = tallied({}, [[{"total": most}], [{"total": 2}]], ())
    first, second = frames_of(story)
    assert close(story, first).valid
    assert close(story, second).reason == "merge_conflict"
    hold(story, open_frame(story), events.ObjectPatched, patch("Tally", 0, total=1))
    settled(story)


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_what_a_frame_made_has_no_base_of_another_frames_making(order: tuple[int, int]) -> None:
    """A makes it with a total of 2, B with one of 4; A then patches its own to 5, before or after B is merged: 9."""
    for late in (False, True):
        story = tallied(None, [[{"total": 2}], [{"total": 4}]], ())
        one, other = frames_of(story)
        if not late:
            hold(story, one, events.ObjectPatched, patch("Tally", 0, total=5))
        if late or order == (1, 0):
            assert close(story, other).valid
        if late:
            hold(story, one, events.ObjectPatched, patch("Tally", 0, total=5))
        assert close(story, one).valid
        if not (late or order == (1, 0)):
            assert close(story, other).valid
        assert story.row(*TALLY_0)["total"] == 9
        settled(story)


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_what_a_frame_made_and_took_back_touches_nothing_of_anothers(story: Story, order: tuple[int, int]) -> None:
    """Objects and relations alike, whichever frame is merged first."""
    frames = [open_frame(story), open_frame(story)]
    joined = ends(("Company", 0), ("Claim", 0))
    for frame in frames:
        hold(story, frame, events.ObjectCreated, creation("Company", 1, name="Other"))
        hold(story, frame, events.RelationCreated, {**joined, "data": "{}"})
    hold(story, frames[0], events.ObjectRetired, retirement("Company", 1))
    hold(story, frames[0], events.RelationRetired, {**joined, "reason": ""})
    for place in order:
        assert close(story, frames[place]).valid
    assert story.row(*COMPANY_1)["retired"] is False
    assert EdgeKey("SUPPORTS", COMPANY_0, CLAIM_0) in story.rows()
    settled(story)


def test_a_relation_may_begin_anew_with_other_data_in_a_frame(story: Story) -> None:
    frame, late = open_frame(story), open_frame(story)
    joined = ends(("Claim", 1), ("Claim", 0))
    for one, weight in ((frame, 0.25), (late, 0.75)):
        hold(story, one, events.RelationRetired, {**joined, "reason": ""})
        hold(story, one, events.RelationCreated, {**joined, "data": f'{{"weight":{weight}}}'})
    assert story.rows()[EdgeKey("SUPPORTS", CLAIM_1, CLAIM_0)]["weight"] == 0.5
    assert close(story, frame).valid
    assert story.rows()[EdgeKey("SUPPORTS", CLAIM_1, CLAIM_0)]["weight"] == 0.25
    assert close(story, late).reason == "merge_conflict"
    settled(story)


def test_a_large_float_is_held_as_it_is(story: Story) -> None:
    frame = open_frame(story)
    hold(story, frame, events.ObjectPatched, patch("Claim", 0, weight=1e20))
    hold(story, frame, events.ObjectPatched, patch("Claim", 0, text="b"))
    assert close(story, frame).valid
    again = open_frame(story)
    hold(story, again, events.ObjectPatched, patch("Claim", 0, weight=1e21))
    hold(story, again, events.ObjectPatched, patch("Claim", 0, text="c"))
    assert close(story, again).valid
    assert (story.row(*CLAIM_0)["weight"], story.row(*CLAIM_0)["text"]) == (1e21, "c")
    settled(story)


_NUMBERS = st.integers(-9, 9) | st.sampled_from((2**40, -(2**40)))
_VALUES = st.fixed_dictionaries(
    {},
    optional={
        "most": _NUMBERS,
        "least": _NUMBERS,
        "total": _NUMBERS,
        "tags": st.lists(st.sampled_from("abc"), max_size=3),
        "ever": st.booleans(),
        "always": st.booleans(),
    },
)


@settings(max_examples=40, deadline=None)
@given(there=st.none() | _VALUES, sets=st.lists(st.lists(_VALUES, min_size=1, max_size=3), min_size=2, max_size=3))
def test_frames_come_together_in_any_order(there: Values | None, sets: list[list[Values]]) -> None:
    orders = list(itertools.permutations(range(len(sets))))
    assert len({content(tallied(there, sets, order)) for order in orders}) == 1
