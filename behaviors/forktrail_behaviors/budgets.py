"""Which budgets of calls are used up, so that the log says so once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from forktrail_projectors.rules.log import COST, MODEL_CALLS, SECONDS, TOKENS, TOOL_CALLS
from forktrail_projectors.state import RowSource


class UsedUp(NamedTuple):
    """A budget of which nothing is left."""

    name: str
    limit: int
    used: int


def used_up(graph: RowSource) -> Iterator[UsedUp]:
    """The budgets of calls of which nothing is left, and of which the log doesn't say so yet."""
    for name in (MODEL_CALLS, TOOL_CALLS, TOKENS, COST, SECONDS):
        row = graph.node("Budget", name)
        if row is None or row["exhausted"]:
            continue
        limit, used = row["limit"], row["used"]
        if isinstance(limit, int) and isinstance(used, int) and used >= limit:
            yield UsedUp(name, limit, used)
