from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from forktrail_schemas.events import EARLIER_VERSIONS, EVENT_TYPES
from forktrail_schemas.generate import (
    AVSC,
    EVENT_FAMILIES,
    SHARED,
    _Module,
    current_files,
    earlier_files,
    generated_files,
    main,
)

CURRENT_FILES = sorted(path for family in EVENT_FAMILIES for path in current_files(AVSC / family))
EVENT_FILES = [*CURRENT_FILES, *earlier_files(AVSC)]


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
    assert len(copies) == {"Meta": len(EVENT_FILES), "BlobRef": 6}[shared]


@pytest.mark.parametrize("path", EVENT_FILES, ids=lambda path: str(path.stem))
def test_an_event_is_one_record_of_its_files_name_with_meta_first(path: Path) -> None:
    schema = json.loads(path.read_text())
    name, _, version = path.stem.partition(".v")
    assert (schema["type"], schema["name"], schema["namespace"]) == ("record", name, "forktrail")
    assert schema["fields"][0]["name"] == "meta"
    if version:
        assert schema["forktrail"].get("version", 1) == int(version)


def test_every_event_file_has_a_class() -> None:
    assert sorted(cls.__name__ for cls in EVENT_TYPES) == sorted(path.stem for path in CURRENT_FILES)
    earlier = sorted(path.stem.replace(".v", "V") for path in earlier_files(AVSC))
    assert sorted(cls.__name__ for cls in EARLIER_VERSIONS) == earlier


def test_an_earlier_version_has_classes_of_its_own_for_what_is_no_longer_shared(tmp_path: Path) -> None:
    shared = {path.stem: json.loads(path.read_text()) for path in (AVSC / SHARED).glob("*.avsc")}
    colour = {"type": "enum", "name": "Colour", "symbols": ["red"]}
    smaller = {**shared["BlobRef"], "fields": shared["BlobRef"]["fields"][:1]}
    path = tmp_path / "ThingSeen.v3.avsc"
    schema = {
        "type": "record",
        "name": "ThingSeen",
        "namespace": "forktrail",
        "doc": "A thing.",
        "forktrail": {"subject": "colour", "role": None, "version": 3},
        "fields": [
            {"name": "meta", "type": shared["Meta"]},
            {"name": "colour", "type": colour},
            {"name": "also", "type": "Colour"},
            {"name": "actor", "type": "Actor"},
            {"name": "picture", "type": smaller},
        ],
    }
    path.write_text(json.dumps(schema))
    module = _Module("earlier", known=set())
    text = module.text_of_earlier([path], shared)
    assert module.exported == ["ThingSeenV3"]
    made: dict[str, Any] = {}
    exec(text.partition("class ")[0] + 'ColourV3 = Literal["red"]', made)  # its imports are right
    assert 'ColourV3 = Literal["red"]\n' in text
    assert 'class BlobRefV3(Record):\n    """Bytes in the blob store, by their digest."""' in text
    assert text.endswith(
        'class ThingSeenV3(Event):\n    """A thing."""\n\n    TYPE: ClassVar[str] = "forktrail.ThingSeen"\n'
        "    VERSION: ClassVar[int] = 3\n    ROLE: ClassVar[str | None] = None\n"
        '    SUBJECT: ClassVar[str] = "colour"\n\n    colour: ColourV3\n    also: ColourV3\n    actor: Actor\n'
        "    picture: BlobRefV3\n"
    )


def test_an_earlier_version_is_never_written() -> None:
    assert not set(generated_files()) & set(earlier_files(AVSC))


# DESIGN.md, "Events": who signs what.
SIGNED_BY = {
    "admin": {
        "RunOpened",
        "RunClosed",
        "KeyRegistered",
        "KeyRevoked",
        "SettingChanged",
        "BudgetSet",
        "SchemaDeclared",
        "TestRegistered",
        "TypeDeclared",
        "BehaviorRegistered",
        "PolicySet",
    },
    "operator": {
        "ApprovalDecided",
        "RevisionAdvanced",
        "RetryRequested",
        "FindingWithdrawn",
        "ExecutionCancelled",
        "EffectResolved",
    },
    "worker": {
        "WorkerClaimed",
        "BehaviorStarted",
        "BehaviorCompleted",
        "BehaviorFailed",
        "ModelRequested",
        "ModelResponded",
        "ToolRequested",
        "ToolResponded",
        "TimerSet",
        "TimerFired",
        "ApprovalRequested",
        "BudgetExhausted",
        "FrameOpened",
        "FrameClosed",
        "PatchProposed",
    },
    "reviewer": {"ReviewDecided", "PatchDecided"},
    "runner": {"TestStarted", "ObservationRecorded"},
    None: {
        "ReportFiled",
        "TestProposed",
        "GoalSet",
        "ObjectCreated",
        "ObjectPatched",
        "ObjectRetired",
        "RelationCreated",
        "RelationRetired",
    },
}


def test_each_type_asks_for_the_role_that_the_design_says() -> None:
    found = {role: {cls.__name__ for cls in EVENT_TYPES if role == cls.ROLE} for role in SIGNED_BY}
    assert found == SIGNED_BY
