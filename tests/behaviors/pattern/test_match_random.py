"""On random graphs, the matches that a change makes are those that the graph engine finds after it and not before."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from forktrail_behaviors.pattern.match import matches_born
from forktrail_behaviors.pattern.search import Search
from forktrail_behaviors.pattern.surroundings import Surroundings
from forktrail_behaviors.pattern.syntax import Pattern, parse
from forktrail_projectors.graph.cypher import CypherGraph
from forktrail_projectors.state import Changes, NodeKey
from support.patterns import World, answers, drawn, drawn_for
from support.rows import ENGINE, SEED, cursor

PATTERNS = 20
STEPS = 30
# Some stories are quiet: they go on until enough has happened.
ENOUGH = 10
STEPS_MAX = 200


@pytest.mark.parametrize("round", range(2))
def test_what_a_change_makes_is_what_the_engine_finds_anew(tmp_path: Path, round: int) -> None:
    dice = random.Random(SEED + round)
    world = World()
    engine = CypherGraph.open(tmp_path / "run.graph", ENGINE)
    engine.commit(world.declared, cursor(1))
    patterns = [drawn_for(engine, dice) for _ in range(PATTERNS)]
    parsed = [parse(pattern.text) for pattern in patterns]
    before = [answers(engine, pattern) for pattern in patterns]
    born_in_all = 0
    for step in range(STEPS_MAX):
        if step >= STEPS and born_in_all > ENOUGH:
            break
        changes = world.random_step(dice)
        engine.commit(changes, cursor(world.offset))
        for place, (pattern, one) in enumerate(zip(patterns, parsed, strict=True)):
            now = answers(engine, pattern)
            told = matches_born(one, world.graph, changes)
            found = {tuple(key.id for key in match) for match in told}
            where = f"FORKTRAIL_TEST_SEED={SEED} round {round} step {step}: {pattern.text}"
            assert len(found) == len(told), where
            assert now - before[place] <= found, f"missed, {where}"
            assert found <= now, f"false, {where}"
            born_in_all += len(now - before[place])
            before[place] = now
    engine.close()
    assert born_in_all > ENOUGH, f"too little happens to prove anything: FORKTRAIL_TEST_SEED={SEED}"


@pytest.mark.parametrize("round", range(2))
def test_what_a_change_makes_is_what_a_scan_finds_anew(round: int) -> None:
    """Patterns beyond what the engine answers rightly; every node is tried, so that no seed can be missed."""
    dice = random.Random(SEED + round)
    world = World()
    patterns = [drawn(dice) for _ in range(2 * PATTERNS)]
    parsed = [parse(pattern.text) for pattern in patterns]
    before = [scan(one, world) for one in parsed]
    born_in_all = 0
    for step in range(STEPS_MAX):
        if step >= STEPS and born_in_all > ENOUGH:
            break
        changes = world.random_step(dice)
        for place, (pattern, one) in enumerate(zip(patterns, parsed, strict=True)):
            now = scan(one, world)
            found = set(matches_born(one, world.graph, changes))
            where = f"FORKTRAIL_TEST_SEED={SEED} round {round} step {step}: {pattern.text}"
            assert now - before[place] <= found, f"missed, {where}"
            assert found <= now, f"false, {where}"
            born_in_all += len(now - before[place])
            before[place] = now
    assert born_in_all > ENOUGH, f"too little happens to prove anything: FORKTRAIL_TEST_SEED={SEED}"


def scan(pattern: Pattern, world: World) -> set[tuple[NodeKey, ...]]:
    """All matches that hold, found from every node that may stand for the first variable."""
    search = Search(Surroundings(world.graph, Changes()))
    first, label = pattern.variables[0]
    there = [key for key, _ in world.graph.rows() if isinstance(key, NodeKey) and key.table == label]
    found = (binding for key in there for binding in search.matches(pattern.part, {first: key}))
    return {tuple(binding[name] for name, _ in pattern.variables) for binding in found}
