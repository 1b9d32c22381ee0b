"""Every way in which an event is refused for who sent it, or for being in the wrong place."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from forktrail_projectors.record import LogRecord
from forktrail_schemas import events
from forktrail_schemas.events.base import Event
from forktrail_schemas.headers import SIGNATURE
from forktrail_schemas.signatures import SigningKey
from support.refusals import Refusal, case
from support.story import ADMIN, HOLDERS, OPERATOR, REVIEWER, STRANGER, Story

AUTHORITY: list[Refusal] = []


def with_signature(record: LogRecord, header: bytes | None) -> LogRecord:
    """The record with another signature header, or with none."""
    headers = tuple(item for item in record.headers if item[0] != SIGNATURE)
    return replace(record, headers=headers if header is None else (*headers, (SIGNATURE, header)))


def with_header(record: LogRecord, changes: Mapping[str, bytes]) -> LogRecord:
    """The record with other values for some headers."""
    return replace(record, headers=tuple((name, changes.get(name, value)) for name, value in record.headers))


def signature_of(record: LogRecord) -> dict[str, Any]:
    """The record's signature header as JSON."""
    found: dict[str, Any] = json.loads(dict(record.headers)[SIGNATURE] or b"")
    return found


def ask(story: Story) -> Event:
    """An approval by the operator, of a case that waits for one."""
    story.open()
    story.register("t")
    return approval(story, story.report("t"))


def approval(story: Story, case_id: str, actor: str = HOLDERS[OPERATOR.key_id]) -> Event:
    """An approval of the case, not written."""
    subject = {"kind": "case", "id": case_id}
    return story.event(events.ApprovalDecided, actor, subject=subject, decision="approve", reason="")


@case(AUTHORITY, "unsigned", takes_id=False)
def an_unsigned_approval(story: Story) -> LogRecord:
    return story.record(ask(story))


@case(AUTHORITY, "unsigned", takes_id=False)
def an_unsigned_opening(story: Story) -> LogRecord:
    fields = {"goal": "", "revision": "r1", "admin_public_key": ADMIN.public_key}
    return story.record(story.event(events.RunOpened, "ada", **fields))


@case(AUTHORITY, "unsigned", takes_id=False)
def an_empty_signature_after_a_good_one(story: Story) -> LogRecord:
    record = story.record(ask(story), OPERATOR)
    return replace(record, headers=(*record.headers, (SIGNATURE, None)))


@case(AUTHORITY, "bad_signature", takes_id=False)
def a_signature_that_is_no_json(story: Story) -> LogRecord:
    return with_signature(story.record(ask(story)), b"\xff\xfe")


@case(AUTHORITY, "bad_signature", takes_id=False)
def a_signature_on_an_event_that_needs_none_is_checked_too(story: Story) -> LogRecord:
    story.open()
    return with_signature(story.record(story.event(events.GoalSet, text="")), b"{}")


@case(AUTHORITY, "bad_signature", takes_id=False)
def a_key_id_that_no_text_can_hold(story: Story) -> LogRecord:
    record = story.record(ask(story), OPERATOR)
    header = json.dumps({**signature_of(record), "signatures": [{"keyid": "\ud800", "sig": ""}]})
    return with_signature(record, header.encode())


@case(AUTHORITY, "bad_signature", takes_id=False)
def a_payload_type_that_no_text_can_hold(story: Story) -> LogRecord:
    record = story.record(ask(story), OPERATOR)
    return with_signature(record, json.dumps({**signature_of(record), "payloadType": "\ud800"}).encode())


@case(AUTHORITY, "bad_signature", takes_id=False)
def a_signature_by_a_stranger_under_the_operators_name(story: Story) -> LogRecord:
    record = story.record(ask(story), STRANGER)
    (entry,) = signature_of(record)["signatures"]
    forged = {**signature_of(record), "signatures": [{**entry, "keyid": OPERATOR.key_id}]}
    return with_signature(record, json.dumps(forged).encode())


@case(AUTHORITY, "bad_signature", takes_id=False)
def a_value_with_one_bit_changed(story: Story) -> LogRecord:
    record = story.record(ask(story), OPERATOR)
    value = bytearray(record.value or b"")
    value[-2] ^= 2  # the decision: symbol 0, approve, becomes zig-zag 2, symbol 1, deny
    return replace(record, value=bytes(value))


@case(AUTHORITY, "bad_signature", takes_id=False)
def the_signature_of_another_event(story: Story) -> LogRecord:
    record = story.record(ask(story), OPERATOR)
    other = story.record(story.event(events.GoalSet, HOLDERS[OPERATOR.key_id], text=""), OPERATOR)
    return with_signature(record, dict(other.headers)[SIGNATURE])


def _signed_as(story: Story, payload_type: str, claimed: str) -> LogRecord:
    record = story.record(ask(story))
    signature = OPERATOR.sign(record.value or b"", payload_type)
    return with_signature(record, replace(signature, payload_type=claimed).to_json().encode())


