from __future__ import annotations

import hashlib
import json

import pytest

from forktrail_projectors.state import NodeKey
from forktrail_schemas import events
from forktrail_schemas.catalog import schema_of
from support.avro import crc_64_avro
from support.refusals import Refusal, check
from support.refused_schemas import PROGRESS, SCHEMAS, declaration, progress
from support.story import ADMIN, OPERATOR, Story

each = pytest.mark.parametrize("refusal", SCHEMAS, ids=lambda refusal: str(refusal.name))
# Worked by hand by the specification's rules.
CANONICAL = b'{"name":"acme.ScanProgressed","type":"record","fields":[{"name":"percent","type":"int"}]}'
FINGERPRINT = crc_64_avro(CANONICAL).to_bytes(8, "little").hex()


@each
def test_a_refused_declaration_changes_nothing_and_takes_its_id_only_where_it_came_at_the_wrong_time(
    refusal: Refusal,
) -> None:
    check(refusal)


def opened() -> Story:
    story = Story()
    story.open()
    return story


def test_a_declaration_keeps_the_text_under_its_fingerprint() -> None:
    story = opened()
    assert story.append(declaration(story, progress(), FINGERPRINT)).valid
    row = story.row("Schema", FINGERPRINT)
    identity = json.dumps(PROGRESS, sort_keys=True, separators=(",", ":"))
    assert (row["name"], row["text"]) == ("acme.ScanProgressed", progress())
    assert row["sha256"] == hashlib.sha256(identity.encode()).hexdigest()
    assert story.related("PRODUCED", NodeKey("Event", 4)) == [NodeKey("Schema", FINGERPRINT)]
    assert story.projector.recomputed_digest() == story.projector.state_digest


def test_only_the_admin_declares() -> None:
    story = opened()
    fields = {"fingerprint": FINGERPRINT, "text": progress()}
    assert story.signed(events.SchemaDeclared, OPERATOR, **fields)[1].reason == "role_missing"
    assert story.signed(events.SchemaDeclared, ADMIN, **fields)[1].valid


def test_two_runs_declare_each_for_itself() -> None:
    one, other = opened(), Story("elsewhere")
    other.open()
    assert one.append(declaration(one, progress())).valid
    assert other.append(declaration(other, progress(fields=[{"name": "percent", "type": "int"}]))).valid


def test_a_later_version_of_a_built_in_type_can_be_declared() -> None:
    story = opened()
    schema = json.loads(schema_of(events.ReportFiled).text)
    schema["fields"].append({"name": "links", "type": {"type": "array", "items": "string"}, "default": []})
    schema["forktrail"]["version"] = 3
    assert story.append(declaration(story, json.dumps(schema))).valid
