"""Types that a run declares, for tests of the graph: every kind of column, references, and a relation with data."""

from __future__ import annotations

import json

from forktrail_projectors.graph.declared_tables import BUILT_IN, Tables
from forktrail_projectors.state import Changes, NodeKey, Row

NULLABLE = {
    "text": {"type": "string"},
    "count": {"type": "integer"},
    "weight": {"type": "number"},
    "open": {"type": "boolean"},
    "tags": {"type": "array", "items": {"type": "string"}},
    "more": {"type": "object"},
}


def type_rows() -> list[Row]:
    """Rows of the table `Type`: Company and Question, which names a company and may name another question; CITES."""
    question = NULLABLE | {"about": {"type": "string"}, "follows": {"type": "string"}}
    return [
        _row("Company", "object", NULLABLE, 1),
        _row("Question", "object", question, 2, references=("about=Company", "follows=Question")),
        _row("CITES", "relation", NULLABLE, 3, sources=("Question", "Company"), targets=("Company",)),
    ]


def declared_tables() -> Tables:
    """The tables that these make."""
    return BUILT_IN.with_types(type_rows())


def declarations() -> Changes:
    """The changes that declare them."""
    made = Changes()
    for row in type_rows():
        made.put_node(NodeKey("Type", str(row["id"])), None, row)
    return made


def _row(
    name: str,
    kind: str,
    properties: dict[str, object],
    offset: int,
    *,
    references: tuple[str, ...] = (),
    sources: tuple[str, ...] = (),
    targets: tuple[str, ...] = (),
) -> Row:
    return {
        "id": name,
        "kind": kind,
        "schema": json.dumps({"type": "object", "properties": properties}),
        "references": references,
        "sources": sources,
        "targets": targets,
        "personal": (),
        "merge": (),
        "created_event": f"e-{offset}",
        "created_offset": offset,
        "changed_event": f"e-{offset}",
        "changed_offset": offset,
    }
