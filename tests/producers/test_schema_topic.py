"""The topic of schemas on a real Kafka."""

from __future__ import annotations

import json

from fastavro.schema import fingerprint, to_parsing_canonical_form

from forktrail_producers.compacted import records_of
from forktrail_producers.producer import Producer
from forktrail_producers.schema_topic import SchemaTopic, built_in_schemas
from forktrail_schemas.declared import declared_schema
from forktrail_schemas.events import EARLIER_VERSIONS, EVENT_TYPES, OTHER_TYPES
from forktrail_schemas.topics import SCHEMAS


def a_schema(name: str, *fields: str) -> str:
    return json.dumps({"type": "record", "name": name, "fields": [{"name": field, "type": "int"} for field in fields]})


def on_the_topic(kafka: str) -> list[tuple[str, bytes]]:
    return [((message.key() or b"").decode(), message.value() or b"") for message in records_of(kafka, SCHEMAS.name)]


def test_a_schema_is_put_there_once_with_all_that_a_tool_needs(kafka: str) -> None:
    topic = SchemaTopic(kafka)
    text = a_schema("PutOnce", "a", "b")
    schema = declared_schema(text)
    with Producer(kafka) as producer:
        assert topic.publish([schema, schema], producer) == 1
        assert topic.publish([schema], producer) == 0
    (value,) = [value for key, value in on_the_topic(kafka) if key == schema.sha256]
    found = json.loads(value)
    assert found == {
        "name": "PutOnce",
        "version": 1,
        "fingerprint": fingerprint(to_parsing_canonical_form(json.loads(text)), "CRC-64-AVRO"),
        "sha256": schema.sha256,
        "schema": text,
    }


def test_two_schemas_of_one_fingerprint_are_both_there(kafka: str) -> None:
    texts = [json.dumps({**json.loads(a_schema("Twice", "a")), "note": note}) for note in ("one", "two")]
    schemas = [declared_schema(text) for text in texts]
    assert schemas[0].fingerprint == schemas[1].fingerprint
    with Producer(kafka) as producer:
        assert SchemaTopic(kafka).publish(schemas, producer) == 2
    assert {schema.sha256 for schema in schemas} <= SchemaTopic(kafka).digests()


def test_every_version_of_every_built_in_type_is_published(kafka: str) -> None:
    schemas = built_in_schemas()
    assert len(schemas) == len((*EVENT_TYPES, *OTHER_TYPES, *EARLIER_VERSIONS))
    with Producer(kafka) as producer:
        SchemaTopic(kafka).publish(schemas, producer)
        assert SchemaTopic(kafka).publish(schemas, producer) == 0
    assert {schema.sha256 for schema in schemas} <= SchemaTopic(kafka).digests()


def test_what_was_deleted_there_is_put_there_again(kafka: str) -> None:
    schema = declared_schema(a_schema("DeletedOnce", "a"))
    with Producer(kafka) as producer:
        assert SchemaTopic(kafka).publish([schema], producer) == 1
        producer._kafka.produce(SCHEMAS.name, key=schema.sha256, value=None)
        assert producer._kafka.flush(10) == 0
        assert schema.sha256 not in SchemaTopic(kafka).digests()
        assert SchemaTopic(kafka).publish([schema], producer) == 1
