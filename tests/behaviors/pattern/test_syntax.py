"""What the `when` language takes, and that what it doesn't is refused with where it stands."""

from __future__ import annotations

import pytest

from forktrail_behaviors.pattern.syntax import parse
from forktrail_behaviors.pattern.tree import Compare, Constant, Every, Exists, IsNull, Not, Property, Some, Step
from forktrail_schemas.errors import InvalidInput


def test_variables_come_in_the_order_of_first_mention_without_those_of_exists() -> None:
    pattern = parse(
        "MATCH (q)<-[:ABOUT]-(c:Claim)-[r:BY]->(:Person), (q:Question)-[:IN]->(z:Case)"
        " WHERE EXISTS { MATCH (c)-[:CITES]->(d:Document) }"
    )
    assert pattern.variables == (("q", "Question"), ("c", "Claim"), ("z", "Case"))
    assert pattern.labels == {"Question", "Claim", "Person", "Case", "Document"}
    assert pattern.relations == ("ABOUT", "BY", "CITES", "IN")


def test_steps_lead_as_their_arrows_do() -> None:
    pattern = parse("match (a:A)-[:R]->(b:B)<-[x:S|T]-(c:C)-[:U*2]->(d:D)<-[:V*..3]-(e:E)-[:W*2..4]->(a)")
    assert pattern.part.steps == (
        Step("a", "b", ("R",)),
        Step("c", "b", ("S", "T"), variable="x"),
        Step("c", "d", ("U",), 2, 2),
        Step("e", "d", ("V",), 1, 3),
        Step("e", "a", ("W",), 2, 4),
    )


def test_or_binds_weaker_than_and_and_not_binds_strongest() -> None:
    one, two, three = (Compare("=", Property("a", name), Constant(1)) for name in ("x", "y", "z"))
    assert parse("MATCH (a:A) WHERE a.x = 1 OR NOT a.y = 1 AND a.z = 1").part.conditions == (
        Some((one, Every((Not(two), three)))),
    )
    assert parse("MATCH (a:A) WHERE (a.x = 1 OR a.y = 1) AND a.z = 1").part.conditions == (Some((one, two)), three)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("'it\\'s'", "it's"),
        ('"a\\n\\\\b"', "a\n\\b"),
        ("'世界'", "世界"),
        ("-3", -3),
        ("-9223372036854775808", -(2**63)),
        ("9223372036854775807", 2**63 - 1),
        ("1.5e-3", 0.0015),
        ("TRUE", True),
        ("null", None),
        ("[1, 'x', null]", (1, "x", None)),
        ("[]", ()),
    ],
)
def test_literals_are_read(text: str, value: object) -> None:
    (condition,) = parse(f"MATCH (a:A) WHERE a.x = {text}").part.conditions
    assert condition == Compare("=", Property("a", "x"), Constant(value))  # type: ignore[arg-type]  # any of them


def test_properties_in_a_node_are_conditions() -> None:
    pattern = parse("MATCH (a:A {x: 1, y: 'b'}) WHERE a.z IS NOT NULL")
    assert pattern.part.conditions == (
        Compare("=", Property("a", "x"), Constant(1)),
        Compare("=", Property("a", "y"), Constant("b")),
        IsNull(Property("a", "z"), negated=True),
    )
    assert pattern.properties == (("A", "x"), ("A", "y"), ("A", "z"))


