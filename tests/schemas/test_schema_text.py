from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import pytest

from forktrail_schemas.schema_text import (
    NESTING_MAX,
    BadSchema,
    canonical_form,
    read_json,
    schema_fingerprint,
    writers_schema,
)
from support import avro


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[1,]",
        "{'type': 'int'}",
        '{"type": "int"} x',
        '"a\nb"',
        "\ufeff1",
        "NaN",
        "-Infinity",
        '{"a": 1, "a": 1}',
        '{"b": {"a": 1, "a": 2}}',
        '"\\ud800"',
        '{"\\udfff": 1}',
        "1" * 20,
        "-" + "1" * 20,
        "1" * 5_000,  # Python refuses it or not by its environment
    ],
)
def test_what_is_no_json_or_has_no_one_meaning_is_refused(text: str) -> None:
    with pytest.raises(BadSchema):
        read_json(text)


@pytest.mark.parametrize("value", [None, True, 0, -(2**63), 2**63 - 1, 1.5, "é😀", [], {"a": [{"b": {}}]}])
def test_other_json_is_read_as_it_is(value: Any) -> None:
    assert read_json(json.dumps(value)) == value
    assert read_json(json.dumps(value, ensure_ascii=False, indent=2)) == value


def at_depth(frames: int, call: Callable[[], object]) -> object:
    return call() if frames == 0 else at_depth(frames - 1, call)


@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"a":', "}")])
def test_how_deep_it_may_be_nested_depends_on_the_text_alone(opening: str, closing: str) -> None:
    fits, too_deep = [opening * depth + "1" + closing * depth for depth in (NESTING_MAX, NESTING_MAX + 1)]
    for frames in (0, sys.getrecursionlimit() // 2):
        at_depth(frames, lambda: read_json(fits))
        with pytest.raises(BadSchema, match="deep"):
            at_depth(frames, lambda: read_json(too_deep))


def test_brackets_in_strings_are_not_nesting() -> None:
    assert read_json(json.dumps("[" * 1_000 + '\\"{')) == "[" * 1_000 + '\\"{'


def test_a_text_of_brackets_alone_is_refused_at_once() -> None:
    for char in '["\\{':
        with pytest.raises(BadSchema):
            read_json(char * 65_536)


def test_the_fingerprint_is_the_specifications() -> None:
    assert schema_fingerprint("int") == (0x7275D51A3F395C8F).to_bytes(8, "little")
    for type in ("null", "string", {"type": "array", "items": "long"}):
        canonical = json.dumps(type, separators=(",", ":"))
        assert schema_fingerprint(writers_schema(type)) == avro.crc_64_avro(canonical.encode()).to_bytes(8, "little")


def test_what_fastavro_might_take_for_a_key_of_its_own_is_none() -> None:
    schema = {"type": "record", "name": "R", "fields": [{"name": "a", "type": "int", "__named_schemas": {}}]}
    plain = canonical_form(writers_schema(schema))
    for key in ("__fastavro_parsed__", "__fastavro_parsed", "__named_schemas", "_named_schemas"):
        for value in (True, {}, {"R": "int"}):
            assert canonical_form(writers_schema({**schema, key: value})) == plain


def test_what_fastavro_does_not_take_is_no_schema() -> None:
    for schema in ("unknown", {"type": "enum", "name": "E"}, {"type": "record", "fields": []}, {"name": "R"}, 5):
        with pytest.raises(BadSchema, match="it is no Avro schema"):
            writers_schema(schema)
