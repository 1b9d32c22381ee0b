from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from forktrail_schemas.events import EVENT_TYPES
from forktrail_schemas.generate import AVSC, SHARED, generated_files, main

EVENT_FILES = sorted(path for path in AVSC.rglob("*.avsc") if path.parent.name in ("log", "evidence"))


def records_named(schema: Any, name: str) -> list[Any]:
    """Every definition of the record anywhere in the schema."""
    if isinstance(schema, list):
        return [found for item in schema for found in records_named(item, name)]
    if not isinstance(schema, dict):
        return []
    here = [schema] if schema.get("type") == "record" and schema.get("name") == name else []
    return here + [found for item in schema.values() for found in records_named(item, name)]


def test_the_classes_and_avsc_files_on_disk_are_just_what_the_avsc_say() -> None:
    assert [path.name for path, text in generated_files().items() if path.read_text() != text] == []


def test_check_says_so_with_its_exit_code() -> None:
    assert main(["--check"]) == 0


@pytest.mark.parametrize("shared", ["Meta", "BlobRef"])
def test_every_copy_of_a_shared_record_is_the_shared_one(shared: str) -> None:
    original = json.loads((AVSC / SHARED / f"{shared}.avsc").read_text())
    copies = [copy for path in EVENT_FILES for copy in records_named(json.loads(path.read_text()), shared)]
    assert copies == [original] * len(copies)
    assert len(copies) == {"Meta": len(EVENT_FILES), "BlobRef": 2}[shared]


@pytest.mark.parametrize("path", EVENT_FILES, ids=lambda path: str(path.stem))
def test_an_event_is_one_record_of_its_files_name_with_meta_first(path: Path) -> None:
    schema = json.loads(path.read_text())
    assert (schema["type"], schema["name"], schema["namespace"]) == ("record", path.stem, "forktrail")
    assert schema["fields"][0]["name"] == "meta"


def test_every_event_file_has_a_class() -> None:
    assert sorted(cls.__name__ for cls in EVENT_TYPES) == sorted(path.stem for path in EVENT_FILES)


# DESIGN.md, "Events": who signs what.
SIGNED_BY = {
    "admin": {
        "RunOpened",
        "RunClosed",
        "KeyRegistered",
        "KeyRevoked",
        "SettingChanged",
        "BudgetSet",
        "TestRegistered",
    },
    "operator": {"ApprovalDecided", "RevisionAdvanced", "RetryRequested", "FindingWithdrawn"},
    "reviewer": {"ReviewDecided"},
    "runner": {"TestStarted", "ObservationRecorded"},
    None: {"ReportFiled", "TestProposed", "GoalSet"},
}


def test_each_type_asks_for_the_role_that_the_design_says() -> None:
    found = {role: {cls.__name__ for cls in EVENT_TYPES if role == cls.ROLE} for role in SIGNED_BY}
    assert found == SIGNED_BY
