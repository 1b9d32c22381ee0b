"""Three-valued logic: the tables of SQL and openCypher, and what ladybug 0.22.0 answers where they leave a choice."""

from __future__ import annotations

import pytest

from forktrail_behaviors.pattern.logic import truth
from forktrail_behaviors.pattern.syntax import parse
from forktrail_projectors.state import Row

ROW: Row = {"n": 1, "d": 1.5, "s": "abc", "b": True, "t": ("p", "q"), "empty": "", "big": 2**53 + 1}


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("a.n = 1.0", True),
        ("a.d > a.n", True),
        ("a.n <> 1", False),
        ("a.x = null", None),
        ("a.x <> a.x", None),
        ("NOT a.x = 1", None),
        ("a.n = 1 OR a.x = 1", True),
        ("a.n = 2 OR a.x = 1", None),
        ("a.n = 2 AND a.x = 1", False),
        ("a.n = 1 AND a.x = 1", None),
        ("a.x IS NULL", True),
        ("a.x IS NOT NULL", False),
        ("NOT a.n IS NULL", True),
        ("a.n IN [1.0, 2]", True),
        ("a.n IN [2, null]", False),
        ("a.n IN [1, null]", True),
        ("a.x IN [1]", None),
        ("a.x IN []", None),
        ("a.n IN []", False),
        ("'p' IN a.t", True),
        ("'z' IN a.t", False),
        ("'z' IN a.x", None),
        ("null IN a.t", None),
        ("a.s STARTS WITH 'ab'", True),
        ("a.s ENDS WITH 'bc'", True),
        ("a.s CONTAINS 'b'", True),
        ("a.s CONTAINS 'B'", False),
        ("a.s CONTAINS ''", False),
        ("a.s STARTS WITH ''", True),
        ("a.s STARTS WITH null", None),
        ("a.n STARTS WITH '1'", None),
        ("a.t = ['p', 'q']", True),
        ("a.b < true", False),
        ("a.b = 1", None),
        ("a.n = true", None),
        ("a.s = 1", None),
        ("a.s < 'é'", True),
        ("'Z' < 'a'", True),
        ("a.big = 9007199254740993", True),
        ("a.empty = ''", True),
    ],
)
def test_a_condition_comes_to(condition: str, expected: bool | None) -> None:
    (one,) = parse(f"MATCH (a:A) WHERE ({condition}) OR a.n = 7").part.conditions[:1]
    assert truth(one, {"a": ROW}, lambda part: False) is expected
