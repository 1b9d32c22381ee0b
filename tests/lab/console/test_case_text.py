"""A case's file as sections: what isn't right, or isn't known, is said in words."""

from __future__ import annotations

import dataclasses

import pytest

from forktrail_lab.console.case_file import CaseFile, Part
from forktrail_lab.console.case_text import case_lines

FINDING: Part = {
    "id": "finding-1",
    "test": "door",
    "revision": "r1",
    "current": True,
    "withdrawn": False,
    "withdrawn_by": None,
    "withdrawn_reason": None,
    "capabilities": ["way-in"],
}
OBSERVATION: Part = {
    "id": "observation-1",
    "outcome": "reproduced",
    "evidence_sha256": "e" * 64,
    "evidence_bytes": 1,
    "receipt_valid": True,
    "receipt_fault": None,
    "at": "2026-01-01T00:00:00.000Z",
    "offset": 7,
}
FILE = CaseFile(
    case={"id": "case-1", "revision_active": False},
    test={"requires": []},
    sends={"fault": "evidence_missing: no blob", "requests": [], "bounds": None, "rules": []},
    opened={"words": "two\nlines"},
    rests_on=[],
    approval=None,
    observation=None,
    review=None,
    finding=None,
)


def section(file: CaseFile, title: str) -> list[str]:
    """The lines under a heading."""
    lines = case_lines(file)
    start = lines.index(title) + 1
    return lines[start : lines.index("", start) if "" in lines[start:] else None]


def test_what_there_is_not_is_said() -> None:
    for title in ("rests on", "approval", "observation", "review", "finding"):
        assert section(FILE, title) == ["  none"]
    assert section(FILE, "test") == ["  requires  -"]
    assert section(FILE, "what it sends") == ["  not known  evidence_missing: no blob"]


def test_words_of_people_stay_on_one_line() -> None:
    assert section(FILE, "opened") == ["  words  two\\nlines"]


@pytest.mark.parametrize(
    ("changes", "standing"),
    [
        ({}, "current"),
        ({"current": False}, "history, of revision r1"),
        ({"current": False, "withdrawn": True, "withdrawn_by": "olga", "withdrawn_reason": ""}, "withdrawn by olga"),
        (
            {"current": False, "withdrawn": True, "withdrawn_by": "olga", "withdrawn_reason": "planted"},
            "withdrawn by olga: planted",
        ),
    ],
)
def test_a_finding_says_whether_it_counts(changes: Part, standing: str) -> None:
    file = dataclasses.replace(FILE, rests_on=[FINDING | changes], finding=FINDING | changes)
    assert section(file, "rests on") == [f"  finding-1  door, gives way-in; {standing}"]
    assert section(file, "finding")[1] == f"  standing      {standing}"


@pytest.mark.parametrize(
    ("changes", "shown"),
    [
        ({}, "  receipt   valid"),
        ({"receipt_valid": False, "receipt_fault": "it states something else"}, "  receipt   NOT valid: it states"),
    ],
)
def test_a_receipt_says_what_is_wrong_with_it(changes: Part, shown: str) -> None:
    lines = section(dataclasses.replace(FILE, observation=OBSERVATION | changes), "observation")
    assert lines[2] == f"  evidence  sha256 {'e' * 64}, 1 byte"
    assert lines[3].startswith(shown)


def test_a_rule_is_told_condition_by_condition() -> None:
    request = {
        "id": "knock", "method": "GET", "path": "/", "identity": "guest", "identity_headers": ["x-key"],
        "headers": {"accept": "*/*"}, "body": "a\nb", "captures": {"code": "/code"},
    }  # fmt: skip
    rules = [{"outcome": "reproduced", "when": ["knock is answered with 200"]}]
    sends: Part = {"fault": None, "requests": [request], "bounds": "little", "rules": rules}
    assert section(dataclasses.replace(FILE, sends=sends), "what it sends") == [
        "  knock    GET /",
        "           as guest: x-key",
        "           accept: */*",
        "           body: a\\nb",
        "           keeps code from /code of the answer",
        "  bounds   little",
        "  outcome  reproduced where",
        "             knock is answered with 200",
    ]
