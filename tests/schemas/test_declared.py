from __future__ import annotations

import io
import json
from typing import Any

import pytest
from fastavro import parse_schema, schemaless_writer

from forktrail_schemas import declared
from forktrail_schemas.catalog import Schema, by_fingerprint, schema_of, schema_of_text
from forktrail_schemas.declared import ForeignRecord, declared_schema
from forktrail_schemas.errors import EventUnreadable, InvalidEvent, InvalidSchema
from forktrail_schemas.events import ApprovalDecided, GoalSet, ReportFiled, ReportFiledV1
from forktrail_schemas.record import Record
from forktrail_schemas.wire import build, decode, decode_declared, encode, fingerprint_of, foreign_fingerprint
from support import avro
from support.samples import meta, sample


def text_of(cls: type[Record]) -> dict[str, Any]:
    """The JSON of a built-in schema, to be altered."""
    found: dict[str, Any] = json.loads(schema_of(cls).text)
    return found


def written(schema: Any, fields: dict[str, Any]) -> bytes:
    """A value under a schema, as a service with fastavro writes it."""
    body = io.BytesIO()
    schemaless_writer(body, parse_schema(schema), fields)
    return b"\xc3\x01" + declared_schema(json.dumps(schema)).fingerprint + body.getvalue()


def version_3() -> dict[str, Any]:
    """A ReportFiled of a version that this code doesn't know: a field more in front, one dropped, one renamed."""
    schema = text_of(ReportFiled)
    schema["forktrail"]["version"] = 3
    schema["fields"][1:1] = [{"name": "severity", "type": "int", "default": 0}]
    schema["fields"] = [field for field in schema["fields"] if field["name"] != "details"]
    return schema


def test_a_later_version_of_a_built_in_type_is_read_as_the_one_that_is_known() -> None:
    value = written(version_3(), {"meta": meta(), "severity": 3, "test_id": "t", "summary": "seen"})
    assert foreign_fingerprint(value) == fingerprint_of(value).hex()
    with pytest.raises(EventUnreadable) as caught:
        decode(value)
    assert caught.value.code == "unknown_schema"
    assert decode_declared(value, json.dumps(version_3())) == build(
        ReportFiled, {"meta": meta(), "test_id": "t", "summary": "seen", "details": ""}
    )


def test_its_values_are_checked_as_all_others() -> None:
    value = written(version_3(), {"meta": meta(), "severity": 3, "test_id": "No Test", "summary": "seen"})
    with pytest.raises(InvalidEvent) as caught:
        decode_declared(value, json.dumps(version_3()))
    assert (caught.value.code, caught.value.message) == (
        "invalid_data",
        "forktrail.ReportFiled: test_id breaks its schema",
    )


def test_its_values_are_used_up_to_the_last_byte() -> None:
    value = written(version_3(), {"meta": meta(), "severity": 3, "test_id": "t", "summary": "seen"})
    for broken, code in ((value[:-1], "truncated"), (value + b"\x00", "trailing_bytes")):
        with pytest.raises(EventUnreadable) as caught:
            decode_declared(broken, json.dumps(version_3()))
        assert caught.value.code == code


def test_a_built_in_type_that_lacks_what_is_asked_for_is_incompatible() -> None:
    schema = version_3()
    schema["fields"] = [field for field in schema["fields"] if field["name"] != "summary"]
    value = written(schema, {"meta": meta(), "severity": 3, "test_id": "t"})
    for broken in (value, value[:-1], value + b"\x00"):  # whatever the record holds
        with pytest.raises(EventUnreadable) as caught:
            decode_declared(broken, json.dumps(schema))
        assert caught.value.code == "schema_incompatible"
        assert caught.value.message == "forktrail.ReportFiled as declared can't be read as the type of that name"


def test_a_symbol_that_is_not_known_is_incompatible_and_the_others_are_read() -> None:
    schema = text_of(ApprovalDecided)
    (decision,) = [field for field in schema["fields"] if field["name"] == "decision"]
    decision["type"]["symbols"] = ["approve", "deny", "defer"]
    fields = sample(ApprovalDecided)
    text = json.dumps(schema)
    assert decode_declared(written(schema, fields), text) == build(ApprovalDecided, fields)
    with pytest.raises(EventUnreadable) as caught:
        decode_declared(written(schema, fields | {"decision": "defer"}), text)
    assert caught.value.code == "schema_incompatible"


FOREIGN: dict[str, Any] = {
    "type": "record",
    "name": "ScanProgressed",
    "namespace": "acme",
    "fields": [text_of(GoalSet)["fields"][0], {"name": "hosts", "type": {"type": "array", "items": "string"}}],
}


def test_a_type_that_is_not_built_in_is_foreign_and_says_of_itself_what_ours_say() -> None:
    value = written(FOREIGN, {"meta": meta(), "hosts": ["a", "b"]})
    expected = build(GoalSet, {"meta": meta(), "text": ""}).meta
    assert decode_declared(value, json.dumps(FOREIGN)) == ForeignRecord("acme.ScanProgressed", expected)


