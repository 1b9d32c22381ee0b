"""Types as a pack writes them, and what their data may be."""

from __future__ import annotations

import json
from typing import Any, Literal

import pytest
from pydantic import BaseModel, Field

from forktrail_behaviors.tools import tool
from forktrail_behaviors.types import Ref, Types, object_type_of, relation_type_of, relations_implied
from forktrail_schemas.errors import InvalidInput


class Company(BaseModel):
    """A company; what is said of it here is no part of its type."""

    name: str = Field(description="As registered.")
    title: str | None = None
    stage: Literal["seed", "late"] | None = None


class Question(BaseModel):
    text: str
    about: Ref[Company]
    follows: Ref[Question] | None = None
    weight: float | None = None


CITES = relation_type_of("CITES", [Question], ["Company"])


@tool(side_effects="write")
def send(text: str) -> bool:
    """Send it."""
    return bool(text)


TYPES = Types([Company, Question], [CITES], [send])


def test_a_model_becomes_a_type_with_its_references() -> None:
    declared = object_type_of(Question)
    assert declared["references"] == [
        {"property": "about", "object_type": "Company"},
        {"property": "follows", "object_type": "Question"},
    ]
    assert (declared["name"], declared["kind"], declared["sources"], declared["targets"]) == (
        "Question",
        "object",
        [],
        [],
    )
    assert json.loads(str(declared["json_schema"])) == {
        "type": "object",
        "properties": {
            "text": {"type": "string"},
            "about": {"type": "string"},
            "follows": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None},
            "weight": {"anyOf": [{"type": "number"}, {"type": "null"}], "default": None},
        },
        "required": ["text", "about"],
    }


def test_references_make_relations_called_as_they_are() -> None:
    assert relations_implied(Question) == ("ABOUT", "FOLLOWS")
    assert relations_implied(Company) == ()


def test_what_tells_people_something_is_no_part_of_a_type_but_a_property_called_title_is() -> None:
    schema = json.loads(str(object_type_of(Company)["json_schema"]))
    assert "description" not in schema
    assert schema["properties"]["name"] == {"type": "string"}
    assert "title" in schema["properties"]


def test_a_relation_type_names_its_ends() -> None:
    assert CITES.fields() == {
        "name": "CITES",
        "kind": "relation",
        "json_schema": '{"properties":{},"type":"object"}',
        "references": [],
        "sources": ["Question"],
        "targets": ["Company"],
        "personal": [],
        "merge": [],
    }


def test_data_comes_back_as_it_was_given() -> None:
    data = {"text": "Who?", "about": "company-00000000", "weight": 1}
    assert TYPES.checked_object("Question", data) == data
    assert TYPES.checked_object("Question", {"weight": None}, whole=False) == {"weight": None}
    assert TYPES.checked_relation("CITES", "Question", "Company", {}) == {}


@pytest.mark.parametrize(
    ("object_type", "data", "message"),
    [
        ("Question", {"text": "Who?"}, r"Question\.about: it is missing"),
        ("Question", {"text": 1, "about": "company-0"}, r"Question\.text: it is no string"),
        ("Question", {"text": "", "about": "c", "mood": 1}, r"Question\.mood: .* no such property"),
        ("Question", {"text": "", "about": "c", "weight": float("nan")}, r"Question\.weight: .* no JSON"),
        ("Question", {"text": "", "about": "c", "weight": 2**60}, r"Question\.weight: .* no JSON"),
        ("Company", {"name": "", "stage": "dead"}, r"Company\.stage"),
        ("Person", {}, r"no object type 'Person' \(it has Company, Question\)"),
    ],
)
def test_what_breaks_a_type_is_named(object_type: str, data: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        TYPES.checked_object(object_type, data)


def test_a_relation_is_refused_other_ends_and_other_data() -> None:
    with pytest.raises(InvalidInput, match="a Company can't be its source"):
        TYPES.checked_relation("CITES", "Company", "Company", {})
    with pytest.raises(InvalidInput, match=r"CITES\.page: .* no such property"):
        TYPES.checked_relation("CITES", "Question", "Company", {"page": 1})
    with pytest.raises(InvalidInput, match="no relation type 'LIKES'"):
        TYPES.checked_relation("LIKES", "Question", "Company", {})


def test_a_tool_is_known_by_what_it_does_to_the_world() -> None:
    assert TYPES.tool("send").side_effects == "write"
    with pytest.raises(InvalidInput, match=r"no tool 'sned' \(it has send\)"):
        TYPES.tool("sned")


class Nested(BaseModel):
    many: list[Ref[Company]]


class Holder(BaseModel):
    question: Question


class Ambiguous(BaseModel):
    either: Ref[Company] | Ref[Question]


class Lower_case(BaseModel):  # noqa: N801  # what is refused
    text: str


class Checked(BaseModel):
    text: str = Field(pattern="^a")


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (Nested, r"Nested\.many: a reference is a property of its own"),
        (Holder, r"Holder\.question: a reference is a property of its own"),
        (Ambiguous, r"Ambiguous\.either: a reference is a property of its own"),
        (Lower_case, "'Lower_case' can't be the name of a type"),
        (Checked, "Checked can't be declared: 'pattern'"),
    ],
)
def test_what_no_run_could_declare_is_refused_at_once(model: type[BaseModel], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        object_type_of(model)


def test_a_relation_type_is_refused_a_name_in_lower_case_and_references() -> None:
    with pytest.raises(InvalidInput, match="'cites' can't be the name"):
        relation_type_of("cites", [Question], [Company])
    with pytest.raises(InvalidInput, match=r"CITES\.about: a relation's data holds no reference"):
        relation_type_of("CITES", [Question], [Company], Question)