@case(AUTHORITY, "bad_signature", takes_id=False)
def a_signature_under_another_payload_type(story: Story) -> LogRecord:
    return _signed_as(story, "application/json", "application/json")


@case(AUTHORITY, "bad_signature", takes_id=False)
def a_signature_relabelled_with_the_right_payload_type(story: Story) -> LogRecord:
    return _signed_as(story, "application/json", "application/avro")


@case(AUTHORITY, "bad_signature", takes_id=False)
def two_signatures_in_one_envelope(story: Story) -> LogRecord:
    record = story.record(ask(story), OPERATOR)
    (entry,) = signature_of(record)["signatures"]
    return with_signature(record, json.dumps({**signature_of(record), "signatures": [entry, entry]}).encode())


@case(AUTHORITY, "unknown_key", takes_id=False)
def a_key_that_nobody_registered(story: Story) -> LogRecord:
    return story.record(ask(story), STRANGER)


@case(AUTHORITY, "unknown_key", takes_id=False)
def an_opening_signed_by_another_key_than_it_carries(story: Story) -> LogRecord:
    fields = {"goal": "", "revision": "r1", "admin_public_key": ADMIN.public_key}
    return story.record(story.event(events.RunOpened, "ada", **fields), STRANGER)


@case(AUTHORITY, "bad_signature", takes_id=False)
def an_opening_whose_signature_is_not_over_its_bytes(story: Story) -> LogRecord:
    fields = {"goal": "", "revision": "r1", "admin_public_key": ADMIN.public_key}
    record = story.record(story.event(events.RunOpened, "ada", **fields))
    return with_signature(record, ADMIN.sign(b"other bytes").to_json().encode())


@case(AUTHORITY, "key_revoked", takes_id=False)
def a_key_revoked_before(story: Story) -> LogRecord:
    event = ask(story)
    story.revoke(OPERATOR)
    return story.record(event, OPERATOR)


def _by(story: Story, key: SigningKey) -> LogRecord:
    event = ask(story)
    return story.record(approval(story, event.subject_id, HOLDERS[key.key_id]), key)


@case(AUTHORITY, "role_missing", takes_id=False)
def an_approval_by_the_reviewer(story: Story) -> LogRecord:
    return _by(story, REVIEWER)


@case(AUTHORITY, "role_missing", takes_id=False)
def an_approval_by_the_admin(story: Story) -> LogRecord:
    return _by(story, ADMIN)


@case(AUTHORITY, "role_missing", takes_id=False)
def a_setting_changed_by_the_operator(story: Story) -> LogRecord:
    story.open()
    fields = {"name": "same-person-may-review", "value": "true"}
    return story.record(story.event(events.SettingChanged, HOLDERS[OPERATOR.key_id], **fields), OPERATOR)


@case(AUTHORITY, "actor_mismatch", takes_id=False)
def an_approval_in_the_name_of_another(story: Story) -> LogRecord:
    event = ask(story)
    return story.record(approval(story, event.subject_id, HOLDERS[REVIEWER.key_id]), OPERATOR)


@case(AUTHORITY, "actor_mismatch", takes_id=False)
def a_signed_report_in_the_name_of_another(story: Story) -> LogRecord:
    story.open()
    story.register("t")
    return story.record(story.event(events.ReportFiled, "rita", test_id="t", summary=""), OPERATOR)


@case(AUTHORITY, "run_not_open", takes_id=False)
def an_event_before_the_opening(story: Story) -> LogRecord:
    return story.record(story.event(events.GoalSet, text="early"))


@case(AUTHORITY, "wrong_run", takes_id=False)
def an_event_of_another_run(story: Story) -> LogRecord:
    story.open()
    return story.record(
        Story("elsewhere").event(events.GoalSet, event_id="0" * 8 + "-0000-7000-8000-" + "9" * 12, text="")
    )


@case(AUTHORITY, "wrong_run", takes_id=False)
def a_second_opening_of_another_run(story: Story) -> LogRecord:
    story.open()
    fields = {"goal": "", "revision": "r1", "admin_public_key": ADMIN.public_key}
    id = "0" * 8 + "-0000-7000-8000-" + "9" * 12
    return story.record(Story("elsewhere").event(events.RunOpened, "ada", event_id=id, **fields), ADMIN)


@case(AUTHORITY, "header_mismatch", takes_id=False)
def a_header_of_another_type(story: Story) -> LogRecord:
    return with_header(story.record(ask(story), OPERATOR), {"ce_type": b"forktrail.GoalSet"})


@case(AUTHORITY, "header_mismatch", takes_id=False)
def a_header_of_another_id(story: Story) -> LogRecord:
    return with_header(story.record(ask(story), OPERATOR), {"ce_id": b"other"})
