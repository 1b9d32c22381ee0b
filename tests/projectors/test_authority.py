from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from forktrail_projectors.authority import keys
from forktrail_projectors.record import UNREADABLE_HEADERS, LogRecord
from forktrail_projectors.state import NodeKey
from forktrail_schemas import events
from forktrail_schemas.events import EVENT_TYPES
from forktrail_schemas.events.base import Event
from forktrail_schemas.headers import SIGNATURE, headers_of
from forktrail_schemas.wire import decode
from support.refusals import Refusal, check
from support.refused_authority import AUTHORITY, approval, ask, with_header, with_signature
from support.samples import sample
from support.story import ADMIN, OPERATOR, REVIEWER, STRANGER, Story

each = pytest.mark.parametrize("refusal", AUTHORITY, ids=lambda refusal: str(refusal.name))
SIGNED_TYPES = [cls for cls in EVENT_TYPES if cls.ROLE is not None]


@each
def test_a_refused_event_changes_nothing_and_takes_its_id_only_where_it_came_at_the_wrong_time(
    refusal: Refusal,
) -> None:
    check(refusal)


def of_type(story: Story, cls: type[Event], actor: str) -> Event:
    fields = sample(cls)
    del fields["meta"]
    return story.event(cls, actor, **fields)


@pytest.mark.parametrize(
    "cls", [cls for cls in SIGNED_TYPES if cls.ROLE != "worker"], ids=lambda cls: str(cls.__name__)
)
def test_a_type_that_asks_for_a_role_is_refused_unsigned(cls: type[Event]) -> None:
    story = Story()
    story.open()
    verdict = story.tell(of_type(story, cls, "ada"))
    assert (verdict.kind, verdict.reason) == ("void", "unsigned")


@pytest.mark.parametrize(
    "cls", [cls for cls in SIGNED_TYPES if cls is not events.RunOpened], ids=lambda cls: cls.__name__
)
def test_a_type_that_asks_for_a_role_is_refused_from_a_key_with_all_the_others(cls: type[Event]) -> None:
    story = Story()
    story.open()
    others = {"admin", "operator", "reviewer", "runner", "sealer", "worker"} - {cls.ROLE}
    assert story.add_key(STRANGER, *sorted(others), holder="stranger").valid
    verdict = story.tell(of_type(story, cls, "stranger"), STRANGER)
    assert (verdict.kind, verdict.reason) == ("void", "role_missing")


@pytest.mark.parametrize("cls", SIGNED_TYPES, ids=lambda cls: str(cls.__name__))
def test_a_role_and_a_right_signature_bring_an_event_to_its_rule(cls: type[Event]) -> None:
    story = Story()
    story.open()
    assert story.add_key(STRANGER, str(cls.ROLE), holder="stranger", kind="human").valid
    verdict = story.tell(of_type(story, cls, "stranger"), STRANGER)
    refused = {"unsigned", "bad_signature", "key_revoked", "role_missing", "actor_mismatch", "header_mismatch"}
    assert verdict.reason not in refused


def test_an_event_that_needs_no_signature_may_have_one_and_keeps_its_signer() -> None:
    story = Story()
    story.open()
    assert story.tell(story.event(events.GoalSet, "olga", text=""), OPERATOR).valid
    assert story.row("Event", 4)["signer"] == OPERATOR.key_id
    assert story.tell(story.event(events.GoalSet, "olga", text="")).valid
    assert story.row("Event", 5)["signer"] is None


def test_a_key_speaks_only_as_the_kind_of_actor_that_it_is_registered_for() -> None:
    story = Story()
    story.open()
    assert story.add_key(STRANGER, "operator", kind="agent").valid
    subject = {"kind": "case", "id": "case-00000000000000000000"}
    fields: dict[str, Any] = {"subject": subject, "decision": "approve", "reason": ""}
    claimed = story.event(events.ApprovalDecided, "stranger", "human", **fields)
    assert story.tell(claimed, STRANGER).reason == "actor_mismatch"
    honest = story.event(events.ApprovalDecided, "stranger", "agent", **fields)
    assert story.tell(honest, STRANGER).reason == "not_a_person"


