"""The topic of schemas: what other tools need to decode records. The fold never reads it.

A record's key is the schema's SHA-256 (of its text without docs), its value JSON:

    {"name": "forktrail.ReportFiled", "version": 2, "fingerprint": "…", "sha256": "…", "schema": "…"}

`fingerprint` is in hex what stands in bytes 2 to 9 of every value written under the schema, `schema` its Avro text.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from forktrail_producers.compacted import records_of
from forktrail_producers.kafka import Topics
from forktrail_producers.producer import Producer
from forktrail_schemas.catalog import Schema, published
from forktrail_schemas.topics import SCHEMAS


class SchemaTopic:
    """Publishes schemas, each once."""

    def __init__(self, bootstrap_servers: str) -> None:
        self._bootstrap_servers = bootstrap_servers

    def publish(self, schemas: Iterable[Schema], producer: Producer) -> int:
        """Put those schemas on the topic that aren't there yet; durable on return. Returns how many it put there.

        Two at once may both put one there, which changes nothing.

        Raises:
            LogUnavailable: Kafka doesn't answer.
        """
        Topics(self._bootstrap_servers).make(SCHEMAS)
        there = self.digests()
        missing = {schema.sha256: schema for schema in schemas if schema.sha256 not in there}
        for digest, schema in missing.items():
            producer.emit_keyed(SCHEMAS.name, digest, _value(schema))
        return len(missing)

    def digests(self) -> set[str]:
        """The SHA-256 of each schema on the topic.

        Raises:
            LogUnavailable: Kafka doesn't answer.
        """
        found: dict[str, bool] = {}
        for message in records_of(self._bootstrap_servers, SCHEMAS.name):
            found[(message.key() or b"").decode("utf-8", "replace")] = message.value() is not None
        return {digest for digest, there in found.items() if there}


def built_in_schemas() -> list[Schema]:
    """Every version of every built-in type."""
    return [schema for versions in published().values() for schema in versions]


def _value(schema: Schema) -> bytes:
    facts = {
        "name": schema.name,
        "version": schema.version,
        "fingerprint": schema.fingerprint.hex(),
        "sha256": schema.sha256,
        "schema": schema.text,
    }
    return json.dumps(facts, ensure_ascii=False, separators=(",", ":")).encode()
