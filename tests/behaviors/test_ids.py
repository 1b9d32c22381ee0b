"""Ids follow from an execution's origin. The values come from `printf … | sha256sum`, and were marked by hand."""

from __future__ import annotations

import pytest
from pydantic import TypeAdapter

from forktrail_behaviors import ids
from forktrail_schemas.errors import InvalidInput
from forktrail_schemas.values import LocalId

TRIGGER = "0190a1b2-0000-7000-8000-000000000001"
MATCH = ("company-1", "claim-2")


def test_an_execution_s_id_is_the_digest_of_its_list() -> None:
    # sha256 3a97424ffa322d59aefc4da369a69a8e…, 81a6f4ce9b2b3505fe820195d9b7d656…, 0476c63853bc1dccaf05d8cd0e89c12e…
    assert ids.execution_id(TRIGGER, "ask", "1", "ask", MATCH) == "3a97424f-fa32-8d59-aefc-4da369a69a8e"
    assert ids.execution_id(TRIGGER, "ask", "1", "ask", ()) == "81a6f4ce-9b2b-8505-be82-0195d9b7d656"
    assert ids.execution_id(TRIGGER, "frage-ä", "1", "ask", []) == "0476c638-53bc-8dcc-af05-d8cd0e89c12e"


def test_an_output_s_id_takes_in_its_path() -> None:
    # sha256 a5a149b35d276fda20f16617ab385345…
    assert ids.output_id(TRIGGER, "ask", "1", "ask", MATCH, "3.1.1") == "a5a149b3-5d27-8fda-a0f1-6617ab385345"


def test_an_object_s_id_begins_with_the_letters_of_its_type() -> None:
    # sha256 7c00e88c3310bcfb5fb1ade9…, 244c8bad9351c437a07fb810…
    assert ids.object_id("Company", "exec-1", "2") == "company-7c00e88c3310bcfb5fb1"
    assert ids.object_id("Q4Result", "exec-1", "2") == "qresult-244c8bad9351c437a07f"


@pytest.mark.parametrize("object_type", ["A", "A" + "b" * 62, "Q4Result", "U2"])
def test_every_object_type_has_ids_that_the_schema_takes(object_type: str) -> None:
    TypeAdapter(LocalId).validate_python(ids.object_id(object_type, "exec-1", "1"))


def test_an_id_of_nothing_that_has_letters_is_refused() -> None:
    with pytest.raises(InvalidInput, match="'42' is none"):
        ids.object_id("42", "exec-1", "1")


def test_a_seed_is_the_first_eight_bytes() -> None:
    assert ids.seed("exec-1", "3.1.") == 0xFC7FE6824FE8DBE8
