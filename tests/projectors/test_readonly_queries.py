"""A query reads the graph and does nothing else: not to the graph, not to files, not to settings."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from forktrail_projectors.graph.cypher import CypherGraph
from forktrail_projectors.graph.declared_tables import BUILT_IN
from forktrail_projectors.graph.protocol import Cursor
from forktrail_projectors.graph.readonly import check_read_only, parameters_of, words_of
from forktrail_projectors.state import Changes, EdgeKey, NodeChange, NodeId, NodeKey, Row, Value
from forktrail_schemas.errors import GraphError, GraphUnavailable, InvalidInput

ENGINE = os.environ.get("FORKTRAIL_GRAPH_ENGINE", "ladybug")


def node(table: str, key: NodeId, **values: Value) -> tuple[NodeKey, NodeChange]:
    blank: dict[str, Value] = dict.fromkeys(BUILT_IN.nodes[table].columns)
    return NodeKey(table, key), NodeChange(None, {**blank, BUILT_IN.nodes[table].key: key, **values})


def cursor(next_offset: int) -> Cursor:
    return Cursor("topic", next_offset, "", (), "", 1)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where files stand that no query may read, and none may be written; its content is compared after each test."""
    folder = tmp_path / "files"
    folder.mkdir()
    (folder / "in.csv").write_text("id\nsecret\n")
    return folder


@pytest.fixture
def graph(tmp_path: Path) -> Iterator[CypherGraph]:
    graph = filled(tmp_path / "run.graph")
    yield graph
    graph.close()


@pytest.fixture(scope="module")
def unchanged(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CypherGraph]:
    """One graph for all statements that leave it as it is."""
    graph = filled(tmp_path_factory.mktemp("graph") / "run.graph")
    before = dict(graph.rows())
    yield graph
    assert dict(graph.rows()) == before
    graph.close()


def filled(path: Path) -> CypherGraph:
    graph = CypherGraph.open(path, ENGINE)
    event, case = node("Event", 1, id="e1", type="ReportFiled"), node("Case", "c1", status="open", depth=2)
    report = node("Report", "r1", summary="it's")
    key = node("Key", "k1", roles=("admin", "runner"), revoked=False)
    stamp: Row = {"created_event": "e1", "created_offset": 1}
    edges: dict[EdgeKey, Row] = {
        EdgeKey("PRODUCED", event[0], case[0]): {},
        EdgeKey("OPENED", report[0], case[0]): stamp,
    }
    graph.commit(Changes.of(dict([event, case, report, key]), edges), cursor(2))
    return graph


def summary(graph: CypherGraph) -> list[object]:
    """What any write would change, quick to ask."""
    statements = (
        "MATCH (n) RETURN label(n), count(*) ORDER BY label(n)",
        "MATCH ()-[e]->() RETURN count(*)",
        "MATCH (c:`Case`) RETURN c",
        "CALL show_tables() RETURN name, comment ORDER BY name",
    )
    return [graph.query(statement).rows for statement in statements]


def answers(graph: CypherGraph, statement: str, **parameters: Value) -> list[tuple[object, ...]]:
    return list(graph.query(statement, parameters).rows)


READS = [
    "MATCH (c:`Case`) RETURN c.id",
    "match (c:`Case`) return c.id;",
    "  \n MATCH (c:`Case`) RETURN c.id ; \n",
    "RETURN 'http://x /* no comment */' AS text",
    "OPTIONAL MATCH (c:`Case` {id: 'none'}) RETURN c.id",
    "UNWIND [1, 2] AS x RETURN x",
    "WITH 1 AS x RETURN x",
    "RETURN 'LOAD FROM; COPY t TO \\'x\\' CALL y()' AS text",
    'RETURN "it\'s; COMMIT"',
    "RETURN 1 AS `load from; COPY`",
    "MATCH (f:Finding) RETURN f.id",
    "MATCH (e:Event) RETURN e.offset AS offset, e.type AS copy",
    "MATCH (b:Budget) RETURN b.limit",
    "RETURN 1 AS payload, 2 AS recall, 3 AS loaded",
    "MATCH (a)-[e*1..3]->(b) RETURN count(*)",
    "RETURN 1 AS x UNION ALL RETURN 2 AS x",
    "MATCH (r:Report) WHERE EXISTS { MATCH (r)-[:OPENED]->(c) } RETURN r.id",
    "CALL show_tables() RETURN name",
    "CALL Table_Info('Case') RETURN *",
    "CALL show_connection('OPENED') RETURN *",
    "UNWIND [1] AS x CALL show_tables() RETURN x, name",
    "EXPLAIN MATCH (c:`Case`) RETURN c.id",
    "PROFILE MATCH (c:`Case`) RETURN c.id",
]


