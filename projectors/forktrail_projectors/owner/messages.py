"""What goes over the owner's socket, as JSON: keys, rows and errors; and how they are made of it again.

A request is `{"do": name, ...}`. Its answer is any number of frames `{"items": [...]}` and `{}` (still at it), and then
`{"done": {...}}` or `{"error": {...}}`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

from forktrail_projectors.state import EdgeKey, EdgesKey, End, NodeKey, Row, Value
from forktrail_schemas import errors
from forktrail_schemas.errors import ForktrailError, GraphError, InvalidInput

PROTOCOL = 1

# While it works on an answer, the owner says so this often; silence for SILENCE_SECONDS is an owner that hangs.
STILL_AT_IT_SECONDS = 2.0
SILENCE_SECONDS = 30.0

Json = Any  # whatever the other side sent; each function here checks or rebuilds what it takes


class OwnerGone(Exception):
    """The connection to the owner ended before the answer: it closed, died, or opened its graph anew."""


def error_json(error: ForktrailError) -> dict[str, object]:
    """An error as it is sent."""
    return {
        "class": type(error).__name__,
        "code": error.code,
        "message": error.message,
        "hint": error.hint,
        "run": error.run,
        "offset": error.offset,
        "event_id": error.event_id,
    }


def error_of(sent: Json) -> ForktrailError:
    """The error that was sent, of its own class, so that whoever catches it decides as if it had happened here."""
    cls = getattr(errors, str(sent.get("class")), GraphError)
    if not (isinstance(cls, type) and issubclass(cls, ForktrailError)):
        cls = GraphError
    return cls(
        str(sent.get("message")),
        code=str(sent.get("code")),
        hint=str(sent.get("hint")),
        run=sent.get("run"),
        offset=sent.get("offset"),
        event_id=sent.get("event_id"),
    )


def node_keys(sent: Json) -> list[NodeKey]:
    """Node keys from a request.

    Raises:
        InvalidInput: they are none.
    """
    return [_node_key(key) for key in _listed(sent)]


def edges_keys(sent: Json) -> list[EdgesKey]:
    """Relation keys from a request.

    Raises:
        InvalidInput: they are none.
    """
    keys = []
    for key in _listed(sent):
        match key:
            case [str(table), "source" | "target" as end, node]:
                keys.append(EdgesKey(table, cast(End, end), _node_key(node)))
            case _:
                raise InvalidInput(f"{key!r} is no key of relations", code="bad_request")
    return keys


def values_of(sent: Json) -> dict[str, Value]:
    """A query's parameters.

    Raises:
        InvalidInput: one is of a type that no parameter has.
    """
    if not isinstance(sent, Mapping):
        raise InvalidInput("parameters are an object", code="bad_request")
    return {name: _value(value) for name, value in sent.items()}


def row_of(sent: Json) -> Row:
    """A row, its lists of strings being tuples again."""
    return {name: tuple(value) if isinstance(value, list) else value for name, value in sent.items()}


def found_nodes(items: Iterable[Json]) -> dict[NodeKey, Row]:
    """The answer to a request for nodes."""
    return {_node_key(key): row_of(row) for key, row in items}


def found_edges(keys: Iterable[EdgesKey], items: Iterable[Json]) -> dict[EdgesKey, tuple[EdgeKey, ...]]:
    """The answer to a request for relations: for each key, in order, the nodes at the other end."""
    found = {}
    for key, others in zip(keys, items, strict=True):
        ends = [_node_key(other) for other in others]
        made = (
            EdgeKey(key.table, key.node, end) if key.end == "source" else EdgeKey(key.table, end, key.node)
            for end in ends
        )
        found[key] = tuple(made)
    return found


def _node_key(sent: Json) -> NodeKey:
    match sent:
        case [str(table), str() | int() as id] if not isinstance(id, bool):
            return NodeKey(table, id)
    raise InvalidInput(f"{sent!r} is no key of a node", code="bad_request")


def _listed(sent: Json) -> list[Json]:
    if not isinstance(sent, list):
        raise InvalidInput("keys are a list", code="bad_request")
    return sent


def _value(sent: Json) -> Value:
    if isinstance(sent, list) and all(isinstance(part, str) for part in sent):
        return tuple(sent)
    if sent is None or isinstance(sent, str | int | bool):
        return sent
    raise InvalidInput("a parameter is a text, whole number, truth value, list of texts, or null", code="bad_request")
