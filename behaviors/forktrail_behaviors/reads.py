"""Named reads: Cypher that a handler asks of the graph as of its trigger, checked before the first event.

The rows must be the same whenever the same log is folded. So a query whose rows come in no order of its own has them
sorted, and one that takes the first few must say by what order. Order by something that differs from row to row: what
an engine does with rows that it finds equal is its own affair.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Protocol

from forktrail_projectors.graph.protocol import Table
from forktrail_projectors.graph.readonly import check_read_only, parameters_of, words_of
from forktrail_projectors.state import Value
from forktrail_schemas.errors import InvalidInput
from forktrail_schemas.events.base import Event
from forktrail_schemas.json_text import Json, canonical_json

_NAME = re.compile("[a-z_][a-z0-9_]*")


class Asked(Protocol):
    """A graph that answers Cypher, as of the offset it stands at."""

    def query(self, cypher: str, parameters: Mapping[str, Value] | None = None) -> Table:
        """Run one read-only statement."""
        ...


def check_reads(handler: str, reads: Mapping[str, str]) -> None:
    """Refuse what could write, or could give other rows for the same log.

    Raises:
        InvalidInput: naming the handler and the read.
    """
    for name, cypher in reads.items():
        try:
            if not _NAME.fullmatch(name):
                raise InvalidInput("a read is called by a word in lower case")
            check_query(cypher)
        except InvalidInput as error:
            error.message = f"{handler}, read {name!r}: {error.message}"
            raise


def check_query(cypher: str) -> None:
    """Refuse a query that could write, or could give other rows for the same log.

    Raises:
        InvalidInput: what is refused, and what to write instead.
    """
    check_read_only(cypher, parameters_of(cypher))
    words = words_of(cypher)
    if ("LIMIT" in words or "SKIP" in words) and "ORDER" not in words:
        raise InvalidInput("LIMIT and SKIP without ORDER BY take any rows", hint="say ORDER BY something unique")
    if "RAND" in words or "RANDOM" in words or words & _CLOCKS:
        raise InvalidInput("a query may not ask for random numbers or the time", hint="use ctx.random or ctx.now")


_CLOCKS = frozenset({"CURRENT_DATE", "CURRENT_TIMESTAMP", "CURRENT_TIME", "NOW", "GEN_RANDOM_UUID", "UUID"})


def rows_of(graph: Asked, cypher: str, parameters: Mapping[str, Value]) -> list[dict[str, Json]]:
    """The rows of a checked query, each with its columns by name; the same for the same log."""
    table = graph.query(cypher, parameters)
    rows: list[dict[str, Json]] = [dict(zip(table.columns, row, strict=True)) for row in table.rows]
    if "ORDER" not in words_of(cypher):
        rows.sort(key=canonical)
    return rows


def parameters_for(cypher: str, event: Event, bound: Mapping[str, str]) -> dict[str, Value]:
    """What a read's `$names` stand for: ids of bound variables, fields of the trigger, `$id` for the trigger's subject.

    Raises:
        InvalidInput: a name stands for nothing.
    """
    found: dict[str, Value] = {}
    for name in parameters_of(cypher):
        if name in bound:
            found[name] = bound[name]
        elif name == "id":
            found[name] = event.subject_id
        elif name in type(event).model_fields and isinstance(value := getattr(event, name), str | int | None):
            found[name] = value
        else:
            raise InvalidInput(
                f"${name} stands for nothing: {event.TYPE} has no such field, and the pattern no such variable",
                hint="use a field of the trigger, $id for its subject, or a variable of the pattern",
            )
    return found


def canonical(value: Json) -> bytes:
    """JSON as RFC 8785 writes it; the same bytes for the same value.

    Raises:
        InvalidInput: it is no JSON value.
    """
    return canonical_json(value).encode()
