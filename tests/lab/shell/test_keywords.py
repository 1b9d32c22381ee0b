"""What is offered and how it is spelled, held against the engine. No broker."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from forktrail_lab.shell.catalog import Catalog, Label, Relation, read_catalog, schema_catalog
from forktrail_lab.shell.keywords import FUNCTIONS, RESERVED, STARTERS, procedures, quoted
from forktrail_projectors.graph.cypher import CypherGraph
from forktrail_projectors.graph.engine import open_database
from forktrail_projectors.graph.protocol import Table
from forktrail_projectors.graph.readonly import check_read_only
from forktrail_schemas.errors import InvalidInput
from support.declared import declarations, declared_tables
from support.rows import ENGINE, cursor


@pytest.fixture(scope="module")
def graph() -> Iterator[CypherGraph]:
    graph = CypherGraph.in_memory(ENGINE)
    yield graph
    graph.close()


def refused(cypher: str) -> bool:
    """Whether a statement does more than read, by the words it begins with and calls."""
    try:
        check_read_only(cypher)
    except InvalidInput:
        return True
    return False


def test_every_name_of_the_schema_is_understood_as_it_is_spelled(graph: CypherGraph) -> None:
    catalog = schema_catalog()
    for label in catalog.labels.values():
        columns = ", ".join(f"n.{quoted(column)} AS {quoted(column)}" for column in label.columns)
        table = graph.query(f"MATCH (n:{quoted(label.name)}) RETURN {columns}")
        assert table.columns == tuple(label.columns)
    for relation in catalog.relations.values():
        assert graph.query(f"MATCH ()-[r:{quoted(relation.name)}]->() RETURN count(*)").rows == [(0,)]


def test_a_word_of_the_language_is_refused_without_backticks_and_taken_in_them(graph: CypherGraph) -> None:
    for word in sorted(RESERVED):
        with pytest.raises(InvalidInput, match=r"Parser exception|can't CALL|reads no files"):
            graph.query(f"MATCH (n:{word}) RETURN 1")
        if word.title() not in schema_catalog().labels:
            with pytest.raises(InvalidInput, match="does not exist"):
                graph.query(f"MATCH (n:{quoted(word.title())}) RETURN 1")


def test_every_function_that_is_offered_exists(graph: CypherGraph) -> None:
    known = {str(row[0]).lower() for row in graph.query("CALL show_functions() RETURN name").rows}
    assert [name for name in FUNCTIONS if name.lower() not in known] == []


def test_every_procedure_that_is_offered_may_be_called() -> None:
    assert "show_tables" in procedures()
    assert [name for name in procedures() if refused(f"CALL {name}() RETURN *")] == []
    assert refused("CALL threads() RETURN *")


def test_every_beginning_that_is_offered_may_begin_a_statement() -> None:
    assert {"MATCH", "RETURN", "CALL"} <= set(STARTERS)
    for starter in STARTERS:
        assert not refused(f"{starter} show_tables() RETURN 1" if starter == "CALL" else f"{starter} RETURN 1")
    assert refused("CREATE RETURN 1")


def test_the_graph_itself_names_no_more_than_the_schema_where_nothing_was_added(graph: CypherGraph) -> None:
    assert read_catalog(graph.query) == schema_catalog()


def test_declared_types_and_what_events_produce_of_them_are_learned() -> None:
    graph = CypherGraph.in_memory(ENGINE)
    graph.commit(declarations(), cursor(1))
    catalog, tables = read_catalog(graph.query), declared_tables()
    graph.close()
    assert catalog.labels.keys() == tables.nodes.keys()
    assert catalog.labels["Company"].columns == tables.nodes["Company"].columns
    for name, table in tables.edges.items():
        assert set(catalog.relations[name].pairs) == set(table.pairs)


def test_tables_that_a_graph_has_beyond_the_schema_are_learned() -> None:
    database = open_database(None, ENGINE)
    session = database.connect()
    session.execute("CREATE NODE TABLE Claim(id STRING, sure BOOL, PRIMARY KEY(id))")
    session.execute("CREATE NODE TABLE Document(id STRING, pages INT64, PRIMARY KEY(id))")
    session.execute("CREATE REL TABLE SUPPORTED_BY(FROM Claim TO Document, weight INT64)")

    def ask(cypher: str) -> Table:
        result = session.execute(cypher)
        assert not isinstance(result, list)
        return Table(tuple(result.get_column_names()), [tuple(row) for row in result.get_all()])

    catalog = read_catalog(ask)
    session.close()
    database.close()
    assert catalog.labels["Claim"] == Label("Claim", {"id": "STRING", "sure": "BOOL"})
    relation = Relation("SUPPORTED_BY", {"weight": "INT64"}, (("Claim", "Document"),))
    assert catalog.relations["SUPPORTED_BY"] == relation
    assert catalog.labels.keys() - {"Claim", "Document"} == schema_catalog().labels.keys()


def test_columns_of_unknown_tables_are_those_of_all() -> None:
    catalog = Catalog(
        {"A": Label("A", {"id": "STRING", "x": "INT64"}), "B": Label("B", {"id": "STRING", "y": "BOOL"})},
        {"R": Relation("R", {"z": "STRING"}, (("A", "B"),))},
    )
    assert list(catalog.columns(["B"])) == ["id", "y"]
    assert list(catalog.columns(["A", "R"])) == ["id", "x", "z"]
    assert list(catalog.columns(["Nothing"])) == list(catalog.columns([])) == ["id", "x", "y", "z"]