@pytest.mark.parametrize("statement", READS)
def test_a_statement_that_reads_is_answered(unchanged: CypherGraph, statement: str) -> None:
    assert unchanged.query(statement).columns


WRITES = [
    "CREATE (:Goal {id: 'x'})",
    "MERGE (:Goal {id: 'x'})",
    "MERGE (c:`Case` {id: 'c1'}) RETURN c.id",
    "MATCH (c:`Case`) SET c.status = 'closed'",
    "MATCH (c:`Case`) DELETE c",
    "MATCH (c:`Case`) DETACH DELETE c",
    "MATCH (c:`Case`) REMOVE c.status",
    "MATCH (e:Event), (k:Key) CREATE (e)-[:PRODUCED]->(k)",
    "MATCH (a)-[e]->(b) DELETE e",
    "UNWIND [1] AS x CREATE (:Goal {id: 'x'}) RETURN x",
    "WITH 1 AS x MERGE (:Goal {id: 'x'})",
    "RETURN 1 AS x UNION ALL CREATE (g:Goal {id: 'x'}) RETURN 1 AS x",
    "PROFILE CREATE (:Goal {id: 'x'})",
    "PROFILE MATCH (c:`Case`) SET c.status = 'closed'",
    "DROP TABLE Goal",
    "DROP TABLE OPENED",
    "ALTER TABLE Goal ADD colour STRING",
    "ALTER TABLE Goal DROP text",
    "ALTER TABLE Goal RENAME TO Aim",
    "CREATE NODE TABLE Other(id STRING, PRIMARY KEY(id))",
    "CREATE REL TABLE Other(FROM Goal TO Goal)",
    "CREATE SEQUENCE s",
    "CREATE MACRO f(x) AS x + 1",
    "CREATE TYPE t AS STRING",
    "COMMENT ON TABLE Goal IS 'mine'",
    "COPY Goal FROM 'FOLDER/in.csv'",
    "COPY Goal FROM (MATCH (c:`Case`) RETURN c.id, c.status, c.id, 1, c.id, 1)",
]


