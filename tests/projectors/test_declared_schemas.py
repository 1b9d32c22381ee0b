"""What a run can read beside the current built-in schemas: earlier versions, and what its log declares."""

from __future__ import annotations

import copy
import io
import json
from dataclasses import replace
from typing import Any

import pytest
from fastavro import parse_schema, schemaless_writer

from forktrail_projectors.graph.memory import MemoryGraph
from forktrail_projectors.projector import Projector
from forktrail_projectors.record import LogRecord, Verdict
from forktrail_schemas import events
from forktrail_schemas.catalog import schema_of
from forktrail_schemas.declared import declared_schema
from forktrail_schemas.headers import headers_of
from forktrail_schemas.ids import derived_id
from forktrail_schemas.record import Record
from forktrail_schemas.signatures import SigningKey
from support.refused_schemas import declaration
from support.story import HOLDERS, OPERATOR, REVIEWER, TOPIC_ID, Story


def opened() -> Story:
    story = Story()
    story.open()
    story.register("root")
    return story


def later(cls: type[Record], **field: Any) -> dict[str, Any]:
    """The schema of a built-in type with one field more."""
    schema: dict[str, Any] = json.loads(schema_of(cls).text)
    schema["forktrail"]["version"] = 9
    schema["fields"].append(field)
    return schema


SEVERE = later(events.ReportFiled, name="severity", type="int")
FOREIGN: dict[str, Any] = {
    "type": "record",
    "name": "ScanProgressed",
    "namespace": "acme",
    "fields": [SEVERE["fields"][0], {"name": "percent", "type": "int"}],
}


def under(story: Story, schema: Any, fields: dict[str, Any], key: SigningKey | None = None) -> LogRecord:
    """A record written under a schema, as a service with fastavro writes it."""
    body = io.BytesIO()
    schemaless_writer(body, parse_schema(copy.deepcopy(schema)), fields)
    value = b"\xc3\x01" + declared_schema(json.dumps(schema)).fingerprint + body.getvalue()
    headers = [("forktrail-signature", key.sign(value).to_json().encode())] if key else []
    return LogRecord(len(story.records), 1_700_000_000_000, None, value, tuple(headers))


def report(story: Story, **more: Any) -> dict[str, Any]:
    """The fields of a report on the registered test."""
    fields = story.event(events.ReportFiled, test_id="root", summary="seen").model_dump()
    return {**fields, **more}


def declare(story: Story, schema: Any) -> None:
    assert story.append(declaration(story, json.dumps(schema))).valid


def test_a_report_of_version_1_folds_and_keeps_every_word() -> None:
    story = opened()
    text = "seen in the log\n\n1. send it\n2. look at " + "x" * 300
    old = story.event(events.ReportFiledV1, "scanner-7", "service", test_id="root", summary=text)
    assert story.tell(old).valid
    row = story.row("Report", derived_id("report", old.meta.event_id))
    assert (row["summary"], row["details"], row["outcome"]) == ("seen in the log", text, "case_opened")
    story.settle(derived_id("case", old.meta.event_id))


def test_a_version_that_this_code_does_not_know_is_read_once_it_is_declared() -> None:
    story = opened()
    early = under(story, SEVERE, report(story, severity=3))
    assert story.append(early) == Verdict(
        early.offset,
        "unreadable",
        "unknown_schema",
        f"no schema with fingerprint {declared_schema(json.dumps(SEVERE)).fingerprint.hex()} is known",
    )
    declare(story, SEVERE)
    fields = report(story, severity=3)
    verdict = story.append(under(story, SEVERE, fields))
    assert (verdict.kind, verdict.type, verdict.event_id) == (
        "valid",
        "forktrail.ReportFiled",
        fields["meta"]["event_id"],
    )
    assert story.row("Report", derived_id("report", fields["meta"]["event_id"]))["summary"] == "seen"
    # What is readable is decided where a record stands: the first stays unreadable, and its id is free.
    assert story.row("Event", early.offset)["verdict"] == "unreadable"
    again = story.append(replace(early, offset=len(story.records)))
    assert (again.kind, again.event_id != verdict.event_id) == ("valid", True)
    assert story.append(replace(early, offset=len(story.records))).kind == "duplicate"


