"""Handoff packets of a story told in memory, and every way of changing one value in them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, cast

import rfc8785

from forktrail_producers.blobs import BlobStore
from forktrail_projectors.graph.cypher import CypherGraph
from forktrail_projectors.handoff import DIGEST_FIELD, Packet, build_packet, packet_bytes, packet_sha256
from forktrail_projectors.projection import Projection
from forktrail_projectors.reader import LogReader
from forktrail_projectors.record import LogRecord
from support.story import EVIDENCE, OPERATOR, REVIEWER, RUNNER, STRANGER, TOPIC_ID, Story

Place = tuple[str | int, ...]


class StoryReader:
    """A story's records, read as a log is."""

    topic_id = TOPIC_ID

    def __init__(self, story: Story) -> None:
        self._records = story.records

    def end(self) -> int:
        """The offset after the last record."""
        return len(self._records)

    def read(self, start: int, end: int) -> Iterator[list[LogRecord]]:
        """The records [start, end)."""
        yield self._records[start:end]


class FullStore:
    """Has bytes of the right size for whatever evidence a story names."""

    def get(self, sha256: str) -> bytes:
        """Bytes that were never hashed."""
        return bytes(int(EVIDENCE["size"]))


def packet_of(story: Story) -> Packet:
    """The packet of a story whose graph answers Cypher, read back from its bytes."""
    graph, reader = cast(CypherGraph, story.graph), cast(LogReader, StoryReader(story))
    packet = build_packet(Projection(story.run, graph, reader), cast(BlobStore, FullStore()))
    return cast(Packet, json.loads(packet_bytes(packet)))


def sealed(packet: Packet) -> bytes:
    """The bytes of a packet whose digest is right, whatever else was changed in it."""
    return rfc8785.dumps(packet | {DIGEST_FIELD: packet_sha256(packet)})


def tell_rich(story: Story) -> None:
    """A story that fills every part of a packet: two revisions, a withdrawal, a retry, a key that was revoked."""
    story.open()
    story.set("same-person-may-review", "true")
    story.register("root", enables=["a"], impact=70, asset="gateway")
    story.register("side", enables=["a"], impact=20, asset="side-door")
    story.register("mid", requires=["a"], enables=["b", "c"], impact=90, asset="api")
    story.register("odd", requires=["a"], impact=40, asset="api")
    story.register("next", requires=["a", "b"], impact=80, asset="api")
    story.register("far", requires=["b", "d"], impact=95, asset="vault")
    story.register("source-of-d", enables=["d"], impact=10, asset="vault")
    story.settle(story.report("source-of-d"))
    story.advance("r2")
    story.add_key(STRANGER, "runner", "reviewer")
    story.revoke(STRANGER)
    root = story.settle(story.report("root"))
    fallen = story.settle(story.report("side"))
    story.withdraw(fallen)
    story.settle(story.propose("mid", [root])[0])
    again, _ = story.propose("odd", [root])
    story.settle(again, "inconclusive")
    story.retry(again)
    story.settle(story.propose("odd", [root])[0], "inconclusive")
    story.register("closed", requires=["c"], impact=30, asset="api")
    mid = next(row for row in story.rows().values() if row.get("title") == "Test mid" and "depth" in row)
    story.settle(story.propose("closed", [str(mid["id"])])[0], "not_reproduced")
    story.register("withdrawn-too", requires=["e"], impact=1)
    assert {OPERATOR.key_id, REVIEWER.key_id, RUNNER.key_id}


def leaves(value: Any, place: Place = ()) -> Iterator[tuple[Place, Any]]:
    """Every value that holds no other, with the way to it."""
    if isinstance(value, dict):
        for name in value:
            yield from leaves(value[name], (*place, name))
    elif isinstance(value, list):
        for index, entry in enumerate(value):
            yield from leaves(entry, (*place, index))
    else:
        yield place, value


def containers(value: Any, place: Place = ()) -> Iterator[tuple[Place, Any]]:
    """Every list and object, with the way to it."""
    if isinstance(value, dict | list):
        yield place, value
        for name in value if isinstance(value, dict) else range(len(value)):
            yield from containers(value[name], (*place, name))


def other_values(value: object) -> Iterator[object]:
    """Values that a leaf might be changed to, of its own kind and of another."""
    yield [value]
    if isinstance(value, bool):
        yield not value
        yield int(value)
    elif isinstance(value, int):
        yield value + 1
        yield value - 1
        yield str(value)
    elif isinstance(value, str):
        yield from ({"": None, value + "x": None, value + " ": None} if value else {"x": None})
        for index in sorted({0, len(value) // 3, len(value) // 2, len(value.rstrip("=")) - 1} if value else ()):
            yield value[:index] + _another(value[index]) + value[index + 1 :]
        yield None
    else:
        yield ""
        yield 0


def changed(packet: Packet, place: Place, value: object) -> Packet:
    """A copy of a packet with another value at one place."""
    copy = cast(Packet, json.loads(json.dumps(packet)))
    here: Any = copy
    for name in place[:-1]:
        here = here[name]
    here[place[-1]] = value
    return copy


def pattern(place: Place) -> str:
    """A place with its list positions left out: `records[].value`."""
    return re.sub(r"\.?\[\]", "[]", ".".join("[]" if isinstance(name, int) else name for name in place))


def _another(char: str) -> str:
    """Another character of the same sort, so that hex stays hex and base64 base64."""
    for sort in ("0123456789", "abcdef", "ghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ"):
        if char in sort:
            return sort[(sort.index(char) + 1) % len(sort)]
    return "+" if char == "/" else "/"
