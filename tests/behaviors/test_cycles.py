"""Behaviors that could trigger each other for ever are refused, by what they listen to and emit."""

from __future__ import annotations

from typing import Any

import pytest

from forktrail_behaviors.behavior import Behavior, behavior
from forktrail_behaviors.cycles import check_cycles
from forktrail_schemas.errors import InvalidInput
from forktrail_schemas.events import (
    BehaviorCompleted,
    ObjectCreated,
    ObjectPatched,
    RelationCreated,
    ReportFiled,
    TestProposed,
)


def made(name: str, *, emits: tuple[Any, ...] = (), repeats: str = "", **listens: Any) -> Behavior:
    """A behavior that does nothing."""

    def react(ctx: object) -> None: ...

    return behavior(name=name, emits=emits, repeats=repeats, **listens)(react)


def test_a_circle_is_named_with_what_each_listens_to() -> None:
    one = made("ask", on=ObjectCreated, where={"object_type": "Company"}, emits=("Question",))
    two = made("answer", when="MATCH (q:Question) WHERE q.open = true", emits=("Answer",))
    three = made("conclude", relation="SETTLES", emits=("Company",))
    check_cycles([one, two, three])
    closing = made("settle", on=ObjectCreated, where={"object_type": "Answer"}, emits=("SETTLES",))
    with pytest.raises(InvalidInput) as refused:
        check_cycles([one, two, three, closing])
    assert refused.value.message == (
        "behaviors could trigger each other for ever: ask (ObjectCreated Company)"
        " → answer (MATCH (q:Question) WHERE q.open = true) → settle (ObjectCreated Answer) → conclude (SETTLES) → ask"
    )
    assert "repeats=" in refused.value.hint


def test_a_behavior_that_says_why_it_ends_may_stand_in_a_circle() -> None:
    one = made("ping", on=ObjectCreated, where={"object_type": "Ping"}, emits=("Pong",))
    two = made("pong", on=ObjectCreated, where={"object_type": "Pong"}, emits=("Ping",), repeats="counts down to 0")
    check_cycles([one, two])


def test_one_that_says_so_excuses_no_circle_beside_it() -> None:
    one = made("calm", on=ObjectCreated, where={"object_type": "A"}, emits=("A",), repeats="once")
    two = made("wild", on=ObjectCreated, where={"object_type": "B"}, emits=("B",))
    with pytest.raises(InvalidInput, match=r"wild \(ObjectCreated B\) → wild$|wild \(ObjectCreated B\) → wild "):
        check_cycles([one, two])


CIRCLES: list[tuple[dict[str, Any], tuple[Any, ...]]] = [
    ({"on": ObjectPatched, "where": {"object_type": "A"}}, ("A",)),
    ({"on": ObjectCreated}, ("A",)),
    ({"on": ObjectCreated, "where": {"object_type": "A"}}, (ObjectCreated,)),
    ({"on": RelationCreated}, ("JOINS",)),
    ({"on": RelationCreated, "where": {"relation_type": "JOINS"}}, ("JOINS",)),
    ({"relation": "JOINS"}, (RelationCreated,)),
    ({"relation": "ABOUT"}, ("Question",)),  # by its reference
    ({"when": "MATCH (a:A)"}, ("A",)),
    ({"when": "MATCH (a:A) WHERE NOT EXISTS { MATCH (a)-[:R]->(b:B) }"}, ("B",)),
    ({"when": "MATCH (a:A) WHERE NOT EXISTS { MATCH (a)-[:R]->(b:B) }"}, ("R",)),
    ({"when": "MATCH (a:A)-[:R*1..3]->(b:B)"}, ("R",)),
    ({"when": "MATCH (a:A)-[:ABOUT]->(b:B)"}, ("Question",)),  # by its reference
    ({"when": "MATCH (a:A)"}, (ObjectCreated,)),
    ({"when": "MATCH (c:Case)"}, (TestProposed,)),
    ({"relation": "ATTEMPTS"}, (TestProposed,)),
    ({"on": TestProposed}, (TestProposed,)),
    ({"on": BehaviorCompleted}, ()),
    ({"when": "MATCH (e:Execution)"}, ()),
]
STRAIGHT: list[tuple[dict[str, Any], tuple[Any, ...]]] = [
    ({"on": ObjectCreated, "where": {"object_type": "A"}}, ("B",)),
    ({"on": RelationCreated, "where": {"relation_type": "JOINS"}}, ("PARTS", "A")),
    ({"relation": "JOINS"}, ("A", "PARTS")),
    ({"when": "MATCH (a:A)-[:R]->(b:B)"}, ("C", "S", TestProposed)),
    ({"when": "MATCH (f:Finding)"}, (TestProposed, "A", ObjectCreated)),
    ({"on": TestProposed}, (ReportFiled, "A")),
    ({"on": BehaviorCompleted, "where": {"meta.execution.behavior": "another"}}, ("A",)),
]


@pytest.mark.parametrize(("listens", "emits"), CIRCLES)
def test_a_behavior_may_trigger_itself(listens: dict[str, Any], emits: tuple[Any, ...]) -> None:
    with pytest.raises(InvalidInput, match=r"for ever: self \("):
        check_cycles([made("self", emits=emits, **listens)], {"Question": ["ABOUT"]})


@pytest.mark.parametrize(("listens", "emits"), STRAIGHT)
def test_a_behavior_that_can_t_trigger_itself_passes(listens: dict[str, Any], emits: tuple[Any, ...]) -> None:
    check_cycles([made("self", emits=emits, **listens)], {"Question": ["ABOUT"]})