@pytest.mark.parametrize("statement", WRITES)
def test_a_statement_that_writes_is_refused_by_the_engine_itself(
    unchanged: CypherGraph, folder: Path, statement: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = summary(unchanged)
    statement = statement.replace("FOLDER", str(folder))
    with pytest.raises(InvalidInput):
        unchanged.query(statement)
    with monkeypatch.context() as patched:
        patched.setattr("forktrail_projectors.graph.cypher.check_read_only", lambda cypher, parameters: None)
        with pytest.raises(InvalidInput):
            unchanged.query(statement)
    assert summary(unchanged) == before


BEYOND_READING = [
    # Files.
    "LOAD FROM 'FOLDER/in.csv' RETURN *",
    "load from 'FOLDER/in.csv' return *",
    "LOAD/**/FROM 'FOLDER/in.csv' RETURN *",
    "LOAD // c\nFROM 'FOLDER/in.csv' RETURN *",
    "LOAD WITH HEADERS (id STRING) FROM 'FOLDER/in.csv' RETURN *",
    "\ufeffLOAD FROM 'FOLDER/in.csv' RETURN *",
    "\u00a0LOAD\u3000FROM 'FOLDER/in.csv' RETURN *",
    "MATCH (c:`Case`) LOAD FROM 'FOLDER/in.csv' RETURN *",
    "UNWIND [1] AS x WITH x WHERE x>0LOAD FROM 'FOLDER/in.csv' RETURN *",
    "UNWIND [1] AS x WITH x WHERE x>1e-5LOAD FROM 'FOLDER/in.csv' RETURN *",
    "UNWIND [1] AS x WITH x WHERE x>0x1LOAD FROM 'FOLDER/in.csv' RETURN *",
    "UNWIND ['a'] AS x WITH x WHERE x='a'LOAD FROM 'FOLDER/in.csv' RETURN *",
    "UNWIND ['a'] AS x WITH `x`LOAD FROM 'FOLDER/in.csv' RETURN *",
    "UNWIND ['a\\'' ] AS x LOAD FROM 'FOLDER/in.csv' RETURN *",
    'UNWIND ["\\"", "\'"] AS x LOAD FROM "FOLDER/in.csv" RETURN *',
    "UNWIND [1] AS `\"` LOAD FROM 'FOLDER/in.csv' RETURN *",
    "/* ' */ LOAD FROM 'FOLDER/in.csv' RETURN * /* ' */",
    "/* /* */ UNWIND [1] AS x LOAD FROM 'FOLDER/in.csv' RETURN * // */",
    "// it's\nUNWIND [1] AS x LOAD FROM 'FOLDER/in.csv' RETURN *",
    "RETURN 1 AS x UNION ALL LOAD FROM 'FOLDER/in.csv' RETURN 1 AS x",
    "EXPLAIN LOAD FROM 'FOLDER/in.csv' RETURN *",
    "PROFILE LOAD FROM 'FOLDER/in.csv' RETURN *",
    "COPY (MATCH (c:`Case`) RETURN c.id) TO 'FOLDER/out.csv'",
    "PROFILE COPY (MATCH (c:`Case`) RETURN c.id) TO 'FOLDER/out.csv'",
    "/**/COPY (MATCH (c:`Case`) RETURN c.id) TO 'FOLDER/out.csv'",
    "EXPORT DATABASE 'FOLDER/out'",
    "IMPORT DATABASE 'FOLDER/out'",
    "INSTALL json",
    "LOAD EXTENSION json",
    "LOAD json",
    "UNINSTALL json",
    "UPDATE json",
    "ATTACH 'FOLDER/other.graph' AS other (dbtype 'kuzu')",
    "DETACH other",
    "USE other",
    "CALL read_csv_serial('FOLDER/in.csv') RETURN *",
    # Settings and procedures.
    "CALL threads=1",
    "call/**/threads/**/= 1",
    "CALL `threads`=1",
    "CALL timeout = 1",
    "CALL checkpoint_threshold=1",
    "CALL var_length_extend_max_depth=100",
    "CALL project_graph('g', ['Case'], ['OPENED'])",
    "CALL clear_warnings()",
    "CALL `show_tables`() RETURN *",
    "CALL show_tables=1",
    "UNWIND [1] AS x WITH x WHERE x>0CALL project_graph('g', [], []) RETURN x",
    "EXPLAIN CALL threads=1",
    # Transactions and more than one statement.
    "BEGIN TRANSACTION",
    "COMMIT",
    "ROLLBACK",
    "CHECKPOINT",
    "ANALYZE",
    "RETURN 1; CREATE (:Goal {id: 'x'})",
    "RETURN 1; COMMIT; CREATE (:Goal {id: 'x'})",
    "RETURN 1;;",
    "; RETURN 1",
    "RETURN ';' ; RETURN 2",
    "RETURN 1 /* ; */ ; /* */ RETURN 2",
    # Comments: the engine and a reader may disagree where they end.
    "UNWIND [1] AS x WITH x /***/ , '*/ LOAD FROM \"FOLDER/in.csv\" RETURN * //'",
    "RETURN 1 /***/ + '*/ ; COPY (MATCH (e:Event) RETURN e.id) TO \"FOLDER/out.csv\" //'",
    "RETURN 1 /***/ + '*/ ; COMMIT; MATCH (r:Run) SET r.status=\"closed\"; //'",
    "RETURN 1 /***/ + '*/ ; COMMIT; LOAD EXTENSION \"FOLDER/x.lbug_extension\"; //'",
    "MATCH (c:`Case`) RETURN c.id // that's all",
    "/* COPY x TO 'y' ; */ MATCH (c:`Case`) RETURN c.id",
    "RETURN 1 /**//***/ AS x",
    # More than a parser should be given.
    "RETURN " + "(" * 3_000 + "1" + ")" * 3_000,
    "RETURN " + "[" * 3_000 + "]" * 3_000,
    "RETURN '" + "x" * 100_001 + "'",
    # Nothing, or nothing whole.
    "",
    "  // only a comment",
    ";",
    "EXPLAIN",
    "RETURN",
    "CALL",
    "RETURN 'open",
    'RETURN "open',
    "RETURN 1 AS `open",
    "RETURN 1 /* open",
]


@pytest.mark.parametrize("statement", BEYOND_READING)
def test_what_is_more_than_reading_never_reaches_the_engine(
    unchanged: CypherGraph, folder: Path, statement: str
) -> None:
    if statement != "RETURN":  # only the engine finds that nothing follows
        with pytest.raises(InvalidInput):
            check_read_only(statement)
    before = summary(unchanged)
    with pytest.raises(InvalidInput):
        unchanged.query(statement.replace("FOLDER", str(folder)))
    assert [file.name for file in folder.iterdir()] == ["in.csv"]
    assert summary(unchanged) == before


def test_refusals_say_what_to_do(unchanged: CypherGraph) -> None:
    with pytest.raises(InvalidInput, match="start with MATCH") as refused:
        unchanged.query("COPY Goal TO 'x.csv'")
    assert refused.value.hint
    with pytest.raises(InvalidInput, match="`Case`"):
        unchanged.query("MATCH (c:Case) RETURN c.id")
    with pytest.raises(InvalidInput, match="show_tables"):
        unchanged.query("CALL threads=1")
    with pytest.raises(InvalidInput) as unknown:
        unchanged.query("MATCH (c:Colour)\nRETURN c.id")
    assert "Colour" in unknown.value.message
    assert "\n" not in str(unknown.value)


def test_parameters_are_values_and_nothing_else(unchanged: CypherGraph) -> None:
    assert answers(unchanged, "MATCH (c:`Case`) WHERE c.id = $id RETURN c.depth", id="c1") == [(2,)]
    assert answers(unchanged, "RETURN $a, $b, $c, $d", a="it's; COMMIT", b=2**62, c=True, d=None) == [
        ("it's; COMMIT", 2**62, True, None)
    ]
    assert answers(unchanged, "UNWIND $ids AS id MATCH (c:`Case` {id: id}) RETURN id", ids=("c0", "c1")) == [("c1",)]


@pytest.mark.parametrize("statement", ["RETURN $p", "RETURN $`p`", "RETURN $1", "MATCH (c:`Case` {id: $p}) RETURN c"])
def test_a_parameter_without_a_value_is_an_error_and_not_null(unchanged: CypherGraph, statement: str) -> None:
    with pytest.raises(InvalidInput):
        unchanged.query(statement)


def test_a_dollar_in_a_string_is_no_parameter(unchanged: CypherGraph) -> None:
    assert answers(unchanged, "RETURN '$p costs $5'") == [("$p costs $5",)]


def test_a_parameter_that_the_query_lacks_is_an_error(unchanged: CypherGraph) -> None:
    with pytest.raises(InvalidInput):
        unchanged.query("RETURN 1", {"p": 1})


def test_values_are_fit_for_json(unchanged: CypherGraph) -> None:
    table = unchanged.query(
        "MATCH (r:Report)-[o:OPENED]->(c:`Case`), (k:Key) RETURN r, o, c.depth AS depth, k.roles, k.revoked, "
        "[1, null], {a: 'b'}, sum(c.depth) AS total, 1.5, date('2026-01-02')"
    )
    (row,) = table.rows
    report, opened, *rest = row
    assert isinstance(report, dict)
    assert report == {"_label": "Report", **dict(unchanged.nodes([NodeKey("Report", "r1")])[NodeKey("Report", "r1")])}
    assert opened == {"_label": "OPENED", "created_event": "e1", "created_offset": 1}
    assert rest == [2, ["admin", "runner"], False, [1, None], {"a": "b"}, 2, 1.5, "2026-01-02"]
    assert [type(value) for value in rest[:1] + rest[5:6]] == [int, int]
    assert table.columns[2] == "depth"
    assert json.loads(json.dumps(list(row))) == list(row)


def test_a_node_of_several_tables_has_the_columns_of_its_own(unchanged: CypherGraph) -> None:
    ((found,),) = answers(unchanged, "MATCH (n) WHERE n.id = 'c1' RETURN n")
    assert isinstance(found, dict)
    assert list(found) == ["_label", *BUILT_IN.nodes["Case"].columns]


def test_a_path_is_its_nodes_and_relations(unchanged: CypherGraph) -> None:
    ((path,),) = answers(unchanged, "MATCH p = (:Event)-[:PRODUCED*1..2]->(:`Case`) RETURN p")
    assert isinstance(path, dict)
    assert [item["_label"] for item in path["_nodes"]] == ["Event", "Case"]
    assert path["_rels"] == [{"_label": "PRODUCED"}]


def test_every_table_can_be_asked_for_before_it_has_rows(unchanged: CypherGraph) -> None:
    for table in BUILT_IN.nodes:
        assert answers(unchanged, f"MATCH (n:`{table}`) RETURN count(*)") in ([(0,)], [(1,)])


def test_a_query_that_takes_too_long_is_stopped_and_the_next_one_is_not(unchanged: CypherGraph) -> None:
    slow = "UNWIND range(1, 3000) AS a UNWIND range(1, 3000) AS b RETURN sum(a * b)"
    with pytest.raises(GraphError) as stopped:
        unchanged.query(slow, timeout_ms=20)
    assert stopped.value.code == "query_timeout"
    assert not isinstance(stopped.value, GraphUnavailable)
    assert answers(unchanged, "UNWIND range(1, 100000) AS a RETURN count(*)") == [(100_000,)]


def test_a_commit_follows_refused_writes(graph: CypherGraph) -> None:
    for statement in WRITES[:4]:
        with pytest.raises(InvalidInput):
            graph.query(statement)
    graph.commit(Changes.of(dict([node("Goal", "x")]), {}), cursor(3))
    assert answers(graph, "MATCH (g:Goal) RETURN g.id") == [("x",)]


def test_a_failed_query_harms_neither_the_next_query_nor_the_next_commit(graph: CypherGraph) -> None:
    for statement in ("MATCH (c:Nothing) RETURN c", "RETURN 1 / 0", "MATCH (c:`Case`) DELETE c", "RETURN (", "x"):
        with pytest.raises(InvalidInput):
            graph.query(statement)
    graph.commit(Changes.of(dict([node("Goal", "g")]), {}), cursor(3))
    assert answers(graph, "MATCH (g:Goal) RETURN g.id") == [("g",)]


def test_queries_in_other_threads_see_whole_commits(graph: CypherGraph) -> None:
    """Each commit adds one goal and two budgets, so every answer has to have twice as many of the latter."""
    answered: list[tuple[object, ...]] = []
    failures: list[BaseException] = []
    done = threading.Event()

    def ask() -> None:
        try:
            while not done.is_set():
                counts = "MATCH (g:Goal) WITH count(*) AS goals MATCH (b:Budget) RETURN goals, count(*)"
                answered.extend(answers(graph, counts))
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=ask) for _ in range(2)]
    for thread in threads:
        thread.start()
    for number in range(60):
        made = dict([node("Goal", f"g{number}"), node("Budget", f"a{number}"), node("Budget", f"b{number}")])
        graph.commit(Changes.of(made, {}), cursor(number + 3))
    done.set()
    for thread in threads:
        thread.join()
    assert failures == []
    assert answered
    assert all(2 * int(str(goals)) == budgets for goals, budgets in answered)