def test_a_signature_that_was_refused_leaves_no_signer() -> None:
    story = Story()
    assert story.tell(ask(story), STRANGER).reason == "unknown_key"
    assert story.row("Event", len(story.records) - 1)["signer"] is None


def test_an_event_refused_by_its_rule_keeps_its_signer() -> None:
    story = Story()
    event = ask(story)
    story.tell(event, OPERATOR)
    assert story.tell(approval(story, event.subject_id), OPERATOR).reason == "already_decided"
    assert story.row("Event", len(story.records) - 1)["signer"] == OPERATOR.key_id


def test_a_key_counts_only_after_it_was_registered() -> None:
    story = Story()
    event = ask(story)
    early = story.event(
        events.ApprovalDecided,
        "stranger",
        subject={"kind": "case", "id": event.subject_id},
        decision="approve",
        reason="",
    )
    assert story.tell(early, STRANGER).reason == "unknown_key"
    assert story.add_key(STRANGER, "operator").valid
    assert story.row("Event", len(story.records) - 2)["verdict"] == "void"
    assert story.tell(early, STRANGER).kind == "valid"  # the same bytes again, in time


def test_what_a_key_signed_before_its_revocation_stands_and_what_it_signs_after_does_not() -> None:
    story = Story()
    event = ask(story)
    assert story.tell(event, OPERATOR).valid
    offset = len(story.records) - 1
    assert story.revoke(OPERATOR).valid
    assert story.row("Event", offset)["verdict"] == "valid"
    assert story.row("Case", event.subject_id)["status"] == "approved"
    assert story.retry(event.subject_id).reason == "key_revoked"


def test_a_revoked_admin_registers_no_key() -> None:
    story = Story()
    story.open()
    assert story.add_key(STRANGER, "admin").valid
    fields = {"key_id": ADMIN.key_id, "reason": ""}
    assert story.tell(story.event(events.KeyRevoked, "stranger", **fields), STRANGER).valid
    assert story.set("same-person-may-review", "true").reason == "key_revoked"


def test_the_right_event_may_still_come_under_the_id_of_an_unsigned_copy() -> None:
    story = Story()
    event = ask(story)
    assert story.tell(event).reason == "unsigned"
    assert story.tell(event, STRANGER).reason == "unknown_key"
    assert story.tell(event, OPERATOR).kind == "valid"
    assert story.row("Case", event.subject_id)["status"] == "approved"
    assert story.tell(event).kind == "duplicate"


def test_a_signed_approval_copied_from_another_run_is_of_the_wrong_run() -> None:
    """Both runs trust the same keys and hold the same case; the copied value, headers and signature are good there."""
    there, here = Story("there"), Story("here")
    for story in (there, here):
        story.open()
        story.register("t")
    case_id = there.report("t")
    assert here.report("t") == case_id  # ids come from the counter
    record = there.record(approval(there, case_id), OPERATOR)
    assert there.append(record).valid
    verdict = here.append(replace(record, offset=len(here.records)))
    assert (verdict.kind, verdict.reason, verdict.detail) == ("void", "wrong_run", "there")
    assert here.row("Case", case_id)["status"] == "proposed"
    # Its id isn't taken: this run's own approval may have the same.
    assert here.tell(approval(here, case_id), OPERATOR).kind == "valid"


def test_a_copied_approval_with_its_run_rewritten_is_a_bad_signature() -> None:
    there, here = Story("over-there"), Story("over-here")
    for story in (there, here):
        story.open()
        story.register("t")
    case_id = there.report("t")
    here.report("t")
    record = there.record(approval(there, case_id), OPERATOR)
    event = decode(record.value or b"")
    assert isinstance(event, events.ApprovalDecided)
    rewritten = event.model_copy(update={"meta": event.meta.model_copy(update={"run": "over-here"})})
    fresh = here.record(rewritten)
    verdict = here.append(with_signature(fresh, dict(record.headers)[SIGNATURE]))
    assert (verdict.kind, verdict.reason) == ("void", "bad_signature")


