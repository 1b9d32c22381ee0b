"""The issue's list of bad input, as far as it needs no broker; and that no reason code goes untested."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import forktrail_projectors
from forktrail_projectors.graph.memory import MemoryGraph
from forktrail_projectors.projector import Projector
from forktrail_projectors.record import LogRecord
from forktrail_projectors.rules.reasons import IN_WORDS
from forktrail_projectors.state import NodeKey
from forktrail_schemas import body, declared, events, wire
from forktrail_schemas.events import EVENT_TYPES
from forktrail_schemas.events.base import Event
from forktrail_schemas.headers import SIGNATURE
from forktrail_schemas.wire import build, encode
from support.avro import long
from support.refused_authority import AUTHORITY, with_signature
from support.refused_changes import CHANGES
from support.refused_evidence import EVIDENCE, observed, running
from support.refused_graph import GRAPH
from support.refused_log import LOG
from support.refused_schemas import SCHEMAS
from support.refused_work import WORK
from support.samples import sample
from support.story import ADMIN, OPERATOR, RUNNER, STRANGER, TOPIC_ID, Story

REFUSALS = [*LOG, *SCHEMAS, *EVIDENCE, *AUTHORITY, *GRAPH, *CHANGES, *WORK]
# Provoked in test_fold.py: by a second event under one id, and by hand, since no log leads there.
ELSEWHERE = {"id_reused", "id_collision", "headers_unreadable"}


def opened() -> Story:
    story = Story()
    story.open()
    story.register("t")
    return story


def goal(story: Story) -> bytes:
    return encode(story.event(events.GoalSet, text="abc"))


# A record's value, and the verdict and reason that it is to have.


def value_of(story: Story, kind: str) -> bytes | None:
    good = goal(story)
    return {
        "none": None,
        "empty": b"",
        "text": b'{"event": "json"}',
        "short": good[:9],
        "confluent": b"\x00\x00\x00\x00\x01" + good[10:],
        "fingerprint": b"\xc3\x01" + b"\x01" * 8 + good[10:],
        "truncated": good[:-1],
        "header-alone": good[:10],
        "trailing": good + b"\x00",
        "not-utf-8": good[:-3] + b"\xff\xfe\xfd",
        "huge-length": good[:10] + long(2**40),
        "nul": good[:-3] + b"a\x00c",
        "upper-case-uuid": good[:11] + good[11:47].upper().replace(b"0", b"A") + good[47:],
    }[kind]


@pytest.mark.parametrize(
    ("value", "kind", "reason"),
    [
        ("none", "unreadable", "no_value"),
        ("empty", "unreadable", "not_avro"),
        ("text", "unreadable", "not_avro"),
        ("short", "unreadable", "not_avro"),
        ("confluent", "unreadable", "not_avro"),
        ("fingerprint", "unreadable", "unknown_schema"),
        ("truncated", "unreadable", "truncated"),
        ("header-alone", "unreadable", "truncated"),
        ("not-utf-8", "unreadable", "truncated"),
        ("huge-length", "unreadable", "truncated"),
        ("trailing", "unreadable", "trailing_bytes"),
        ("nul", "void", "invalid_data"),
        ("upper-case-uuid", "void", "invalid_data"),
    ],
)
def test_what_is_no_event_has_a_verdict_and_changes_nothing_else(value: str, kind: str, reason: str) -> None:
    story = opened()
    before = story.rows()
    record = LogRecord(len(story.records), 1, None, value_of(story, value))
    verdict = story.append(record)
    assert (verdict.kind, verdict.reason, verdict.event_id) == (kind, reason, "")
    assert verdict.type == ("forktrail.GoalSet" if kind == "void" else "")
    after = story.rows()
    assert after.keys() - before.keys() == {NodeKey("Event", record.offset)}
    assert {key: row for key, row in after.items() if key in before} == before
    # The rest goes on, and the next good event is folded.
    assert story.tell(story.event(events.GoalSet, text="on")).kind == "valid"
    assert story.projector.recomputed_digest() == story.projector.state_digest


@pytest.mark.parametrize("cls", EVENT_TYPES, ids=lambda cls: str(cls.__name__))
def test_an_event_of_any_type_cut_anywhere_is_unreadable_and_the_rest_goes_on(cls: type[Event]) -> None:
    story = opened()
    value = encode(build(cls, sample(cls)))
    start = len(story.records)
    cuts = [LogRecord(start + length, 0, None, value[:length]) for length in range(len(value))]
    verdicts = story.projector.apply(cuts)
    assert {verdict.kind for verdict in verdicts} == {"unreadable"}
    assert {verdict.reason for verdict in verdicts} == {"not_avro", "truncated"}
    story.records += cuts
    assert story.tell(story.event(events.GoalSet, text="on")).kind == "valid"


def test_an_unreadable_record_before_the_opening_does_not_keep_the_run_from_opening() -> None:
    story = Story()
    assert story.append(LogRecord(0, 0, None, b"hello")).reason == "not_avro"
    assert story.tell(story.event(events.GoalSet, text="early")).reason == "run_not_open"
    story.open()
    assert story.row("Run", "run")["status"] == "open"


def test_details_are_the_same_under_every_version_of_the_libraries() -> None:
    """They are in the state digest; so they are fixed here, word for word."""
    story = opened()
    record = story.record(story.event(events.GoalSet, "olga", text="x"), OPERATOR)
    lines = [
        story.append(LogRecord(len(story.records), 0, None, value_of(story, kind))).detail
        for kind in ("none", "text", "truncated", "trailing", "nul", "not-utf-8")
    ]
    lines.append(story.append(replace(with_signature(record, b"{,}"), offset=len(story.records))).detail)
    assert lines == [
        "",
        "the value is not in Avro single-object encoding (C3 01 and a fingerprint)",
        "forktrail.GoalSet ends or breaks inside",
        "forktrail.GoalSet leaves 1 bytes over",
        "forktrail.GoalSet: text breaks its schema",
        "forktrail.GoalSet ends or breaks inside",
        "not a DSSE envelope with one signature",
    ]


# Two writers at once: the log's order settles it.


def test_of_two_approvals_the_first_on_the_log_counts() -> None:
    for first, second in (("approve", "deny"), ("deny", "approve")):
        story = opened()
        assert story.add_key(STRANGER, "operator").valid
        case_id = story.report("t")
        fields: dict[str, Any] = {"subject": {"kind": "case", "id": case_id}, "reason": ""}
        one = story.event(events.ApprovalDecided, "olga", decision=first, **fields)
        two = story.event(events.ApprovalDecided, "stranger", decision=second, **fields)
        assert story.tell(one, OPERATOR).kind == "valid"
        verdict = story.tell(two, STRANGER)
        assert (verdict.kind, verdict.reason) == ("void", "already_decided")
        assert verdict.detail.endswith("by olga")
        assert story.row("Case", case_id)["approver"] == "olga"


def test_of_two_runners_the_first_on_the_log_takes_the_case() -> None:
    story = Story()
    case_id = running(story)
    assert story.add_key(STRANGER, "runner").valid
    assert story.start(case_id, STRANGER).reason == "already_started"
    other = story.record(story.observation(case_id, "not_reproduced", STRANGER), STRANGER)
    assert story.append(other).reason == "wrong_runner"
    assert story.tell(story.observation(case_id, "reproduced"), RUNNER).kind == "valid"


def test_decisions_out_of_order_wait_for_nobody() -> None:
    """Each is refused where it stands; told again in order, with ids of their own, they count."""
    story = opened()
    case_id = story.report("t")
    assert story.review(case_id)[1].reason == "no_observation"
    assert story.tell(story.observation(case_id, "reproduced"), RUNNER).reason == "not_started"
    assert story.start(case_id).reason == "not_approved"
    finding = story.settle(case_id)
    assert story.row("Finding", finding)["test"] == "t"


def test_a_forged_observation_leaves_the_right_one_its_place_and_its_id() -> None:
    story = Story()
    case_id = running(story)
    right = story.observation(case_id, "not_reproduced")
    forged = right.model_copy(update={"outcome": "reproduced"})
    assert story.tell(forged, RUNNER).reason == "receipt_mismatch"
    assert story.tell(forged, STRANGER).reason == "unknown_key"
    assert story.tell(right, RUNNER).kind == "valid"
    assert story.row("Case", case_id)["outcome"] == "not_reproduced"


def test_a_setting_by_anyone_but_the_admin_changes_nothing() -> None:
    story = Story()
    case_id = observed(story)
    fields = {"name": "same-person-may-review", "value": "true"}
    for key, actor in ((OPERATOR, "olga"), (OPERATOR, "ada"), (STRANGER, "ada"), (RUNNER, "runner-1"), (None, "ada")):
        assert not story.tell(story.event(events.SettingChanged, actor, **fields), key).valid
    assert not story.graph.nodes([NodeKey("Setting", "same-person-may-review")])
    assert story.row("Case", case_id)["status"] == "observed"


def test_headers_of_any_shape_never_stop_the_fold() -> None:
    story = opened()
    record = story.record(story.event(events.GoalSet, "ada", text="x"), ADMIN)
    shapes: list[tuple[tuple[str, bytes | None], ...]] = [
        ((SIGNATURE, None),),
        ((SIGNATURE, b""),),
        ((SIGNATURE, b"[" * 100_000),),
        ((SIGNATURE, b"1" * 10_000),),
        ((SIGNATURE, b'{"payloadType":"\\ud800","signatures":[{"keyid":"\\u0000","sig":"\\ud800"}]}'),),
        (("", None), ("", None)),
        (("ce_time", b"\xff" * 100),),
        (("ce_time", b"9" * 100_000),),
        (("ce_id", None),),
    ]
    for headers in shapes:
        verdict = story.append(replace(record, offset=len(story.records), headers=headers))
        assert verdict.kind in ("void", "valid", "duplicate")
        assert story.projector.recomputed_digest() == story.projector.state_digest


def test_a_graph_thrown_away_is_folded_anew_to_the_same_digest() -> None:
    story = opened()
    story.settle(story.report("t"))
    anew = Projector(MemoryGraph(), TOPIC_ID)
    anew.apply(story.records)
    assert anew.state_digest == story.projector.state_digest


# No reason code without a case.

RULE_FILES = [
    path
    for path in Path(forktrail_projectors.__file__).parent.rglob("*.py")
    if path.name in ("authority.py", "fold.py") or path.parent.name == "rules"
]
CODE_ARGUMENT = {"Refused": 0, "_refused": 0, "existing": 2}


def codes_in(path: Path) -> Iterator[str]:
    """Every reason code that the file can refuse an event for, as it stands in its text."""
    for node in ast.walk(ast.parse(path.read_text())):
        if not isinstance(node, ast.Call):
            continue
        name = getattr(node.func, "id", getattr(node.func, "attr", ""))
        place = CODE_ARGUMENT.get(name)
        if name == "Verdict" and len(node.args) > 2 and ast.unparse(node.args[1]) == "'void'":
            place = 2
        if place is not None and isinstance(node.args[place], ast.Constant):
            yield str(node.args[place].value)  # type: ignore[attr-defined]  # checked in the line above


def test_every_reason_code_in_the_rules_is_provoked_by_a_case_and_none_is_made_up() -> None:
    in_the_source = {code for path in RULE_FILES for code in codes_in(path)}
    assert in_the_source == {refusal.code for refusal in REFUSALS} | ELSEWHERE


def test_every_reason_code_has_words_for_people() -> None:
    decoding = {"invalid_data", "not_avro", "trailing_bytes", "truncated", "unknown_schema", "schema_incompatible"}
    other = {"no_value", "no_rule"}
    assert set(IN_WORDS) == {code for path in RULE_FILES for code in codes_in(path)} | decoding | other


def test_every_fault_of_decoding_is_provoked() -> None:
    trees = [ast.parse(Path(str(module.__file__)).read_text()) for module in (wire, body, declared)]
    found = {
        str(word.value.value)
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        for word in node.keywords
        if word.arg == "code" and isinstance(word.value, ast.Constant)
    }
    # All but the last are provoked above; that one where schemas are declared.
    provoked = {"not_avro", "unknown_schema", "truncated", "trailing_bytes", "invalid_data", "schema_incompatible"}
    assert found == provoked


def test_no_two_cases_have_one_name() -> None:
    names = [refusal.name for refusal in REFUSALS]
    assert len(set(names)) == len(names)
