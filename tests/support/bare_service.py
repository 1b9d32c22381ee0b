"""A service without our package: reads the text of an .avsc, and writes a report under it to a run's topic.

    python -I bare_service.py BOOTSTRAP_SERVERS RUN AVSC

It has the Kafka client and the `avro` package, and no Forktrail can be imported in it. The fingerprint is worked out
here from the specification. Prints the offset of the record.
"""

from __future__ import annotations

import io
import json
import sys
import time
import uuid
from pathlib import Path
from typing import Any


class NoForktrail:
    """Keeps every module of ours from being imported."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name.startswith("forktrail"):
            raise ImportError(f"{name} is kept out")


sys.meta_path.insert(0, NoForktrail())

import avro.io  # noqa: E402  # only after ours are kept out
import avro.schema  # noqa: E402
from confluent_kafka import Message, Producer  # noqa: E402

EMPTY = 0xC15D213AA4D7A795
KEPT = ("name", "type", "fields", "symbols", "items", "values", "size")
PRIMITIVES = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")


def canonical(schema: Any, namespace: str = "") -> str:
    """The specification's parsing canonical form."""
    if isinstance(schema, str):
        return json.dumps(schema if schema in PRIMITIVES or "." in schema or not namespace else f"{namespace}.{schema}")
    if isinstance(schema, list):
        return "[" + ",".join(canonical(branch, namespace) for branch in schema) + "]"
    if schema["type"] in PRIMITIVES:
        return json.dumps(schema["type"])
    space = schema.get("namespace", namespace)
    parts = {"type": json.dumps(schema["type"])}
    if "name" in schema:
        parts["name"] = canonical(schema["name"], space)
    if "fields" in schema:
        fields = [
            f'{{"name":"{field["name"]}","type":{canonical(field["type"], space)}}}' for field in schema["fields"]
        ]
        parts["fields"] = "[" + ",".join(fields) + "]"
    for key in ("symbols", "size"):
        if key in schema:
            parts[key] = json.dumps(schema[key], separators=(",", ":"))
    for key in ("items", "values"):
        if key in schema:
            parts[key] = canonical(schema[key], space)
    return "{" + ",".join(f'"{key}":{parts[key]}' for key in KEPT if key in parts) + "}"


def crc_64_avro(data: bytes) -> int:
    """The specification's fingerprint, bit by bit."""
    result = EMPTY
    for byte in data:
        result ^= byte
        for _ in range(8):
            result = result >> 1 ^ (EMPTY if result & 1 else 0)
    return result


def report(run: str) -> dict[str, Any]:
    """What the fields of a ReportFiled are, by the docs in its .avsc."""
    milliseconds = int(time.time() * 1000)
    number = milliseconds << 80 | 7 << 76 | uuid.uuid4().int & 0xFFF << 64 | 2 << 62 | uuid.uuid4().int & 2**62 - 1
    return {
        "meta": {
            "event_id": str(uuid.UUID(int=number)),
            "run": run,
            "occurred_at": milliseconds * 1000,
            "actor": {"kind": "service", "id": "bare-service"},
            "causes": [],
            "goal": None,
            "execution": None,
            "frame": None,
        },
        "test_id": "root",
        "summary": "seen by a service of another make",
        "details": "with the file of the schema alone",
    }


def value_of(text: str, fields: dict[str, Any]) -> bytes:
    """Single-object encoding: a marker, the fingerprint, the body."""
    # Times are whole microseconds here; the library would ask for datetimes where the schema says what they count.
    schema = json.loads(text.replace('"logicalType"', '"unit"'))
    parsed = avro.schema.parse(json.dumps(schema))
    assert isinstance(parsed, avro.schema.RecordSchema)
    body = io.BytesIO()
    known = {name: value for name, value in fields.items() if name in parsed.fields_dict}
    avro.io.DatumWriter(parsed).write(known, avro.io.BinaryEncoder(body))
    return b"\xc3\x01" + crc_64_avro(canonical(schema).encode()).to_bytes(8, "little") + body.getvalue()


def main(bootstrap_servers: str, run: str, avsc: str) -> None:
    """Write one report, without headers, and print its offset."""
    fields = report(run)
    offsets: list[int | None] = []

    def delivered(error: object, message: Message) -> None:
        assert error is None, error
        offsets.append(message.offset())

    producer = Producer({"bootstrap.servers": bootstrap_servers, "enable.idempotence": True})
    value = value_of(Path(avsc).read_text(encoding="utf-8"), fields)
    producer.produce(f"forktrail.run.{run}", value=value, key=fields["test_id"], partition=0, on_delivery=delivered)
    assert producer.flush(30) == 0
    assert not [name for name in sys.modules if name.startswith("forktrail")]
    print(offsets[0])


if __name__ == "__main__":
    main(*sys.argv[1:])
