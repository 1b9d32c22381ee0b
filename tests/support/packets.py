"""Handoff packets of a story told in memory, and every way of changing one value in them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, cast

import rfc8785

from forktrail_producers.blobs import BlobStore
from forktrail_projectors.graph.cypher import CypherGraph
from forktrail_projectors.handoff.packet import DIGEST_FIELD, Packet, build_packet, packet_bytes, packet_sha256
from forktrail_projectors.projection import Projection
from forktrail_projectors.reader import LogReader
from forktrail_projectors.record import LogRecord
from support.story import EVIDENCE_BYTES, STRANGER, TOPIC_ID, Story

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
        return bytes(EVIDENCE_BYTES)


def with_cypher(story: Story) -> Story:
    """The same story, its records folded at once into a graph that answers Cypher."""
    copy = Story(story.run, CypherGraph.in_memory())
    copy.records = story.records
    copy.projector.apply(copy.records)
    return copy


def packet_of(story: Story) -> Packet:
    """The packet of a story, read back from its bytes."""
    told = with_cypher(story)
    graph, reader = cast(CypherGraph, told.graph), cast(LogReader, StoryReader(told))
    try:
        packet = build_packet(Projection(told.run, graph, reader), cast(BlobStore, FullStore()))
    finally:
        graph.close()
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


def some_of_each(places: Iterable[tuple[str, Place, Any]], *, every: str = "") -> Iterator[tuple[str, Place, Any]]:
    """The first and the last place of each name, and all of the name `every`; thousands of like ones take minutes."""
    groups: dict[str, list[tuple[str, Place, Any]]] = {}
    for place in places:
        groups.setdefault(place[0], []).append(place)
    for group in groups.values():
        yield from group if group[0][0] == every else group[:1] + group[1:][-1:]


def other_values(value: object) -> Iterator[object]:
    """Values that a leaf might be changed to: of its own kind, and none at all."""
    if isinstance(value, bool):
        yield from (not value, int(value), None)
    elif isinstance(value, int):
        yield from (value + 1, value - 1, str(value))
    elif isinstance(value, str) and value:
        last = len(value.rstrip("=")) - 1
        for index in sorted({len(value) // 3, last}):
            yield value[:index] + _another(value[index]) + value[index + 1 :]
        yield None
    else:
        yield from ("x", 0)


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