def test_a_graph_opened_read_only_answers_and_takes_no_commit(tmp_path: Path, graph: CypherGraph) -> None:
    graph.close()
    reader = CypherGraph.open(tmp_path / "run.graph", ENGINE, read_only=True)
    assert answers(reader, "MATCH (c:`Case`) RETURN c.id") == [("c1",)]
    with pytest.raises(GraphError):
        reader.commit(Changes.of(dict([node("Goal", "g")]), {}), cursor(3))
    assert reader.cursor() == cursor(2)
    for statement in WRITES[:4]:
        with pytest.raises(InvalidInput):
            reader.query(statement)
    reader.close()


def test_a_closed_graph_answers_no_query(graph: CypherGraph) -> None:
    graph.close()
    with pytest.raises(GraphUnavailable):
        graph.query("RETURN 1")


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (2**63, "$p is no whole number from -9223372036854775808 to 9223372036854775807"),
        (-(2**63) - 1, "$p is no whole number"),
        (2**200, "$p is no whole number"),
        ("a\udcff", "$p isn't UTF-8: byte 0xff after 1 characters"),
        ("\ud800", "$p isn't UTF-8: half a character, 0xd800, after 0 characters"),
        (("a", "\udc80"), "$p isn't UTF-8: byte 0x80 after 0 characters"),
        ((), "an empty list has no type there"),
    ],
)
def test_a_value_that_the_engine_cannot_take_is_refused_in_words_of_ours(
    value: Value, said: str, unchanged: CypherGraph
) -> None:
    with pytest.raises(InvalidInput) as refused:
        unchanged.query("RETURN $p AS p", {"p": value})
    assert refused.value.message.startswith(said)