def test_exists_knows_what_it_shares() -> None:
    (condition,) = parse(
        "MATCH (a:A)-[:R]->(b:B) WHERE EXISTS { MATCH (a)-[:S]->(c:C) WHERE c.n = b.n }"
    ).part.conditions
    assert isinstance(condition, Exists)
    assert condition.part.shared == {"a", "b"}
    assert condition.part.labels == (("a", "A"), ("c", "C"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "column 1: MATCH is missing"),
        ("MATCH (a:A) RETURN a", "column 13: RETURN isn't part of a pattern"),
        ("MATCH (a:A)\nWHERE a.x = 1\n  LIMIT 3", "line 3, column 3: LIMIT isn't part"),
        ("OPTIONAL MATCH (a:A)", r"column 1: OPTIONAL isn't part .*EXISTS"),
        ("MATCH (a)", r"column 7: the node a has no label \(write \(name:Label\)"),
        ("MATCH (a:A)-[:R]->()", "column 19: a node has no label"),
        ("MATCH (:A)", "no node has a name"),
        ("MATCH (a:A), (b:B)", "column 14: nothing joins this node"),
        ("MATCH (a:A)-[:R]->(b:B), (c:C)-[:R]->(d:D)", "column 26: nothing joins this node"),
        ("MATCH (a:A:B)", "column 11: a node has one label"),
        ("MATCH (a:A)-[:R]->(a:B)", "column 22: a is a A already"),
        ("MATCH (a:A)-[:R]-(b:B)", "column 12: a relation has one direction"),
        ("MATCH (a:A)<-[:R]->(b:B)", "column 12: a relation has one direction"),
        ("MATCH (a:A)-->(b:B)", "column 13: '\\[' is missing"),
        ("MATCH (a:A)-[r]->(b:B)", "column 15: ':' is missing"),
        ("MATCH (a:A)-[:R*]->(b:B)", "column 16: a walk has an end"),
        ("MATCH (a:A)-[:R*2..]->(b:B)", "column 16: a walk has an end"),
        ("MATCH (a:A)-[:R*0..2]->(b:B)", "from 1 to 5"),
        ("MATCH (a:A)-[:R*1..6]->(b:B)", r"from 1 to 5 relations \(write \*1\.\.3"),
        ("MATCH (a:A)-[:R*3..2]->(b:B)", "from 1 to 5"),
        ("MATCH (a:A)-[r:R*1..2]->(b:B)", "column 14: a walk has no name"),
        ("MATCH (a:A)-[a:R]->(b:B)", "column 14: a is taken already"),
        ("MATCH (a:A)-[r:R]->(r:B)", "column 20: r is a relation already"),
        ("MATCH (a:A)-[:R {x: 1}]->(b:B)", "column 17: a relation takes no properties"),
        ("MATCH (a:A) WHERE a.open", "a comparison is missing .*v.property = true"),
        ("MATCH (a:A) WHERE a = 1", "column 21: '.' is missing"),
        ("MATCH (a:A) WHERE b.x = 1", "column 19: nothing is called b"),
        ("MATCH (a:A) WHERE a.x = $x", "column 25: .*takes no parameters"),
        ("MATCH (a:A) WHERE a.x = 1 + 2", "column 27: .*doesn't calculate"),
        ("MATCH (a:A) WHERE 1 < a.x < 3", "column 27: one comparison follows another"),
        ("MATCH (a:A) WHERE a.x = 1 XOR a.y = 2", "column 27: XOR isn't part"),
        ("MATCH (a:A) WHERE count(a) = 1", r"column 19: count\(…\)"),
        ("MATCH (a:A) WHERE a.x =~ 'b'", "has no meaning here"),
        ("MATCH (a:A) WHERE a.x = 'b", "no closing '"),
        ("MATCH (a:A) WHERE a.x = '\\q'", r"column 26: \\q is no escape"),
        ("MATCH (a:A) WHERE a.x = 9223372036854775808", "no integer of 64 bits"),
        ("MATCH (a:A) WHERE a.x = -9223372036854775809", "column 26: .*no integer of 64 bits"),
        ("MATCH (a:A) WHERE a.x = 01", "column 25: a number begins with 0"),
        ("MATCH (a:A) WHERE a.x = ٣", "column 25: '٣' has no meaning here"),
        ("MATCH (a:A) WHERE NOT (a)-[:R]->(:B)", r"column 25: a pattern is no condition .*EXISTS"),
        ("MATCH (a:A) WHERE a.x NOT IN [1]", "column 23: NOT stands before a whole condition"),
        ("MATCH (a:A)" + "-[:R]->(:A)" * 65, "more than 64 relations"),
        ("MATCH (a:A) WHERE a.x = 1e999", "beyond what a double holds"),
        ("MATCH (a:A) WHERE (a.x = 1", "column 27: '\\)' is missing"),
        ("MATCH (a:A) WHERE a.x IN", "a literal is missing"),
        ("MATCH (a:A) WHERE 1 IS NULL", "only a property may be null"),
        ("MATCH (a:A) WHERE a.`x` = 1", "without backticks"),
        ("MATCH (a:A) // all", "comments aren't part"),
        ("MATCH (a:A);", "without a semicolon"),
        ("MATCH (a:A) WHERE " + "NOT " * 40 + "a.x = 1", "nested deeper than 32"),
        ("MATCH (a:A) WHERE " + "(" * 40 + "a.x = 1", "nested deeper than 32"),
        ("MATCH (a:A) WHERE EXISTS { MATCH (b:B) WHERE b.x = a.x }", "column 34: EXISTS names no node"),
        ("MATCH (a:A) WHERE EXISTS { MATCH (a)-[:R]->(b:B), (c:C) }", "nothing joins this node"),
        ("MATCH (a:A) WHERE EXISTS { (a)-[:R]->(b:B) }", "MATCH is missing"),
        ("MATCH (a:A) WHERE EXISTS { MATCH (a)-[:R]->(b:B) } AND b.x = 1", "nothing is called b"),
    ],
)
def test_what_isn_t_part_of_the_language_is_refused_with_its_place(text: str, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        parse(text)
