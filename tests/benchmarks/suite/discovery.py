"""Discovery at 10,000 registered tests: one page of what is eligible, with its total, as the planner asks for it.

7,000 tests require nothing and enable one of 1,000 capabilities, so that seven provide each; 3,000 require one or two.

- `few`: three findings; a handful of tests require just what they provide.
- `many`: 7,000 findings in the third revision, and 10,000 attempts in the two before it. Of the 3,000 tests that the
  findings support, 500 have been attempted, so 2,500 are eligible.

The answers are held against a search over every row of the graph in plain Python.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from statistics import median

from benchmarks.attempts import Registered
from benchmarks.author import Draft
from benchmarks.eligible import eligible_by_search
from benchmarks.figures import Figure, Reading
from benchmarks.graphs import make_graph, open_copy
from benchmarks.investigation import Investigation
from benchmarks.logs import StoredLog, stored_log, write_records
from benchmarks.stage import Stage
from benchmarks.workload import record_of
from forktrail_projectors.discovery import all_eligible_tests, eligible_tests
from forktrail_projectors.projection import open_projection

FIGURES = (
    Figure("discovery.few", "ms", "low", aim=10),
    Figure("discovery.many", "ms", "low", aim=60),
)
_REVISION = {"few": "r1", "many": "r3"}
_WARM_UP_CALLS = 3
_CALLS = 20


def prepare(stage: Stage) -> None:
    """Write both logs, fold their graphs, and search them."""
    for name, revision in _REVISION.items():
        log = _log(stage, name)
        with open_copy(stage, make_graph(stage, log)) as graph:
            stage.keep(f"eligible {name}", eligible_by_search(graph.rows(), revision))


def measure(stage: Stage) -> Iterator[Reading]:
    """The median of some calls for the first page, on each graph."""
    for name, revision in _REVISION.items():
        figure = f"discovery.{name}"
        expected = stage.kept(f"eligible {name}")
        milliseconds = []
        with open_projection(stage.settings, _log(stage, name).run) as projection:
            with stage.timed(figure):
                for _ in range(_WARM_UP_CALLS + _CALLS):
                    began = time.perf_counter()
                    page = eligible_tests(projection.graph, revision)
                    milliseconds.append((time.perf_counter() - began) * 1000)
            found = [
                [test.test_id, test.depth, [[pair.finding_id, pair.capability] for pair in test.support]]
                for test in all_eligible_tests(projection.graph, revision)
            ]
        stage.expect("the total", page.total, len(expected))
        stage.expect("the eligible tests", found, expected)
        yield Reading(figure, median(milliseconds[_WARM_UP_CALLS:]), f"{page.total:,} of {_tests(stage):,} tests")


def _tests(stage: Stage) -> int:
    return stage.size(10_000, 1_000)


def _log(stage: Stage, name: str) -> StoredLog:
    run = f"run-{name}"
    story = Investigation(run, seed=1)
    drafts = _few(story, _tests(stage)) if name == "few" else _many(story, _tests(stage))

    def write() -> Investigation:
        records = (record_of(draft, offset) for offset, draft in enumerate(drafts))
        write_records(stage.bootstrap_servers, run, records)
        return story

    return stored_log(stage, run, write)


def _few(story: Investigation, count: int) -> Iterator[Draft]:
    """Three findings."""
    yield from _registered(story, count)
    for test in story.tests[:3]:
        yield from _found(story, test)


def _many(story: Investigation, count: int) -> Iterator[Draft]:
    """Attempts in two revisions, and findings in the third."""
    yield from _registered(story, count)
    roots = [test for test in story.tests if not test.requires]
    dependents = [test for test in story.tests if test.requires]
    for reported in (roots, roots[: len(dependents)]):
        for test in reported:
            yield story.report(test)
        yield story.advance()
    for test in roots:
        yield from _found(story, test)
    for test in dependents[: len(dependents) // 6]:
        yield story.report(test)


def _registered(story: Investigation, count: int) -> Iterator[Draft]:
    """The run with its staff and tests: seven in ten enable a capability, the others require one or two."""
    yield story.open()
    for signer in (story.author.operator, story.author.reviewer, story.author.runner):
        yield story.register_key(signer)
    chance = story.author.chance
    capabilities = count // 10
    for number in range(count):
        root = number < count * 7 // 10
        needed = {f"capability-{chance.randrange(capabilities)}" for _ in range(chance.choice((1, 2)))}
        test = Registered(
            id=f"test-{number:05d}",
            asset=f"asset-{number % 50}",
            requires=() if root else tuple(sorted(needed)),
            enables=(f"capability-{number % capabilities}",) if root else (),
            impact=chance.randrange(101),
        )
        yield story.register(test)


def _found(story: Investigation, test: Registered) -> Iterator[Draft]:
    """The way from a report to a finding; nothing else may wait for a decision."""
    yield story.report(test)
    attempt = story.attempts.take_undecided(story.author.chance)
    assert attempt is not None, "its report opened a case"
    yield story.approve(attempt)
    yield story.start(attempt)
    yield story.observe(attempt, "reproduced")
    yield story.review(attempt, "accept")