def test_the_least_and_the_largest_values_are_taken(unchanged: CypherGraph) -> None:
    for value in (2**63 - 1, -(2**63), 0, True, None, "", "\0", "世界", ("a",)):
        expected = list(value) if isinstance(value, tuple) else value
        assert answers(unchanged, "RETURN $p AS p", p=value) == [(expected,)]
    assert answers(unchanged, "MATCH (c:`Case`) WHERE c.id IN $p RETURN c.id", p=()) == []


def test_a_statement_that_is_no_unicode_is_refused(unchanged: CypherGraph) -> None:
    with pytest.raises(InvalidInput, match="the query isn't UTF-8: byte 0xfe after 8 characters"):
        unchanged.query("RETURN '\udcfe'")


def test_numbers_that_json_lacks_are_texts(unchanged: CypherGraph) -> None:
    numbers = ", ".join(f"CAST('{name}' AS DOUBLE)" for name in ("nan", "inf", "-inf"))
    assert answers(unchanged, f"RETURN {numbers}") == [("NaN", "Infinity", "-Infinity")]


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("RETURN CAST('a\nb' AS INT64) AS x", '"a\\nb" to INT64.'),
        ("RETURN 'two\nlines' x y", "(line: 2, offset: 7)"),
        ("RETURN 1 +", "(line: 1, offset: 10)"),
        ("MATCH (n:`a\nb`) RETURN n", "a\\nb does not exist."),
    ],
)
def test_the_engines_complaint_is_whole_and_one_line(statement: str, said: str, unchanged: CypherGraph) -> None:
    with pytest.raises(InvalidInput) as refused:
        unchanged.query(statement)
    assert refused.value.message.endswith(said)
    assert refused.value.message.isprintable()


def test_the_parameters_of_a_statement_come_once_in_the_order_of_their_use() -> None:
    cypher = 'MATCH (n {id: $b}) WHERE n.x = $a OR n.y = $b AND n.t <> \'$c\' AND n.`$d` = "\\"$e" RETURN $a'
    assert parameters_of(cypher) == ("b", "a")
    assert parameters_of("RETURN 1") == ()


def test_the_words_of_a_statement_are_those_outside_texts_and_backticks() -> None:
    assert words_of("match (n:`Order`) return n.text, 'order by', $limit") == {"MATCH", "N", "RETURN", "TEXT"}


@pytest.mark.parametrize("cypher", ["RETURN 1 // $a", "RETURN /* $a */ 1", "RETURN '$a"])
def test_what_cannot_be_cut_into_tokens_has_neither(cypher: str) -> None:
    for told in (parameters_of, words_of):
        with pytest.raises(InvalidInput):
            told(cypher)
