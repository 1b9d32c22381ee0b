"""Deliberate breaks, each with the rule that names it; on a folder of schemas made for the test."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from forktrail_schemas.compatibility.__main__ import RELEASED, main
from forktrail_schemas.compatibility.check import problems
from forktrail_schemas.compatibility.snapshot import read_folder, read_release, write_release
from forktrail_schemas.generate import AVSC

COLOURS = {"type": "enum", "name": "Colour", "symbols": ["red", "green"]}
THING: dict[str, Any] = {
    "type": "record",
    "name": "ThingSeen",
    "namespace": "forktrail",
    "forktrail": {"subject": "id", "role": "operator"},
    "fields": [
        {"name": "id", "type": "string", "format": "slug"},
        {"name": "note", "type": "string", "format": "text"},
        {"name": "count", "type": "long", "minimum": 0, "maximum": 100},
        {"name": "colour", "type": COLOURS},
        {"name": "tags", "type": {"type": "array", "items": "string"}, "format": "name", "maximum_items": 8},
        {"name": "old", "type": ["null", "string"], "format": "name", "default": None},
        {"name": "place", "type": {"type": "record", "name": "Place", "fields": [{"name": "x", "type": "int"}]}},
    ],
}
OTHER: dict[str, Any] = {
    "type": "record",
    "name": "OtherSeen",
    "namespace": "forktrail",
    "forktrail": {"subject": "id", "role": None},
    "fields": [{"name": "id", "type": "string", "format": "slug"}],
}


@dataclass
class Checkout:
    """A folder `avsc/log` with the two types, the record of their release, and a folder of examples."""

    folder: Path

    @property
    def avsc(self) -> Path:
        return self.folder / "avsc"

    @property
    def released(self) -> Path:
        return self.folder / "released.jsonl"

    @property
    def examples(self) -> Path:
        return self.folder / "upcasts"

    def put(self, name: str, schema: dict[str, Any]) -> None:
        path = self.avsc / "log" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(schema, indent=2))

    def check(self, upcasts: Collection[tuple[str, int]] = ()) -> list[str]:
        return problems(read_folder(self.avsc), read_release(self.released)[1], upcasts, self.examples)


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    made = Checkout(tmp_path)
    made.put("ThingSeen.avsc", THING)
    made.put("OtherSeen.avsc", OTHER)
    made.examples.mkdir()
    write_release(made.released, "1.0", read_folder(made.avsc))
    return made


def field(schema: dict[str, Any], name: str) -> dict[str, Any]:
    found: dict[str, Any] = next(field for field in schema["fields"] if field["name"] == name)
    return found


def altered(change: Callable[[dict[str, Any]], object], version: int = 2) -> dict[str, Any]:
    """ThingSeen with a change, as its next version."""
    schema = copy.deepcopy(THING)
    change(schema)
    schema["forktrail"]["version"] = version
    return schema


def dropped(name: str) -> Callable[[dict[str, Any]], object]:
    return lambda schema: schema["fields"].remove(field(schema, name))


def added(**new: Any) -> Callable[[dict[str, Any]], object]:
    return lambda schema: schema["fields"].append(new)


def changed(place: str, /, **changes: Any) -> Callable[[dict[str, Any]], object]:
    return lambda schema: field(schema, place).update(changes)


def both(*changes: Callable[[dict[str, Any]], object]) -> Callable[[dict[str, Any]], object]:
    return lambda schema: [change(schema) for change in changes]


NEW = added(name="new", type="string", format="text", default="")  # tells the version's fingerprint apart
UPCASTER = "write an upcaster from version 1"
NEW_TYPE = "give what is different a type of another name"
PLACE: dict[str, Any] = {"type": "record", "name": "Place", "fields": [{"name": "x", "type": "int"}]}

# The change that version 2 makes, and the line that says what it breaks.
BREAKS = {
    "a removed field without a default": (
        dropped("note"),
        f"ThingSeen version 2, field note: dropped: it is gone and had no default; {UPCASTER}",
    ),
    "a new field without a default": (
        added(name="new", type="string", format="text"),
        f"ThingSeen version 2, field new: unreadable: it is new and has no default; {UPCASTER}",
    ),
    "a new field without a default in a record in it": (
        changed("place", type={**PLACE, "fields": [*PLACE["fields"], {"name": "y", "type": "int"}]}),
        f"ThingSeen version 2, field place.y: unreadable: it is new and has no default; {UPCASTER}",
    ),
    "a type narrowed": (
        changed("count", type="int"),
        "ThingSeen version 2, field count: unreadable: type_mismatch: "
        f"reader type: int not compatible with writer type: long; {UPCASTER}",
    ),
    "a type changed in an array": (
        changed("tags", type={"type": "array", "items": "int"}),
        "ThingSeen version 2, field tags: unreadable: type_mismatch: "
        f"reader type: int not compatible with writer type: string; {UPCASTER}",
    ),
    "null no longer allowed": (
        changed("old", type="string", default=""),
        "ThingSeen version 2, field old: unreadable: type_mismatch: "
        f"reader type: string not compatible with writer type: null; {UPCASTER}",
    ),
    "a symbol removed": (
        changed("colour", type={**COLOURS, "symbols": ["red"]}),
        f"ThingSeen version 2, field colour: unreadable: missing_enum_symbols: {{'green'}}; {UPCASTER}",
    ),
    "a format narrowed": (
        both(NEW, changed("note", format="line")),
        f'ThingSeen version 2, field note: narrowed: format was "text", is "line"; {UPCASTER}',
    ),
    "a maximum lowered": (
        both(NEW, changed("count", maximum=99)),
        f"ThingSeen version 2, field count: narrowed: maximum was 100, is 99; {UPCASTER}",
    ),
    "a minimum raised": (
        both(NEW, changed("count", minimum=1)),
        f"ThingSeen version 2, field count: narrowed: minimum was 0, is 1; {UPCASTER}",
    ),
    "a minimum where there was none": (
        both(NEW, changed("tags", minimum_items=1)),
        f"ThingSeen version 2, field tags: narrowed: minimum_items was null, is 1; {UPCASTER}",
    ),
    "fewer items": (
        both(NEW, changed("tags", maximum_items=4)),
        f"ThingSeen version 2, field tags: narrowed: maximum_items was 8, is 4; {UPCASTER}",
    ),
    "another role": (
        both(NEW, lambda schema: schema["forktrail"].update(role=None)),
        f'ThingSeen version 2: role: it was "operator", is null; {NEW_TYPE}',
    ),
    "another subject": (
        both(NEW, lambda schema: schema["forktrail"].update(subject="note")),
        f'ThingSeen version 2: subject: it was "id", is "note"; {NEW_TYPE}',
    ),
}


@pytest.mark.parametrize("name", BREAKS)
def test_a_new_version_that_breaks_a_rule_is_told_in_one_line(name: str, checkout: Checkout) -> None:
    change, line = BREAKS[name]
    checkout.put("ThingSeen.v1.avsc", THING)
    checkout.put("ThingSeen.avsc", altered(change))
    assert checkout.check() == [line]


@pytest.mark.parametrize("name", BREAKS)
def test_an_upcaster_with_an_example_settles_what_can_be_settled(name: str, checkout: Checkout) -> None:
    change, line = BREAKS[name]
    checkout.put("ThingSeen.v1.avsc", THING)
    checkout.put("ThingSeen.avsc", altered(change))
    upcasts = {("ThingSeen", 1)}
    without = "ThingSeen version 1: example: its upcaster has none in ThingSeen.v1.json; add one"
    settled = [] if UPCASTER in line else [line]
    assert checkout.check(upcasts) == [*settled, without]
    (checkout.examples / "ThingSeen.v1.json").write_text("[]")
    assert checkout.check(upcasts) == settled


@pytest.mark.parametrize("name", BREAKS)
def test_a_released_version_that_is_changed_where_it_stands_is_told(name: str, checkout: Checkout) -> None:
    change, line = BREAKS[name]
    checkout.put("ThingSeen.avsc", altered(change, version=1))
    found = checkout.check({("ThingSeen", 1)})
    rule = line.partition(";")[0].replace("version 2", "version 1")
    assert f"{rule}; a released version stays as it is" in found
    assert found[-1] == (
        "ThingSeen version 1: edited: it was released and isn't the same any more; "
        "keep the released text as log/ThingSeen.v1.avsc, and make the change version 2"
    )


GOOD = {
    "a field with a default": NEW,
    "a removed field with a default": dropped("old"),
    "a wider type": changed("count", type="double"),
    "a symbol more": changed("colour", type={**COLOURS, "symbols": ["red", "green", "blue"]}),
    "wider bounds": both(NEW, changed("count", minimum=-1, maximum=200), changed("tags", maximum_items=9)),
    "a wider format": both(NEW, changed("id", format="text"), changed("tags", format="line")),
    "another name for the same format": both(NEW, changed("id", format="slug")),
    "a field under another name": changed("note", name="remark", aliases=["note"]),
}


@pytest.mark.parametrize("name", GOOD)
def test_a_new_version_that_keeps_the_rules_is_good(name: str, checkout: Checkout) -> None:
    checkout.put("ThingSeen.v1.avsc", THING)
    checkout.put("ThingSeen.avsc", altered(GOOD[name]))
    assert checkout.check() == []


def test_a_released_schema_is_told_by_what_it_says_and_not_by_its_layout_or_docs(checkout: Checkout) -> None:
    schema = {"doc": "What was seen.", **THING}
    (checkout.avsc / "log" / "ThingSeen.avsc").write_text(json.dumps(schema))
    assert checkout.check() == []


def test_the_released_text_kept_beside_a_new_version_stays_as_it_is(checkout: Checkout) -> None:
    checkout.put("ThingSeen.v1.avsc", altered(changed("count", maximum=101), version=1))
    checkout.put("ThingSeen.avsc", altered(NEW))
    assert [line.split(": ")[1] for line in checkout.check()] == ["edited", "narrowed"]


def test_a_released_type_that_is_gone_is_told(checkout: Checkout) -> None:
    (checkout.avsc / "log" / "OtherSeen.avsc").unlink()
    assert checkout.check() == [
        "OtherSeen version 1: withdrawn: it was released and is gone; put log/OtherSeen.v1.avsc back"
    ]


def test_two_versions_that_no_record_tells_apart_are_told(checkout: Checkout) -> None:
    checkout.put("ThingSeen.v1.avsc", THING)
    checkout.put("ThingSeen.avsc", altered(changed("count", maximum=200)))
    (line,) = checkout.check()
    assert line.startswith("ThingSeen version 1: collision: ThingSeen version 2 has the fingerprint ")
    assert line.endswith(" too; change the name of a field with its meaning")


def test_versions_are_numbered_without_gaps_and_stand_in_files_that_say_so(checkout: Checkout) -> None:
    checkout.put("ThingSeen.v1.avsc", THING)
    checkout.put("ThingSeen.avsc", altered(NEW, version=3))
    assert checkout.check() == [
        "ThingSeen version 3: numbering: there are the versions 1, 3; number them from 1 without gaps"
    ]
    (checkout.avsc / "log" / "ThingSeen.v1.avsc").rename(checkout.avsc / "log" / "ThingSeen.v2.avsc")
    checkout.put("ThingSeen.avsc", altered(NEW))
    assert checkout.check() == [
        "ThingSeen version 1: numbering: it stands in log/ThingSeen.v2.avsc; name the file ThingSeen.v1.avsc"
    ]


def test_a_type_that_was_never_released_may_change(checkout: Checkout) -> None:
    checkout.put("NewSeen.avsc", {**OTHER, "name": "NewSeen"})
    assert checkout.check() == []


# The command.


def run(checkout: Checkout, *words: str) -> int:
    return main(words, checkout.avsc, checkout.released, checkout.examples)


def test_a_release_is_recorded_only_where_nothing_is_broken(
    checkout: Checkout, capsys: pytest.CaptureFixture[str]
) -> None:
    before = checkout.released.read_text()
    checkout.put("ThingSeen.avsc", altered(NEW))
    assert run(checkout, "--release", "2.0") == 1
    assert checkout.released.read_text() == before
    assert "withdrawn" in capsys.readouterr().err
    checkout.put("ThingSeen.v1.avsc", THING)
    assert run(checkout, "--release", "2.0") == 0
    name, released = read_release(checkout.released)
    assert (name, len(released)) == ("2.0", 3)
    assert run(checkout, "--check") == 0


def test_what_can_not_be_read_is_one_line(checkout: Checkout, capsys: pytest.CaptureFixture[str]) -> None:
    (checkout.avsc / "log" / "ThingSeen.avsc").write_text("{")
    assert run(checkout, "--check") == 1
    assert capsys.readouterr().err.count("\n") == 1
    checkout.put("ThingSeen.avsc", THING)
    text = checkout.released.read_text()
    assert '"maximum":100' in text
    for wrong in ("", "{}", text.replace('"maximum":100', '"maximum":99')):
        checkout.released.write_text(wrong)
        assert run(checkout, "--check") == 1
        assert capsys.readouterr().err.count("\n") == 1


def test_the_schemas_of_this_checkout_keep_what_the_last_release_promised() -> None:
    assert main(["--check"]) == 0


def test_everything_released_is_in_the_record_of_the_release() -> None:
    _, released = read_release(RELEASED)
    here = {(schema.name, schema.version): schema.sha256 for schema in read_folder(AVSC)}
    assert {(old.name, old.version): old.sha256 for old in released}.items() <= here.items()
    assert len(released) >= 18
