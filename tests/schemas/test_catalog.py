from __future__ import annotations

import json

import pytest
from fastavro.schema import to_parsing_canonical_form

from forktrail_schemas.catalog import by_fingerprint, class_of, published, record_classes, schema_of, schemas
from forktrail_schemas.events import (
    EARLIER_VERSIONS,
    EVENT_TYPES,
    OTHER_TYPES,
    GoalSet,
    ReportFiled,
    ReportFiledV1,
    RunAnnounced,
)
from forktrail_schemas.schema_text import schema_sha256
from support.avro import crc_64_avro

# Worked by hand by the rules of the specification's "Parsing Canonical Form": full names, primitives in short form, no
# annotations, the keys name, type, fields, symbols, items in that order.
META_CANONICAL = (
    '{"name":"forktrail.Meta","type":"record","fields":['
    '{"name":"event_id","type":"string"},{"name":"run","type":"string"},{"name":"occurred_at","type":"long"},'
    '{"name":"actor","type":{"name":"forktrail.Actor","type":"record","fields":['
    '{"name":"kind","type":{"name":"forktrail.ActorKind","type":"enum",'
    '"symbols":["human","service","agent","behavior"]}},{"name":"id","type":"string"}]}},'
    '{"name":"causes","type":{"type":"array","items":"string"}},{"name":"goal","type":["null","string"]},'
    '{"name":"execution","type":["null",{"name":"forktrail.Execution","type":"record","fields":['
    '{"name":"id","type":"string"},{"name":"behavior","type":"string"},{"name":"version","type":"string"},'
    '{"name":"handler","type":"string"},{"name":"match","type":{"type":"array","items":"string"}},'
    '{"name":"path","type":"string"}]}]},{"name":"frame","type":["null","string"]}]}'
)
CANONICAL = {
    GoalSet: '{"name":"forktrail.GoalSet","type":"record","fields":[{"name":"meta","type":'
    + META_CANONICAL
    + '},{"name":"text","type":"string"}]}',
    RunAnnounced: '{"name":"forktrail.RunAnnounced","type":"record","fields":[{"name":"run","type":"string"},'
    '{"name":"topic","type":"string"},{"name":"goal","type":"string"},'
    '{"name":"status","type":{"name":"forktrail.RunStatus","type":"enum","symbols":["open","closed"]}},'
    '{"name":"opened_at","type":"long"}]}',
}


def test_the_reference_fingerprint_is_the_specifications() -> None:
    assert crc_64_avro(b'"int"') == 0x7275D51A3F395C8F


@pytest.mark.parametrize("cls", CANONICAL)
def test_a_fingerprint_is_the_crc_of_the_canonical_form_little_endian(cls: type[GoalSet] | type[RunAnnounced]) -> None:
    assert schema_of(cls).fingerprint == crc_64_avro(CANONICAL[cls].encode()).to_bytes(8, "little")


def test_every_fingerprint_is_the_crc_of_fastavros_canonical_form() -> None:
    for schema in by_fingerprint().values():
        canonical = to_parsing_canonical_form(json.loads(schema.text))
        assert schema.fingerprint == crc_64_avro(canonical.encode()).to_bytes(8, "little"), schema.name


def test_no_two_versions_share_a_fingerprint_or_a_digest() -> None:
    versions = [schema for schemas_of_type in published().values() for schema in schemas_of_type]
    assert len(by_fingerprint()) == len({schema.sha256 for schema in versions}) == len(versions)


def test_every_class_has_its_schema_and_the_other_way_round() -> None:
    assert schemas().keys() == record_classes().keys() == {cls.TYPE for cls in (*EVENT_TYPES, *OTHER_TYPES)}
    assert RunAnnounced in OTHER_TYPES
    versions = [(schema.name, schema.version) for schema in by_fingerprint().values()]
    classes = (*EVENT_TYPES, *OTHER_TYPES, *EARLIER_VERSIONS)
    assert sorted(versions) == sorted((cls.TYPE, cls.VERSION) for cls in classes)
    assert all(class_of(cls.TYPE, cls.VERSION) is cls for cls in classes)


def test_a_types_versions_are_numbered_from_one_and_the_last_is_the_current() -> None:
    for name, versions in published().items():
        assert [schema.version for schema in versions] == list(range(1, len(versions) + 1)), name
        assert schemas()[name] is versions[-1]
    assert [schema.version for schema in published()["forktrail.ReportFiled"]] == [1, 2]
    assert (schema_of(ReportFiledV1).version, schema_of(ReportFiled).version) == (1, 2)


# As release 0.1.0 wrote them on logs: fingerprint and SHA-256, computed then by fastavro and sha256sum.
RELEASED = {
    GoalSet: ("966668756047eae5", "08a3f0331e7aae027eed07f425543a6a3df5c0550c9c0c575966db91f1e3e9f7"),
    RunAnnounced: ("b9819adaee4f9565", "17a40d7da5ca52f94d4e9134722ef2487843d20db618398641198b4b07d889ac"),
    ReportFiledV1: ("4b2452d1c7774236", "21124ae8b6996b2dfe0c64b2c2576ce7fb10964d146ab2fddc92bfd925955cd3"),
}


@pytest.mark.parametrize("cls", RELEASED, ids=lambda cls: str(cls.__name__))
def test_what_was_released_keeps_its_fingerprint_and_identity(cls: type[GoalSet]) -> None:
    schema = schema_of(cls)
    assert (schema.fingerprint.hex(), schema.sha256) == RELEASED[cls]


def test_a_schemas_digest_is_that_of_its_sorted_json_without_docs() -> None:
    # printf '%s' '{"fields":[{"name":"b","type":"int"}],"name":"A","type":"record"}' | sha256sum
    expected = "be7433fffd66e0f8a7afe5b388d9b3415d8637aafb1557d401e9858aba223f51"
    schema = {"type": "record", "name": "A", "doc": "x", "fields": [{"type": "int", "doc": "y", "name": "b"}]}
    assert schema_sha256(schema) == expected


def test_a_schemas_digest_tells_constraints_apart_that_the_fingerprint_does_not() -> None:
    assert schema_sha256({"type": "int", "maximum": 100}) != schema_sha256({"type": "int", "maximum": 101})