def test_it_is_held_to_all_that_the_type_is_held_to() -> None:
    story = opened()
    schema = later(events.ApprovalDecided, name="weight", type="int")
    declare(story, schema)
    case_id = story.report("root")
    subject = {"kind": "case", "id": case_id}

    def approval(key: SigningKey | None, holder: str = "olga", **more: Any) -> Verdict:
        fields: dict[str, Any] = {"subject": subject, "decision": "approve", "reason": ""}
        event = story.event(events.ApprovalDecided, holder, **fields)
        return story.append(under(story, schema, {**event.model_dump(), "weight": 1, **more}, key))

    assert approval(None).reason == "unsigned"
    assert approval(REVIEWER, HOLDERS[REVIEWER.key_id]).reason == "role_missing"
    assert approval(OPERATOR, decision="deny", reason="a\0b").reason == "invalid_data"
    elsewhere = story.event(events.GoalSet, "olga", text="").meta.model_dump() | {"run": "elsewhere"}
    assert approval(OPERATOR, meta=elsewhere).reason == "wrong_run"
    assert approval(OPERATOR).valid
    assert story.row("Case", case_id)["approver"] == "olga"


def test_data_that_breaks_the_type_is_void_and_says_which_type() -> None:
    story = opened()
    declare(story, SEVERE)
    verdict = story.append(under(story, SEVERE, report(story, severity=3, test_id="No Test")))
    assert (verdict.kind, verdict.reason, verdict.type) == ("void", "invalid_data", "forktrail.ReportFiled")
    assert verdict.detail == "forktrail.ReportFiled: test_id breaks its schema"


def test_headers_are_compared_with_what_was_read() -> None:
    story = opened()
    declare(story, SEVERE)
    fields = report(story, severity=3)
    read = events.ReportFiled.model_validate({name: fields[name] for name in events.ReportFiled.model_fields})
    record = under(story, SEVERE, fields)
    headers = dict(headers_of(read))
    wrong = headers | {"ce_subject": b"elsewhere"}
    assert story.append(replace(record, headers=tuple(wrong.items()))).reason == "header_mismatch"
    right = replace(record, offset=len(story.records), headers=tuple(headers.items()))
    assert story.append(right).valid


def test_a_built_in_type_that_lacks_what_is_needed_is_unreadable() -> None:
    story = opened()
    schema = later(events.ReportFiled, name="severity", type="int")
    schema["fields"] = [field for field in schema["fields"] if field["name"] != "summary"]
    declare(story, schema)
    fields = report(story, severity=3)
    del fields["summary"]
    verdict = story.append(under(story, schema, fields))
    assert (verdict.kind, verdict.reason) == ("unreadable", "schema_incompatible")


def test_a_type_that_no_rule_knows_is_unhandled_and_named() -> None:
    story = opened()
    declare(story, FOREIGN)
    meta = report(story)["meta"]
    before = story.rows()
    record = under(story, FOREIGN, {"meta": meta, "percent": 50})
    verdict = story.append(record)
    assert verdict == Verdict(record.offset, "unhandled", "no_rule", "", meta["event_id"], "acme.ScanProgressed")
    assert len(story.rows()) == len(before) + 1
    assert (story.row("Event", record.offset)["id"], story.row("Event", record.offset)["type"]) == (
        meta["event_id"],
        "acme.ScanProgressed",
    )
    # It takes no id: the same id may still come with an event.
    assert story.tell(story.event(events.GoalSet, event_id=meta["event_id"], text="")).valid


@pytest.mark.parametrize(("change", "reason"), [(slice(None, -1), "truncated"), (slice(None), "trailing_bytes")])
def test_a_foreign_record_that_does_not_end_with_its_bytes_is_unreadable(change: slice, reason: str) -> None:
    story = opened()
    declare(story, FOREIGN)
    record = under(story, FOREIGN, {"meta": report(story)["meta"], "percent": 50})
    value = (record.value or b"")[change] + (b"\x00" if reason == "trailing_bytes" else b"")
    verdict = story.append(replace(record, value=value))
    assert (verdict.kind, verdict.reason) == ("unreadable", reason)


def test_a_log_with_declarations_folds_alike_in_one_batch_and_record_by_record() -> None:
    story = opened()
    story.append(under(story, SEVERE, report(story, severity=1)))
    declare(story, SEVERE)
    story.append(under(story, SEVERE, report(story, severity=2)))
    declare(story, FOREIGN)
    story.append(under(story, FOREIGN, {"meta": report(story)["meta"], "percent": 50}))
    at_once = Projector(MemoryGraph(), TOPIC_ID)
    verdicts = at_once.apply(story.records)
    assert at_once.state_digest == story.projector.state_digest
    assert [verdict.kind for verdict in verdicts[-5:]] == ["unreadable", "valid", "valid", "valid", "unhandled"]
