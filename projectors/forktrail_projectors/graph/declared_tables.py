"""All tables of a graph as a value: the built-in ones, and those of the types that its run has declared."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import cast

from forktrail_projectors.graph.schema import (
    BUILT_IN_EDGES,
    BUILT_IN_NODES,
    CURSOR_TABLE,
    STAMP_CHANGED,
    STAMP_CREATED,
    ColumnType,
    Content,
    EdgeTable,
    NodeTable,
)
from forktrail_projectors.state import Row
from forktrail_schemas.object_types import ObjectType, PropertyKind, RelationType, object_type, relation_type

# An object's version begins at 1 and counts its changes; one that is retired keeps its row.
OBJECT_COLUMNS = {"version": ColumnType.INT64, "retired": ColumnType.BOOL}
PRODUCED = "PRODUCED"
EVENT = "Event"
KEY_COLUMN = "id"

_COLUMN_TYPES: Mapping[PropertyKind, ColumnType] = {
    PropertyKind.TEXT: ColumnType.STRING,
    PropertyKind.INTEGER: ColumnType.INT64,
    PropertyKind.NUMBER: ColumnType.DOUBLE,
    PropertyKind.BOOLEAN: ColumnType.BOOL,
    PropertyKind.TEXTS: ColumnType.STRINGS,
    PropertyKind.JSON: ColumnType.STRING,
}


@dataclass(frozen=True)
class Tables:
    """Tables by name; never changed.

    Attributes:
        objects: the declared object types.
        relations: the declared relation types.
        implied: names of the relations that references make.
    """

    nodes: Mapping[str, NodeTable]
    edges: Mapping[str, EdgeTable]
    objects: Mapping[str, ObjectType] = field(default_factory=dict)
    relations: Mapping[str, RelationType] = field(default_factory=dict)
    implied: frozenset[str] = frozenset()

    def with_types(self, rows: Iterable[Row]) -> Tables:
        """These tables, and those of more declared types, given the rows of the table `Type`."""
        tables = self
        for row in rows:
            name, schema = str(row["id"]), str(row["schema"])
            if row["kind"] == "object":
                tables = tables._with_object(object_type(name, schema, _names(row, "references"), _names(row, "merge")))
            else:
                tables = tables._with_relation(
                    relation_type(name, schema, _names(row, "sources"), _names(row, "targets"))
                )
        return tables

    def taken(self, name: str) -> bool:
        """Whether a table has this name, but for the case of its letters: engines hold such for one."""
        lower = name.lower()
        return any(lower == one.lower() for one in (*self.nodes, *self.edges, CURSOR_TABLE))

    def _with_object(self, kind: ObjectType) -> Tables:
        properties = {name: _COLUMN_TYPES[column] for name, column in kind.columns.items()}
        data = (*(name for name in properties if name not in kind.references), *OBJECT_COLUMNS)
        stamps = STAMP_CREATED | STAMP_CHANGED
        columns = {KEY_COLUMN: ColumnType.STRING} | properties | OBJECT_COLUMNS | stamps
        content = Content(data, kind.references, (KEY_COLUMN, *stamps))
        table = NodeTable(kind.name, KEY_COLUMN, columns, domain=True, content=content)
        produced = self.edges[PRODUCED]
        edges = dict(self.edges)
        edges[PRODUCED] = replace(produced, pairs=(*produced.pairs, (EVENT, kind.name)))
        for name, target in kind.references.items():
            relation = implied_relation(name)
            known = edges.get(relation) or EdgeTable(relation, (), dict(STAMP_CREATED), removable=True)
            edges[relation] = replace(known, pairs=(*known.pairs, (kind.name, target)))
        return replace(
            self,
            nodes={**self.nodes, kind.name: table},
            edges=edges,
            objects={**self.objects, kind.name: kind},
            implied=self.implied | {implied_relation(name) for name in kind.references},
        )

    def _with_relation(self, kind: RelationType) -> Tables:
        columns = {name: _COLUMN_TYPES[column] for name, column in kind.columns.items()}
        pairs = tuple((source, target) for source in kind.sources for target in kind.targets)
        table = EdgeTable(kind.name, pairs, columns | STAMP_CREATED, removable=True)
        edges = {**self.edges, kind.name: table}
        return replace(self, edges=edges, relations={**self.relations, kind.name: kind})


BUILT_IN = Tables(BUILT_IN_NODES, BUILT_IN_EDGES)


def implied_relation(reference: str) -> str:
    """The relation that a reference makes: `about` makes `ABOUT`."""
    return reference.upper()


def key_column(table: str) -> str:
    """The primary key of a node table; that of every declared type is the same."""
    built_in = BUILT_IN_NODES.get(table)
    return built_in.key if built_in else KEY_COLUMN


def key_type(table: str) -> ColumnType:
    """The type of a node table's primary key."""
    built_in = BUILT_IN_NODES.get(table)
    return built_in.columns[built_in.key] if built_in else ColumnType.STRING


def _names(row: Row, column: str) -> tuple[str, ...]:
    return cast("tuple[str, ...]", row.get(column) or ())
