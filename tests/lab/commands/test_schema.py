"""`forktrail schema` on a real broker, and without one where none is needed."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer as KafkaProducer
from fastavro import parse_schema, schemaless_writer

from forktrail_lab.commands.schema import DECLARE_EXAMPLE
from forktrail_producers.producer import meta
from forktrail_producers.schema_topic import SchemaTopic
from forktrail_schemas.catalog import schema_of
from forktrail_schemas.declared import declared_schema
from forktrail_schemas.events import (
    EARLIER_VERSIONS,
    EVENT_TYPES,
    OTHER_TYPES,
    GoalSet,
    ReportFiled,
    ReportFiledV1,
    TestProposed,
)
from forktrail_schemas.settings import Settings
from forktrail_schemas.topics import run_topic
from support.command_line import CommandLine
from support.staff import GATEWAY

META = json.loads(schema_of(GoalSet).text)["fields"][0]
FOREIGN: dict[str, Any] = {
    "type": "record",
    "name": "ScanProgressed",
    "namespace": "acme",
    "fields": [META, {"name": "percent", "type": "int"}],
}


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> CommandLine:
    """The command where no Kafka answers."""
    monkeypatch.setenv("FORKTRAIL_HOME", str(tmp_path))
    monkeypatch.setenv("FORKTRAIL_BOOTSTRAP_SERVERS", "127.0.0.1:1")
    return CommandLine(capsys)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "ScanProgressed.avsc"
    path.write_text(json.dumps(FOREIGN, indent=2))
    return path


def test_the_built_in_schemas_are_listed_with_all_versions(offline: CommandLine) -> None:
    rows = offline.ok("schema", "list", "--format", "json").json
    assert {(row["name"], row["version"]) for row in rows} == {
        (cls.TYPE, cls.VERSION) for cls in (*EVENT_TYPES, *OTHER_TYPES, *EARLIER_VERSIONS)
    }
    (first,) = [row for row in rows if (row["name"], row["version"]) == ("forktrail.ReportFiled", 1)]
    assert (first["fingerprint"], first["declared_at"]) == ("4b2452d1c7774236", None)
    assert first["sha256"] == schema_of(ReportFiledV1).sha256
    assert "4b2452d1c7774236" in offline.ok("schema", "list").out


def test_a_schema_is_shown_as_its_file_has_it(offline: CommandLine) -> None:
    for name in ("ReportFiled", "forktrail.ReportFiled", schema_of(ReportFiled).fingerprint.hex()):
        assert offline.ok("schema", "show", name).out == schema_of(ReportFiled).text
    assert offline.ok("schema", "show", "4b2452d1c7774236").out == schema_of(ReportFiledV1).text
    said = offline("schema", "show", "NoSuchThing")
    assert (said.code, said.out) == (3, "")
    assert "`--run RUN` looks among what a run declared, too" in said.err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "it is not JSON"),
        ('{"type": "record", "name": "R", "fields": []}', "R has no fields"),
        (schema_of(ReportFiledV1).text, "forktrail.ReportFiled version 1, which is built in"),
        ("\udcff", "is not UTF-8"),
        (json.dumps(FOREIGN | {"doc": "x" * 65_536}), "more than the 65,536 characters"),
        (
            json.dumps({"type": "record", "name": "forktrail.ReportFiled", "fields": [{"name": "a", "type": "int"}]}),
            "no record of it could be read as the built-in forktrail.ReportFiled: meta: it is missing;"
            " test_id: it is missing; summary: it is missing",
        ),
    ],
)
def test_what_no_run_could_declare_is_not_sent(text: str, said: str, offline: CommandLine, tmp_path: Path) -> None:
    path = tmp_path / "given.avsc"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    found = offline("schema", "declare", "run-1", str(path))
    assert (found.code, found.out, found.err.count("\n")) == (2, "", 1)
    assert said in found.err
    if "built in" not in said:
        assert found.err.startswith("forktrail schema: invalid_schema: ")


def test_a_file_that_is_not_there_or_is_none_is_said_so_in_words(offline: CommandLine, tmp_path: Path) -> None:
    missing, folder = tmp_path / "missing.avsc", tmp_path
    said = offline("schema", "declare", "run-1", str(missing))
    assert (said.code, said.err) == (
        3,
        f"forktrail schema: not_found: there is no file {missing} (give the file of an Avro schema)\n",
    )
    said = offline("schema", "declare", "run-1", str(folder))
    assert (said.code, said.err.count("\n")) == (2, 1)
    assert "Errno" not in said.err


def test_the_example_of_declare_is_a_schema_that_a_run_could_declare() -> None:
    (text,) = re.findall(r"echo '(.*?)' > ScanProgressed.avsc", DECLARE_EXAMPLE, re.S)
    assert declared_schema(text).name == "acme.ScanProgressed"


def test_a_declared_schema_is_readable_from_there_on_and_on_the_topic(
    forktrail: CommandLine, run: str, settings: Settings, file: Path
) -> None:
    said = forktrail.ok("schema", "declare", run, str(file))
    fingerprint = said.out.strip()
    assert len(fingerprint) == 16
    assert "acme.ScanProgressed can be read" in said.err
    _produce(settings, run, fingerprint, FOREIGN, {"percent": 50})
    (row,) = [
        row
        for row in forktrail.ok(
            "query", run, "MATCH (e:Event) RETURN e.type AS type, e.verdict AS verdict", "--json"
        ).json
        if row["type"] == "acme.ScanProgressed"
    ]
    assert row["verdict"] == "unhandled"
    listed = forktrail.ok("schema", "list", run, "--format", "json").json
    (known,) = [schema for schema in listed if schema["fingerprint"] == fingerprint]
    assert known["declared_at"] is not None
    assert known["sha256"] in SchemaTopic(settings.bootstrap_servers).digests()
    assert forktrail.ok("schema", "show", "ScanProgressed", "--run", run).out == file.read_text() + "\n"


def test_a_schema_declared_twice_is_refused_with_the_reason(forktrail: CommandLine, run: str, file: Path) -> None:
    forktrail.ok("schema", "declare", run, str(file), "--format", "json")
    again = forktrail("schema", "declare", run, str(file))
    assert (again.code, again.out) == (1, "")
    assert "schema_exists" in again.err


def test_only_an_admin_key_declares(forktrail: CommandLine, run: str, file: Path) -> None:
    said = forktrail("schema", "declare", run, str(file), "--key", "olga")
    assert (said.code, said.out) == (2, "")
    assert "role_missing" in said.err


def test_opening_a_run_publishes_the_built_in_schemas_and_publish_adds_what_is_missing(
    forktrail: CommandLine, run: str, settings: Settings
) -> None:
    digests = {schema_of(cls).sha256 for cls in (*EVENT_TYPES, *OTHER_TYPES, *EARLIER_VERSIONS)}
    assert digests <= SchemaTopic(settings.bootstrap_servers).digests()
    published = forktrail.ok("schema", "publish", run, "--format", "json").json
    assert published == {"topic": "forktrail.schemas", "schemas": len(digests), "added": 0}
    said = forktrail.ok("schema", "publish", run).out
    assert said == f"0 schemas added to forktrail.schemas, {len(digests)} there already\n"


def test_a_proposal_written_under_a_declared_version_is_shown_with_its_case(
    forktrail: CommandLine, run: str, settings: Settings, tmp_path: Path
) -> None:
    schema = json.loads(schema_of(TestProposed).text)
    schema["forktrail"]["version"] = 9
    schema["fields"].append({"name": "confidence", "type": "int"})
    file = tmp_path / "TestProposed.avsc"
    file.write_text(json.dumps(schema))
    fingerprint = forktrail.ok("schema", "declare", run, str(file)).out.strip()
    shown = forktrail.ok("schema", "show", "TestProposed", "--run", run)  # the declared one doesn't take its place
    assert shown.out == schema_of(TestProposed).text
    assert f"declares another forktrail.TestProposed, at offset 9: `forktrail schema show {fingerprint} " in shown.err
    assert forktrail.ok("schema", "show", fingerprint, "--run", run).out == file.read_text() + "\n"
    fields: dict[str, Any] = {"test_id": GATEWAY, "revision": "r1", "finding_ids": [], "as_of": None, "confidence": 3}
    _produce(settings, run, fingerprint, schema, {**fields, "rationale": "it comes first"})
    (case,) = forktrail.ok("case", "list", run, "--format", "json").json
    shown = forktrail.ok("case", "show", run, case["case_id"], "--format", "json").json
    assert (shown["opened"]["how"], shown["opened"]["words"]) == ("proposal", "it comes first")


def _produce(settings: Settings, run: str, fingerprint: str, schema: Any, fields: dict[str, Any]) -> None:
    """A record under a schema, as another service writes it."""
    body = io.BytesIO()
    head = meta(run, "service", "scanner-7") | {"execution": None, "frame": None}
    schemaless_writer(body, parse_schema(schema), {"meta": head, **fields})
    producer = KafkaProducer({"bootstrap.servers": settings.bootstrap_servers})
    value = b"\xc3\x01" + bytes.fromhex(fingerprint) + body.getvalue()
    producer.produce(run_topic(run), value=value, partition=0)
    assert producer.flush(30) == 0
