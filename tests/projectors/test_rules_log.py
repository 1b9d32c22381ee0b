from __future__ import annotations

import hashlib
from typing import Any

import pytest

from forktrail_projectors.state import EdgeKey, NodeKey
from forktrail_schemas import events
from support.refusals import Refusal, check
from support.refused_log import LOG
from support.story import ADMIN, OPERATOR, REVIEWER, RUNNER, STRANGER, Story

each = pytest.mark.parametrize("refusal", LOG, ids=lambda refusal: str(refusal.name))


@each
def test_a_refused_event_changes_nothing_and_takes_its_id_only_where_it_came_at_the_wrong_time(
    refusal: Refusal,
) -> None:
    check(refusal)


def derived(kind: str, event_id: str) -> str:
    return f"{kind}-{hashlib.sha256(f'forktrail/{kind}/{event_id}'.encode()).hexdigest()[:20]}"


def test_an_opening_makes_the_run_its_goal_first_revision_admin_and_budgets() -> None:
    story = Story()
    fields = {"goal": "look", "revision": "r7", "admin_public_key": ADMIN.public_key}
    opened, verdict = story.signed(events.RunOpened, ADMIN, **fields)
    assert verdict.valid
    id = opened.meta.event_id
    stamp = {"created_event": id, "created_offset": 0, "changed_event": id, "changed_offset": 0}
    goal = derived("goal", id)
    unused = {"remainder": None, "exhausted": None}
    domain: dict[NodeKey, dict[str, object]] = {
        NodeKey("Run", "run"): {
            "run_id": "story",
            "status": "open",
            "goal": goal,
            "registry_sha256": None,
            "active_revision": "r7",
            "revisions": 1,
            "last_case": None,
            "last_case_offset": -1,
        },
        NodeKey("Goal", goal): {"text": "look"},
        NodeKey("Revision", "r7"): {"ordinal": 1},
        NodeKey("Key", ADMIN.key_id): {
            "holder": "ada",
            "holder_kind": "human",
            "public_key": ADMIN.public_key,
            "roles": ("admin",),
            "revoked": False,
        },
        NodeKey("Budget", "cases"): {"limit": None, "used": 0, **unused},
        NodeKey("Budget", "http-requests"): {"limit": None, "used": 0, **unused},
        NodeKey("Budget", "finding-depth"): {"limit": None, "used": 0, **unused},
        NodeKey("Budget", "events"): {"limit": None, "used": None, **unused},
        NodeKey("Budget", "cause-depth"): {"limit": None, "used": 0, **unused},
    }
    expected: dict[object, dict[str, object]] = {key: {"id": key.id, **row, **stamp} for key, row in domain.items()}
    digest = hashlib.sha256(story.records[0].value or b"").hexdigest()
    event = NodeKey("Event", 0)
    expected[event] = {
        "offset": 0,
        "id": id,
        "type": "forktrail.RunOpened",
        "verdict": "valid",
        "reason": "",
        "detail": "",
        "subject": None,
        "goal": None,
        "actor_kind": "human",
        "actor": "ada",
        "occurred_at": 1_700_000_000_000_001,
        "signer": ADMIN.key_id,
        "value_sha256": digest,
    }
    expected[NodeKey("Identity", id)] = {"id": id, "offset": 0, "depth": 0}
    expected |= {EdgeKey("PRODUCED", event, key): {} for key in domain}
    assert story.rows() == expected


def test_an_opening_keeps_the_digest_of_its_registry() -> None:
    story = Story()
    registry = {"sha256": "c" * 64, "size": 1, "media_type": "application/json"}
    fields: dict[str, Any] = {"goal": "", "revision": "r1", "admin_public_key": ADMIN.public_key}
    assert story.signed(events.RunOpened, ADMIN, registry=registry, **fields)[1].valid
    assert story.row("Run", "run")["registry_sha256"] == "c" * 64


def opened() -> Story:
    story = Story()
    story.open()
    return story


def test_a_key_is_registered_with_its_roles_sorted_and_once_each() -> None:
    story = opened()
    assert story.add_key(STRANGER, "runner", "operator", "runner", holder="zoe").valid
    row = story.row("Key", STRANGER.key_id)
    assert (row["holder"], row["public_key"], row["roles"], row["revoked"]) == (
        "zoe",
        STRANGER.public_key,
        ("operator", "runner"),
        False,
    )


def test_a_revocation_changes_the_key_and_leaves_the_rest_of_it() -> None:
    story = opened()
    before = story.row("Key", OPERATOR.key_id)
    event, verdict = story.signed(events.KeyRevoked, ADMIN, key_id=OPERATOR.key_id, reason="lost")
    assert verdict.valid
    assert story.row("Key", OPERATOR.key_id) == {
        **before,
        "revoked": True,
        "changed_event": event.meta.event_id,
        "changed_offset": 4,
    }


def test_an_admin_may_revoke_another_admin_and_so_one_is_always_left() -> None:
    story = opened()
    assert story.add_key(STRANGER, "admin").valid
    fields = {"key_id": ADMIN.key_id, "reason": ""}
    assert story.signed(events.KeyRevoked, STRANGER, **fields)[1].valid
    own = {"key_id": STRANGER.key_id, "reason": ""}
    assert story.signed(events.KeyRevoked, STRANGER, **own)[1].reason == "own_key"


