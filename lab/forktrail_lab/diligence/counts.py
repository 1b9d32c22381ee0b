"""What a diligence run has come to, in numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from forktrail_lab.diligence.types import BASED_ON, CONTRADICTS, OBJECTS
from forktrail_projectors.rules.calls import GRAPH_QUERY, MODEL, TOOL
from forktrail_projectors.state import EdgeKey, NodeKey, Row

# What references make is called after them.
_RELATIONS = ("ADDRESSES", "DERIVED_FROM", "SUPPORTS", CONTRADICTS.name)


def counts_of(rows: Iterable[tuple[NodeKey | EdgeKey, Row]]) -> dict[str, int]:
    """Objects in use by their type, relations, and calls of models and tools, of a run's graph; all in lower case."""
    found: Counter[str] = Counter()
    for key, row in rows:
        if key.table != "Call":
            found[key.table] += not row.get("retired")
        elif row["name"] != GRAPH_QUERY:
            found[f"{row['kind']} calls"] += 1
    names = [model.__name__ for model in OBJECTS]
    counted = (*names, *_RELATIONS, f"{MODEL} calls", f"{TOOL} calls")
    return {name.lower(): found[name] for name in counted}


def bases_of(rows: Iterable[tuple[NodeKey | EdgeKey, Row]]) -> dict[str, int]:
    """How many claims each memo rests on, by its id."""
    found: dict[str, int] = {}
    for key, _ in rows:
        if isinstance(key, EdgeKey):
            if key.table == BASED_ON.name:
                id = str(key.source.id)
                found[id] = found.get(id, 0) + 1
        elif key.table == "Memo":
            found.setdefault(str(key.id), 0)
    return found
