"""`ctx.query`: answered from the graph as of the request's own offset, and recorded as a tool's answer."""

from __future__ import annotations

import json
from dataclasses import dataclass

from forktrail_behaviors.reads import Asked, canonical, rows_of
from forktrail_schemas.errors import GraphError, InvalidInput
from forktrail_schemas.events import ToolRequested


@dataclass(frozen=True)
class QueryAnswer:
    """The graph's answer to a request.

    Attributes:
        request: its event.
        outcome: ok, or error.
        answer: JSON text of the rows, None where it failed.
    """

    call_id: str
    request: ToolRequested
    outcome: str
    answer: str | None
    error: str


def answer_query(graph: Asked, call_id: str, request: ToolRequested) -> QueryAnswer:
    """Answer a request for `graph.query` from a graph that has folded it last."""
    arguments = json.loads(request.request)["arguments"]
    try:
        rows = rows_of(graph, arguments["cypher"], arguments["parameters"])
    except (InvalidInput, GraphError) as error:
        return QueryAnswer(call_id, request, "error", None, error.message)
    return QueryAnswer(call_id, request, "ok", canonical(rows).decode(), "")