@pytest.mark.parametrize("cut", [b"", b"\x00"])
def test_a_foreign_record_is_used_up_to_its_last_byte(cut: bytes) -> None:
    value = written(FOREIGN, {"meta": meta(), "hosts": ["a", "b"]})
    broken = value + cut if cut else value[:-1]
    with pytest.raises(EventUnreadable) as caught:
        decode_declared(broken, json.dumps(FOREIGN))
    assert caught.value.code == ("trailing_bytes" if cut else "truncated")


def test_a_foreign_record_without_our_meta_or_with_a_wrong_one_says_nothing_of_itself() -> None:
    other: dict[str, Any] = {"type": "record", "name": "Ping", "fields": [{"name": "meta", "type": "string"}]}
    assert decode_declared(written(other, {"meta": "x"}), json.dumps(other)) == ForeignRecord("Ping", None)
    value = written(FOREIGN, {"meta": meta(run="No Run"), "hosts": []})
    assert decode_declared(value, json.dumps(FOREIGN)) == ForeignRecord("acme.ScanProgressed", None)


def test_a_meta_without_our_attributes_is_ours_as_far_as_bytes_go() -> None:
    plain = json.loads(json.dumps(FOREIGN).replace('"format"', '"was"').replace('"maximum_items"', '"were"'))
    assert plain != FOREIGN
    found = decode_declared(written(plain, {"meta": meta(), "hosts": []}), json.dumps(plain))
    assert isinstance(found, ForeignRecord)
    assert found.meta is not None


def test_only_what_is_not_built_in_is_foreign() -> None:
    assert foreign_fingerprint(encode(build(GoalSet, sample(GoalSet)))) is None
    assert foreign_fingerprint(b"\xc3\x01" + b"\x01" * 8) == "01" * 8
    for value in (b"", b"\xc3\x01", b"\xc3\x01" + b"\x01" * 7, b"\x00" * 20):
        assert foreign_fingerprint(value) is None
        with pytest.raises(EventUnreadable) as caught:
            fingerprint_of(value)
        assert caught.value.code == "not_avro"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "it is not JSON"),
        ("[" * 65_000, "it is nested more than 100 deep"),
        ('"record"', "it has a type that isn't defined before it"),
        ('{"type": "record", "name": "R", "fields": []}', "R has no fields"),
        ('{"type": "record", "name": "R", "fields": [{"name": "a", "type": ["null", "R"]}]}', "R contains itself"),
    ],
)  # fmt: skip
def test_a_text_that_no_run_could_declare_is_refused_in_words_of_ours(text: str, said: str) -> None:
    for _ in range(2):
        with pytest.raises(InvalidSchema) as caught:
            declared_schema(text)
        assert caught.value.message == said


def test_built_in_schemas_could_be_declared() -> None:
    for schema in by_fingerprint().values():
        found = declared_schema(schema.text)
        assert (found.name, found.version, found.sha256, found.fingerprint) == (
            schema.name,
            schema.version,
            schema.sha256,
            schema.fingerprint,
        )


@pytest.mark.parametrize("version", [True, "2", -1, 2.5, None])
def test_what_a_foreign_schema_says_of_its_version_breaks_nothing(version: Any) -> None:
    text = json.dumps({**FOREIGN, "forktrail": {"version": version}})
    assert (declared_schema(text).name, declared_schema(text).version) == ("acme.ScanProgressed", 1)
    assert declared_schema(json.dumps({**FOREIGN, "forktrail": version})).version == 1


def test_a_schema_is_read_once_and_not_for_each_record(monkeypatch: pytest.MonkeyPatch) -> None:
    texts: list[str] = []

    def counted(text: str) -> Schema:
        texts.append(text)
        return schema_of_text(text)

    monkeypatch.setattr(declared, "schema_of_text", counted)
    schema = {"type": "record", "name": "ReadOnce", "fields": [{"name": "a", "type": "boolean"}]}
    text = json.dumps(schema)
    value = written(schema, {"a": True})
    for _ in range(3):
        same_text = "".join(list(text))  # as another row of a graph gives it
        assert decode_declared(value, same_text) == ForeignRecord("ReadOnce", None)
    assert texts == [text]
    assert declared.declared_reader(text) is declared.declared_reader("".join(list(text)))


def test_a_declared_text_that_claims_a_huge_body_costs_no_more_than_the_body() -> None:
    schema = {
        "type": "record",
        "name": "forktrail.ReportFiled",
        "fields": [
            *text_of(ReportFiledV1)["fields"],
            {"name": "more", "type": {"type": "array", "items": {"type": "fixed", "name": "F", "size": 2**31 - 1}}},
        ],
    }
    value = written(text_of(ReportFiledV1), {"meta": meta(), "test_id": "t", "summary": "s"})
    head = b"\xc3\x01" + declared_schema(json.dumps(schema)).fingerprint + value[10:]
    with pytest.raises(EventUnreadable) as caught:
        decode_declared(head + avro.long(2**62) + b"\x00" * 1_000, json.dumps(schema))
    assert caught.value.code == "truncated"
    assert isinstance(decode_declared(head + b"\x00", json.dumps(schema)), ReportFiled)
