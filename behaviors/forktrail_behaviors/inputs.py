"""What an execution is given beyond its trigger: read once, recorded in BehaviorStarted, recalled from there."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from forktrail_behaviors.behavior import Handler
from forktrail_behaviors.given import Node, Row, Rows
from forktrail_behaviors.mirrored_graph import MirroredGraph
from forktrail_behaviors.reads import canonical, parameters_for, rows_of
from forktrail_behaviors.subscription import Match
from forktrail_schemas.errors import ForktrailError, GraphError, InvalidInput
from forktrail_schemas.events.base import Event
from forktrail_schemas.events.work import Input
from forktrail_schemas.json_text import Json

INLINE_BYTES_MAX = 65_536
MEDIA_TYPE = "application/json"
_NODE = "node"
_ROWS = "rows"


class Blobs(Protocol):
    """Where large bytes lie by their SHA-256."""

    def put(self, value: bytes) -> str:
        """Store bytes, durably; returns their SHA-256."""
        ...

    def get(self, sha256: str) -> bytes:
        """The bytes of a digest.

        Raises:
            Corruption: they are missing or altered.
        """
        ...


class ReadFailed(ForktrailError):
    """A handler's read can't be answered; its execution ends with this."""

    code = "read_failed"


@dataclass(frozen=True)
class Inputs:
    """Values by name, as JSON: of a bound node its label and row, of a read its rows."""

    values: Mapping[str, Json]

    def recorded(self, blobs: Blobs) -> list[dict[str, object]]:
        """As BehaviorStarted records them; what is large goes into the blob store first."""
        return [_recorded(name, canonical(value), blobs) for name, value in self.values.items()]

    @staticmethod
    def recalled(recorded: Sequence[Input], blobs: Blobs) -> Inputs:
        """As BehaviorStarted has recorded them."""
        texts = {one.name: blobs.get(one.blob.sha256) if one.blob else one.rows for one in recorded}
        return Inputs({name: json.loads(text) for name, text in texts.items()})


def read_inputs(graph: MirroredGraph, handler: Handler, match: Match, event: Event) -> Inputs:
    """Read what a handler takes, as of the event that the graph has folded last.

    Raises:
        ReadFailed: the graph refused a query.
    """
    values: dict[str, Json] = {}
    bound = dict(match.nodes)
    for name in handler.takes:
        if name in bound:
            row = graph.node(*bound[name])
            assert row is not None, "what matched is there"
            values[name] = {_NODE: bound[name].table, "row": dict(row)}
        elif name in handler.reads:
            cypher = handler.reads[name]
            try:
                ids = {variable: str(key.id) for variable, key in bound.items()}
                values[name] = {_ROWS: rows_of(graph, cypher, parameters_for(cypher, event, ids))}
            except (InvalidInput, GraphError) as error:
                raise ReadFailed(f"{name}: {error.message}", code=error.code) from error
    return Inputs(values)


def given_from(inputs: Inputs, event: Event) -> dict[str, object]:
    """What a handler is called with, by name."""
    given: dict[str, object] = {"event": event}
    for name, value in inputs.values.items():
        assert isinstance(value, Mapping)
        given[name] = Node(value[_NODE], value["row"]) if _NODE in value else _rows(value[_ROWS])
    return given


def _rows(rows: Sequence[Mapping[str, object]]) -> Rows:
    return tuple(Row(row) for row in rows)


def _recorded(name: str, text: bytes, blobs: Blobs) -> dict[str, object]:
    if len(text) <= INLINE_BYTES_MAX:
        return {"name": name, "rows": text.decode(), "blob": None}
    blob = {"sha256": blobs.put(text), "size": len(text), "media_type": MEDIA_TYPE}
    return {"name": name, "rows": "null", "blob": blob}
