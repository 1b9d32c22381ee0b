"""Makes the tables of a new database, and recognizes those of an old one."""

from __future__ import annotations

import hashlib

from forktrail_projectors.graph.cursor_table import CREATE_CURSOR_TABLE, CURSOR_TABLE
from forktrail_projectors.graph.schema import EDGE_TABLES, NODE_TABLES, ColumnType, EdgeTable, NodeTable
from forktrail_projectors.graph.session import Session
from forktrail_projectors.graph.writes import quote
from forktrail_schemas.errors import GraphUnavailable


def create_or_check_tables(session: Session) -> None:
    """Make all tables in one transaction, or see that the database's tables are these.

    All at once, empty or not, since a query that names a table which isn't there is refused. The cursor's table carries
    a digest of all definitions as its comment; a database without it is new, or of someone else.

    Raises:
        GraphUnavailable: the database has other tables.
        GraphError: the engine failed.
    """
    definitions = _definitions()
    mark = "forktrail " + hashlib.sha256("\n".join(definitions).encode()).hexdigest()
    comments = {row[1]: row[-1] for row in session.run("CALL show_tables() RETURN *")}
    if comments.get(CURSOR_TABLE) == mark:
        return
    if comments:
        raise GraphUnavailable("the graph's tables are those of another version", hint="rebuild the graph from its log")
    session.run("BEGIN TRANSACTION")
    for definition in definitions:
        session.run(definition)
    session.run(f"COMMENT ON TABLE {CURSOR_TABLE} IS '{mark}'")
    session.run("COMMIT")


def _definitions() -> list[str]:
    nodes = [_node_definition(table) for table in NODE_TABLES.values()]
    return [*nodes, *(_edge_definition(table) for table in EDGE_TABLES.values()), CREATE_CURSOR_TABLE]


def _node_definition(table: NodeTable) -> str:
    parts = [*_columns(table.columns), f"PRIMARY KEY({quote(table.key)})"]
    return f"CREATE NODE TABLE {quote(table.name)}({', '.join(parts)})"


def _edge_definition(table: EdgeTable) -> str:
    pairs = [f"FROM {quote(source)} TO {quote(target)}" for source, target in table.pairs]
    return f"CREATE REL TABLE {quote(table.name)}({', '.join([*pairs, *_columns(table.columns)])})"


def _columns(columns: dict[str, ColumnType]) -> list[str]:
    return [f"{quote(name)} {kind}" for name, kind in columns.items()]