def test_a_setting_is_made_once_and_changed_after() -> None:
    story = opened()
    assert story.set("same-person-may-review", "true").valid
    made = story.row("Setting", "same-person-may-review")
    assert (made["value"], made["created_offset"], made["changed_offset"]) == ("true", 4, 4)
    assert story.set("same-person-may-review", "false").valid
    changed = story.row("Setting", "same-person-may-review")
    assert (changed["value"], changed["created_offset"], changed["changed_offset"]) == ("false", 4, 5)


@pytest.mark.parametrize("name", ["cases", "http-requests", "finding-depth"])
def test_a_budget_is_set_and_lifted_and_what_is_used_stays_used(name: str) -> None:
    story = opened()
    story.register("t")
    story.decide(story.report("t"))
    used = story.row("Budget", name)["used"]
    assert story.budget(name, 5).valid
    assert (story.row("Budget", name)["limit"], story.row("Budget", name)["used"]) == (5, used)
    assert story.budget(name, None).valid
    assert (story.row("Budget", name)["limit"], story.row("Budget", name)["used"]) == (None, used)


def test_a_goal_is_kept_and_put_in_front() -> None:
    story = opened()
    first = story.row("Run", "run")["goal"]
    event = story.event(events.GoalSet, text="deeper")
    assert story.tell(event).valid
    goal = derived("goal", event.meta.event_id)
    assert story.row("Run", "run")["goal"] == goal != first
    assert (story.row("Goal", goal)["text"], story.row("Goal", str(first))["text"]) == ("deeper", "find what breaks")


def test_a_registration_makes_the_test_its_asset_and_its_capabilities_once_each() -> None:
    story = opened()
    assert story.register("one", asset="api", requires=["a", "b", "a"], enables=["c", "c"], impact=70).valid
    test = NodeKey("TestCase", "one")
    row = story.row(*test)
    columns = ("title", "asset", "impact", "requests_max", "definition_sha256")
    assert [row[name] for name in columns] == ["Test one", "api", 70, 2, "d" * 64]
    assert story.related("TARGETS", test) == [NodeKey("Asset", "api")]
    assert story.related("REQUIRES", test) == [NodeKey("Capability", "a"), NodeKey("Capability", "b")]
    assert story.related("WOULD_ENABLE", test) == [NodeKey("Capability", "c")]


def test_what_a_second_test_shares_stays_as_the_first_made_it() -> None:
    story = opened()
    story.register("one", asset="api", enables=["c"])
    shared = [story.row("Asset", "api"), story.row("Capability", "c")]
    assert story.register("two", asset="api", requires=["c"], enables=["d"]).valid
    assert [story.row("Asset", "api"), story.row("Capability", "c")] == shared
    assert {row["created_offset"] for row in shared} == {4}
    produced = story.related("PRODUCED", NodeKey("Event", 5))
    assert produced == [NodeKey("Capability", "d"), NodeKey("TestCase", "two")]


def test_a_closed_run_is_closed() -> None:
    story = opened()
    assert story.close().valid
    assert story.row("Run", "run")["status"] == "closed"


def test_keys_of_all_roles_sign_for_their_holders() -> None:
    story = opened()
    holders = {key: story.row("Key", key.key_id) for key in (OPERATOR, REVIEWER, RUNNER)}
    assert [(row["holder"], row["roles"]) for row in holders.values()] == [
        ("olga", ("operator",)),
        ("ravi", ("reviewer",)),
        ("runner-1", ("runner",)),
    ]


def test_a_log_may_be_as_long_as_its_budget_and_an_admin_may_go_on() -> None:
    story = Story()
    story.open()
    story.register("root")
    limit = len(story.records) + 3
    assert story.budget("events", limit).valid
    verdicts = [story.tell(story.event(events.ReportFiled, test_id="root", summary="")) for _ in range(3)]
    assert [(verdict.offset < limit, verdict.reason) for verdict in verdicts] == [
        (True, ""),
        (True, ""),
        (False, "budget_exhausted"),
    ]
    assert verdicts[-1].detail == f"events: {limit + 1} of {limit}"
    assert story.budget("events", None).valid
    assert story.tell(story.event(events.ReportFiled, test_id="root", summary="")).valid


def test_depth_among_causes_is_one_more_than_the_deepest_cause_of_this_log() -> None:
    story = Story()
    story.open()
    story.register("root")

    def report(*causes: str) -> tuple[str, object]:
        event = story.event(events.ReportFiled, causes=list(causes), test_id="root", summary="")
        assert story.tell(event).valid
        return event.meta.event_id, story.row("Identity", event.meta.event_id)["depth"]

    first, at_first = report()
    second, at_second = report(first)
    _, at_third = report(first, second, "00000000-0000-7000-8000-0000000000ff")
    _, of_a_stranger = report("00000000-0000-7000-8000-0000000000ff")
    assert [at_first, at_second, at_third, of_a_stranger] == [0, 1, 2, 0]
    assert story.row("Budget", "cause-depth")["used"] == 2
