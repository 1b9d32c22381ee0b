"""Makes the tables of a new database, and recognizes those of an old one."""

from __future__ import annotations

import hashlib

from forktrail_projectors.graph.cursor_table import CREATE_CURSOR_TABLE
from forktrail_projectors.graph.declared_tables import BUILT_IN, Tables
from forktrail_projectors.graph.reads import all_nodes, row
from forktrail_projectors.graph.schema import CURSOR_TABLE, ColumnType, EdgeTable, NodeTable
from forktrail_projectors.graph.session import Session
from forktrail_projectors.graph.writes import quote
from forktrail_schemas.errors import GraphUnavailable


def create_or_check_tables(session: Session) -> Tables:
    """Make all built-in tables in one transaction, or see that the database's tables are these; returns what it has.

    All at once, empty or not, since a query that names a table which isn't there is refused. The cursor's table carries
    a digest of all definitions as its comment; a database without it is new, or of someone else. The tables of declared
    types were made in the transaction that wrote their rows of `Type`.

    Raises:
        GraphUnavailable: the database has other tables.
        GraphError: the engine failed.
    """
    definitions = _definitions()
    mark = "forktrail " + hashlib.sha256("\n".join(definitions).encode()).hexdigest()
    comments = {row[1]: row[-1] for row in session.run("CALL show_tables() RETURN *")}
    if comments.get(CURSOR_TABLE) == mark:
        return _with_declared(session)
    if comments:
        raise GraphUnavailable("the graph's tables are those of another version", hint="rebuild the graph from its log")
    session.run("BEGIN TRANSACTION")
    for definition in definitions:
        session.run(definition)
    session.run(f"COMMENT ON TABLE {CURSOR_TABLE} IS '{mark}'")
    session.run("COMMIT")
    return BUILT_IN


def new_tables(before: Tables, after: Tables) -> list[str]:
    """The statements that make what tables of declared types are new; they may stand in a transaction with rows."""
    made = [_node_definition(table) for name, table in after.nodes.items() if name not in before.nodes]
    for name, table in after.edges.items():
        known = before.edges.get(name)
        if known is None:
            made.append(_edge_definition(table))
            continue
        for source, target in table.pairs[len(known.pairs) :]:
            made.append(f"ALTER TABLE {quote(name)} ADD FROM {quote(source)} TO {quote(target)}")
    return made


def _with_declared(session: Session) -> Tables:
    table = BUILT_IN.nodes["Type"]
    rows = [row(table, values) for values in session.run(all_nodes(table))]
    return BUILT_IN.with_types(sorted(rows, key=lambda one: one["created_offset"]))  # type: ignore[arg-type,return-value]  # a number


def _definitions() -> list[str]:
    nodes = [_node_definition(table) for table in BUILT_IN.nodes.values()]
    return [*nodes, *(_edge_definition(table) for table in BUILT_IN.edges.values()), CREATE_CURSOR_TABLE]


def _node_definition(table: NodeTable) -> str:
    parts = [*_columns(table.columns), f"PRIMARY KEY({quote(table.key)})"]
    return f"CREATE NODE TABLE {quote(table.name)}({', '.join(parts)})"


def _edge_definition(table: EdgeTable) -> str:
    pairs = [f"FROM {quote(source)} TO {quote(target)}" for source, target in table.pairs]
    return f"CREATE REL TABLE {quote(table.name)}({', '.join([*pairs, *_columns(table.columns)])})"


def _columns(columns: dict[str, ColumnType]) -> list[str]:
    return [f"{quote(name)} {kind}" for name, kind in columns.items()]
