"""What there is to name in a graph: labels, relation types and their columns, from the schema and the graph itself."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from forktrail_projectors.graph.declared_tables import BUILT_IN, PRODUCED
from forktrail_projectors.graph.protocol import Table
from forktrail_projectors.graph.schema import CURSOR_TABLE, EdgeTable, NodeTable

Ask = Callable[[str], Table]

_TABLES = "CALL show_tables() RETURN name, type"
_COLUMNS = "CALL table_info('{name}') RETURN name, type"
_ENDS = "CALL show_connection('{name}') RETURN `source table name`, `destination table name`"


@dataclass(frozen=True)
class Label:
    """A node table: its columns with their types, the key first."""

    name: str
    columns: Mapping[str, str]


@dataclass(frozen=True)
class Relation:
    """A relation table: its columns with their types, and the labels that it joins, as (from, to) pairs."""

    name: str
    columns: Mapping[str, str]
    pairs: tuple[tuple[str, str], ...]

    def ends(self) -> str:
        """Which labels it joins, in words: `Event → any`."""
        sources, targets = ({pair[side] for pair in self.pairs} for side in (0, 1))
        return f"{_one(sources)} → {_one(targets)}"


@dataclass(frozen=True)
class Catalog:
    """Labels and relation types by name."""

    labels: Mapping[str, Label]
    relations: Mapping[str, Relation]

    def columns(self, names: Collection[str]) -> dict[str, str]:
        """The columns of some labels and relation types, with their types; of all, where none of them is known.

        A column comes where it comes in the first of them that has it.
        """
        tables: list[Label | Relation] = [*self.labels.values(), *self.relations.values()]
        known = [table for table in tables if table.name in names]
        found: dict[str, str] = {}
        for table in known or tables:
            found = (
                dict(table.columns) | found
                if not found
                else found | {name: kind for name, kind in table.columns.items() if name not in found}
            )
        return found

    def across(self, relations: Iterable[str], labels: Collection[str], *, forward: bool) -> set[str]:
        """The labels at the other end of relations that begin (or, backward, end) at some labels; at any, if empty."""
        here, there = (0, 1) if forward else (1, 0)
        return {
            pair[there]
            for name in relations
            if (relation := self.relations.get(name)) is not None
            for pair in relation.pairs
            if not labels or pair[here] in labels
        }


def schema_catalog() -> Catalog:
    """What every graph has."""
    return Catalog(
        {name: _label(table) for name, table in BUILT_IN.nodes.items()},
        {name: _relation(table) for name, table in BUILT_IN.edges.items()},
    )


def read_catalog(ask: Ask) -> Catalog:
    """What a graph has: the schema's tables, and those of the types that its run declared.

    Raises:
        ForktrailError: the graph doesn't answer.
    """
    known = schema_catalog()
    labels, relations = dict(known.labels), dict(known.relations)
    for name, kind in ask(_TABLES).rows:
        table = str(name)
        if kind == "NODE" and table not in labels and table != CURSOR_TABLE:
            labels[table] = Label(table, _columns(ask, table))
        if kind == "REL" and table not in relations:
            relations[table] = Relation(table, _columns(ask, table), _ends(ask, table))
        if kind == "REL" and table == PRODUCED:
            # It also leads to each label that was declared.
            relations[table] = replace(relations[table], pairs=_ends(ask, table))
    return Catalog(labels, relations)


def _ends(ask: Ask, table: str) -> tuple[tuple[str, str], ...]:
    return tuple((str(source), str(target)) for source, target in ask(_ENDS.format(name=table)).rows)


def _columns(ask: Ask, table: str) -> dict[str, str]:
    return {str(name): str(kind) for name, kind in ask(_COLUMNS.format(name=table)).rows}


def _label(table: NodeTable) -> Label:
    return Label(table.name, {name: str(kind) for name, kind in table.columns.items()})


def _relation(table: EdgeTable) -> Relation:
    return Relation(table.name, {name: str(kind) for name, kind in table.columns.items()}, table.pairs)


def _one(names: Collection[str]) -> str:
    return next(iter(names)) if len(names) == 1 else "any" if len(names) > 3 else " or ".join(sorted(names))
