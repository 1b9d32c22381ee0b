"""Values of an answer as one line of text each, in which nothing can drive the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from forktrail_lab.console.output import cell, printable, to_json
from forktrail_projectors.graph.declared_tables import key_column

# What the graph adds to a node, a relation and a path.
LABEL, NODES, RELATIONS = "_label", "_nodes", "_rels"


def value_text(value: object) -> str:
    """A value as a cell of a table: a node as `(:Finding finding-1)`, a path as a chain of these."""
    if isinstance(value, Mapping):
        return _mapping_text(cast("Mapping[str, object]", value))
    if isinstance(value, list | tuple) and any(isinstance(item, Mapping | list | tuple) for item in value):
        return f"[{', '.join(value_text(item) for item in value)}]"
    return cell(value)


def is_entity(value: object) -> bool:
    """Whether it is a node or a relation with its columns."""
    return isinstance(value, Mapping) and LABEL in value


def is_number(value: object) -> bool:
    """Whether it belongs flush right."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def _mapping_text(value: Mapping[str, object]) -> str:
    if NODES in value and RELATIONS in value:
        return _path_text(value)
    if LABEL not in value:
        return "{" + ", ".join(f"{printable(name)}: {_inner(item)}" for name, item in value.items()) + "}"
    label = str(value[LABEL])
    key = key_column(label)
    if key in value:
        return f"(:{printable(label)} {value_text(value[key])})"
    return f"[:{printable(label)}]"


def _inner(value: object) -> str:
    """A value inside another one: text stands in quotes, so that a comma in it can't be mistaken."""
    return printable(to_json(value)) if isinstance(value, str) or value is None else value_text(value)


def _path_text(value: Mapping[str, object]) -> str:
    nodes = cast("Sequence[object]", value[NODES])
    relations = cast("Sequence[Mapping[str, object]]", value[RELATIONS])
    parts = [value_text(nodes[0])] if nodes else []
    for relation, node in zip(relations, nodes[1:], strict=False):
        parts.append(f"-[:{printable(str(relation.get(LABEL, '')))}]-{value_text(node)}")
    return "".join(parts)
