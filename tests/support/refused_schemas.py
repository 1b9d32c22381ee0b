"""Every way in which the declaration of a schema is refused."""

from __future__ import annotations

import json
from typing import Any

from forktrail_projectors.record import LogRecord
from forktrail_schemas import events
from forktrail_schemas.catalog import schema_of
from forktrail_schemas.declared import declared_schema
from support.refusals import Refusal, case
from support.refused_log import by_admin
from support.story import Story

SCHEMAS: list[Refusal] = []
PROGRESS: dict[str, Any] = {
    "type": "record",
    "name": "ScanProgressed",
    "namespace": "acme",
    "fields": [{"name": "percent", "type": "int", "default": 0}],
}


def progress(**changes: Any) -> str:
    """The text of a schema of no built-in type, some of it changed."""
    return json.dumps({**PROGRESS, **changes})


def declaration(story: Story, text: str, fingerprint: str | None = None) -> LogRecord:
    """A SchemaDeclared signed by the admin, under the text's own fingerprint unless another is given."""
    own = fingerprint or declared_schema(text).fingerprint.hex()
    return by_admin(story, events.SchemaDeclared, fingerprint=own, text=text)


def _declare(story: Story, text: str) -> None:
    assert story.append(declaration(story, text)).valid


@case(SCHEMAS, "bad_schema", takes_id=False)
def a_text_that_is_no_json(story: Story) -> LogRecord:
    story.open()
    return declaration(story, "{", "0" * 16)


@case(SCHEMAS, "bad_schema", takes_id=False)
def a_schema_that_is_no_record(story: Story) -> LogRecord:
    story.open()
    return declaration(story, '"string"', "0" * 16)


@case(SCHEMAS, "fingerprint_mismatch", takes_id=False)
def a_schema_under_the_fingerprint_of_another(story: Story) -> LogRecord:
    story.open()
    return declaration(story, progress(), declared_schema(progress(name="Other")).fingerprint.hex())


@case(SCHEMAS, "schema_built_in", takes_id=False)
def a_built_in_schema(story: Story) -> LogRecord:
    story.open()
    return declaration(story, schema_of(events.ReportFiledV1).text)


@case(SCHEMAS, "fingerprint_taken", takes_id=False)
def a_schema_that_differs_from_a_built_in_one_in_what_its_fingerprint_leaves_out(story: Story) -> LogRecord:
    story.open()
    altered = schema_of(events.ReportFiled).text.replace('"default": ""', '"default": "none"')
    assert altered != schema_of(events.ReportFiled).text
    return declaration(story, altered)


@case(SCHEMAS, "schema_exists", takes_id=True)
def a_schema_declared_again_with_other_docs(story: Story) -> LogRecord:
    story.open()
    _declare(story, progress())
    return declaration(story, progress(doc="How far a scan has come."))


@case(SCHEMAS, "fingerprint_taken", takes_id=True)
def a_second_schema_that_differs_in_a_default(story: Story) -> LogRecord:
    story.open()
    _declare(story, progress())
    return declaration(story, progress(fields=[{"name": "percent", "type": "int", "default": 1}]))
