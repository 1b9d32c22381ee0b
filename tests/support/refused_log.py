"""Every way in which a rule of the log family refuses an event."""

from __future__ import annotations

from typing import Any

from forktrail_projectors.record import LogRecord
from forktrail_schemas import events
from forktrail_schemas.events.base import Event
from support.refusals import Refusal, case
from support.story import ADMIN, HOLDERS, OPERATOR, STRANGER, Story

LOG: list[Refusal] = []


def by_admin(story: Story, cls: type[Event], /, **fields: Any) -> LogRecord:
    """A record signed by the admin."""
    return story.record(story.event(cls, HOLDERS[ADMIN.key_id], **fields), ADMIN)


def registration(**changes: Any) -> dict[str, Any]:
    """The fields of a TestRegistered, some of them changed."""
    fields = {"test_id": "t", "title": "T", "asset_id": "a", "requires": [], "enables": []}
    return {**fields, "impact": 1, "requests_max": 1, "definition_sha256": "d" * 64, **changes}


@case(LOG, "run_already_open", takes_id=True)
def a_second_opening_by_the_same_admin(story: Story) -> LogRecord:
    story.open()
    fields = {"goal": "g", "revision": "r1", "admin_public_key": ADMIN.public_key}
    return by_admin(story, events.RunOpened, **fields)


@case(LOG, "run_already_open", takes_id=True)
def a_second_opening_by_a_stranger(story: Story) -> LogRecord:
    story.open()
    fields = {"goal": "g", "revision": "r9", "admin_public_key": STRANGER.public_key}
    return story.record(story.event(events.RunOpened, "stranger", **fields), STRANGER)


@case(LOG, "run_closed", takes_id=True)
def an_event_after_the_end(story: Story) -> LogRecord:
    story.open()
    story.close()
    return story.record(story.event(events.GoalSet, text="more"))


@case(LOG, "run_closed", takes_id=True)
def a_second_end(story: Story) -> LogRecord:
    story.open()
    story.close()
    return by_admin(story, events.RunClosed, reason="")


@case(LOG, "key_id_mismatch", takes_id=False)
def a_key_under_the_id_of_another(story: Story) -> LogRecord:
    story.open()
    fields = {
        "key_id": ADMIN.key_id,
        "public_key": STRANGER.public_key,
        "holder": "x",
        "holder_kind": "human",
        "roles": ["admin"],
    }
    return by_admin(story, events.KeyRegistered, **fields)


def _again(story: Story) -> LogRecord:
    fields = {
        "key_id": OPERATOR.key_id,
        "public_key": OPERATOR.public_key,
        "holder": "mallory",
        "holder_kind": "human",
        "roles": ["admin"],
    }
    return by_admin(story, events.KeyRegistered, **fields)


@case(LOG, "key_exists", takes_id=True)
def a_key_registered_again_for_another_holder(story: Story) -> LogRecord:
    story.open()
    return _again(story)


@case(LOG, "key_exists", takes_id=True)
def a_revoked_key_registered_again(story: Story) -> LogRecord:
    story.open()
    story.revoke(OPERATOR)
    return _again(story)


@case(LOG, "unknown_key", takes_id=True)
def the_revocation_of_an_unknown_key(story: Story) -> LogRecord:
    story.open()
    return by_admin(story, events.KeyRevoked, key_id=STRANGER.key_id, reason="")


@case(LOG, "already_revoked", takes_id=True)
def a_second_revocation(story: Story) -> LogRecord:
    story.open()
    story.revoke(OPERATOR)
    return by_admin(story, events.KeyRevoked, key_id=OPERATOR.key_id, reason="")


@case(LOG, "own_key", takes_id=True)
def the_revocation_of_the_key_that_signs_it(story: Story) -> LogRecord:
    story.open()
    return by_admin(story, events.KeyRevoked, key_id=ADMIN.key_id, reason="")


@case(LOG, "unknown_setting", takes_id=False)
def an_unknown_setting(story: Story) -> LogRecord:
    story.open()
    return by_admin(story, events.SettingChanged, name="colour", value="true")


@case(LOG, "bad_value", takes_id=False)
def a_value_that_a_setting_does_not_take(story: Story) -> LogRecord:
    story.open()
    return by_admin(story, events.SettingChanged, name="same-person-may-review", value="True")


@case(LOG, "unknown_budget", takes_id=False)
def an_unknown_budget(story: Story) -> LogRecord:
    story.open()
    return by_admin(story, events.BudgetSet, name="coffee", limit=3)


@case(LOG, "test_exists", takes_id=True)
def a_test_registered_again(story: Story) -> LogRecord:
    story.open()
    story.register("t")
    return by_admin(story, events.TestRegistered, **registration(impact=99))


@case(LOG, "circular_test", takes_id=False)
def a_test_that_enables_what_it_requires(story: Story) -> LogRecord:
    story.open()
    return by_admin(story, events.TestRegistered, **registration(requires=["a", "b"], enables=["c", "b"]))