def test_every_bit_of_a_signed_value_counts() -> None:
    story = Story()
    event = ask(story)
    record = story.record(event, OPERATOR)
    value = record.value or b""
    for bit in range(0, len(value) * 8, 7):
        changed = (int.from_bytes(value) ^ 1 << bit).to_bytes(len(value))
        verdict = story.append(replace(record, offset=len(story.records), value=changed, headers=record.headers[-1:]))
        assert verdict.kind in ("void", "unreadable"), bit
        assert not verdict.valid, bit
    assert story.row("Case", event.subject_id)["status"] == "proposed"
    assert story.append(replace(record, offset=len(story.records))).kind == "valid"


@pytest.mark.parametrize("name", ["ce_specversion", "ce_id", "ce_type", "ce_subject", "ce_time", "content-type"])
@pytest.mark.parametrize("value", [b"other", b"\xff\xfe", b""])
def test_each_header_that_contradicts_the_value_makes_the_event_void(name: str, value: bytes) -> None:
    story = Story()
    record = story.record(ask(story), OPERATOR)
    verdict = story.append(with_header(record, {name: value}))
    assert (verdict.kind, verdict.reason, verdict.detail) == ("void", "header_mismatch", name)
    assert story.append(replace(record, offset=len(story.records))).kind == "valid"


def test_an_event_without_any_header_but_its_signature_counts() -> None:
    story = Story()
    record = story.record(ask(story), OPERATOR)
    assert story.append(replace(record, headers=record.headers[-1:])).valid


def test_another_source_counts() -> None:
    story = Story()
    record = story.record(ask(story), OPERATOR)
    assert story.append(with_header(record, {"ce_source": b"/elsewhere"})).valid


def test_the_key_that_a_signature_names_is_known_before_the_fold() -> None:
    story = Story()
    event = ask(story)
    assert list(keys(story.record(event, OPERATOR))) == [NodeKey("Key", OPERATOR.key_id)]
    assert list(keys(story.record(event))) == []
    assert list(keys(LogRecord(0, 0, None, None, ((SIGNATURE, b"{"),)))) == []
    assert list(keys(LogRecord(0, 0, None, None, tuple(headers_of(event))))) == []


def test_reviewing_is_for_the_reviewer() -> None:
    story = Story()
    event = ask(story)
    assert story.tell(event, OPERATOR).valid
    assert story.start(event.subject_id, OPERATOR).reason == "role_missing"
    assert story.start(event.subject_id, REVIEWER).reason == "role_missing"
    assert story.start(event.subject_id).valid


@pytest.mark.parametrize("depth", [16, 500, 900, 990, 2_000, 100_000])
def test_a_deep_signature_has_one_verdict_however_deep_its_reader_stands(depth: int) -> None:
    """Python 3.11's JSON reader shares its stack with its callers; the verdict must not depend on who calls."""

    def verdict(story: Story, frames: int) -> str:
        if frames:
            return verdict(story, frames - 1)
        record = story.record(story.event(events.GoalSet, "olga", text=""), OPERATOR)
        (header,) = [value for name, value in record.headers if name == SIGNATURE]
        assert header is not None
        deep = header[:-1] + b',"x":' + b"[" * depth + b"]" * depth + b"}"
        return story.append(replace(record, headers=((SIGNATURE, deep),))).reason

    found = set()
    for frames in (0, 50, 200, 400):
        story = Story()
        story.open()
        found.add(verdict(story, frames))
    assert found == {"bad_signature"}


def test_headers_that_the_client_could_not_read_make_the_event_void_and_leave_its_id() -> None:
    story = Story()
    story.open()
    record = story.record(story.event(events.GoalSet, "olga", text=""))
    assert story.append(replace(record, headers=UNREADABLE_HEADERS)).reason == "headers_unreadable"
    assert story.append(replace(record, offset=record.offset + 1)).kind == "valid"
