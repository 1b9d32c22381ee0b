"""What the benchmarks' table says of readings, and that a benchmark runs in a process of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import catalog
from benchmarks.eligible import eligible_by_search
from benchmarks.figures import Figure, Line, Reading, WrongResult
from benchmarks.report import table
from benchmarks.runner import Failed, Run
from benchmarks.stage import Stage
from forktrail_projectors.state import EdgeKey, NodeKey, Row

RATE = Figure("fold.bulk", "events/s", "high", aim=100.0, against="nothing")
TIME = Figure("rebuild", "s", "low", aim=2.0)


def line(figure: Figure, *values: float, second: float | None = None) -> Line:
    return Line(figure, tuple(Reading(figure.name, value, "some events", second) for value in values))


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path, "127.0.0.1:1", "ladybug", quick=True)


def test_the_median_is_what_is_held_against_the_aim_and_the_second_side() -> None:
    fast = line(RATE, 90, 300, 100, second=200)
    assert (fast.median, fast.values, fast.met, fast.ratio) == (100, [90, 100, 300], True, 0.5)
    assert line(RATE, 99.9).met is False
    assert (line(TIME, 2.0).met, line(TIME, 2.1).met, line(TIME, 1.0).ratio) == (True, False, None)
    assert line(TIME).met is None


def test_the_table_tells_met_missed_and_not_measured_apart() -> None:
    lines = [line(RATE, 100_000, second=50_000), line(TIME, 3.0), line(Figure("memory", "MiB", "low"))]
    head, _, rate, time, memory, *rest = table(lines, quick=False).splitlines()
    assert head.split() == ["figure", "measured", "on", "median", "min", "max", "unit", "aim", "met", "ratio"]
    assert rate.split()[-5:] == ["events/s", "≥", "100", "yes", "2.00"]
    assert time.split()[-4:] == ["s", "≤", "2", "NO"]
    assert memory.split() == ["memory", "not", "at", "these", "sizes", "MiB"]
    assert rest[-1] == "  fold.bulk: nothing"
    assert "NO" not in table(lines, quick=True)


def test_every_benchmark_states_figures_of_its_own_name_once() -> None:
    names = [(name, figure.name) for name in catalog.names() for figure in catalog.load(name).FIGURES]
    assert {name for name, _ in names} >= {"appends", "fold", "rebuild", "incremental", "discovery", "query"}
    assert [(name, figure) for name, figure in names if figure.partition(".")[0] != name] == []
    assert len(set(names)) == len(names)


def test_a_benchmark_runs_in_its_own_process_as_often_as_asked(tmp_path: Path) -> None:
    said: list[str] = []
    run = Run(tmp_path, "127.0.0.1:1", "ladybug", quick=True, repeats=2, say=said.append)
    encode, decode = run.lines("codec")
    assert (len(encode.values), len(decode.values)) == (2, 2)
    assert encode.ratio is not None
    assert said == ["codec: preparing", "codec: 1 of 2", "codec: 2 of 2"]


def test_a_benchmark_that_breaks_off_is_a_failure(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    run = Run(tmp_path, "127.0.0.1:1", "ladybug", quick=True, repeats=1, say=lambda line: None)
    with pytest.raises(Failed, match="prepare ended with exit code 1"):
        run.lines("fold")
    assert "LogUnavailable" in capfd.readouterr().err


def test_a_wrong_result_is_told_with_what_was_expected(stage: Stage) -> None:
    stage.expect("the count", 3, 3)
    with pytest.raises(WrongResult, match="the count is 3, expected 4"):
        stage.expect("the count", 3, 4)
    stage.expect_same("digest of a run", "aa")
    stage.expect_same("digest of a run", "aa")
    with pytest.raises(WrongResult, match="digest of a run is 'bb', expected 'aa'"):
        stage.expect_same("digest of a run", "bb")


def test_only_the_figure_that_was_asked_for_is_profiled(stage: Stage) -> None:
    stage.profiled = "fold.bulk"
    with stage.timed("fold.mixed"):
        len("not looked at")
    assert not stage.profile.getstats()
    with stage.timed("fold.bulk") as clock:
        len("looked at")
    assert stage.profile.getstats()
    assert clock.seconds > 0


def test_a_test_is_eligible_where_all_it_requires_is_current_and_it_has_no_attempt() -> None:
    """t-1 is attempted, t-2 lacks b, t-3 rests on both findings of a; f-3 is withdrawn and f-4 of another revision."""
    nodes: dict[tuple[str, str], Row] = {
        **{("TestCase", f"t-{number}"): {"impact": number} for number in (1, 2, 3)},
        ("Finding", "f-1"): {"revision": "r2", "withdrawn": False, "depth": 0},
        ("Finding", "f-2"): {"revision": "r2", "withdrawn": False, "depth": 4},
        ("Finding", "f-3"): {"revision": "r2", "withdrawn": True, "depth": 0},
        ("Finding", "f-4"): {"revision": "r1", "withdrawn": False, "depth": 0},
        ("Case", "c-1"): {"revision": "r2", "retried": False},
        ("Case", "c-2"): {"revision": "r2", "retried": True},
        ("Case", "c-3"): {"revision": "r1", "retried": False},
    }
    ends = [
        ("REQUIRES", "TestCase", "t-1", "Capability", "a"),
        ("REQUIRES", "TestCase", "t-2", "Capability", "a"),
        ("REQUIRES", "TestCase", "t-2", "Capability", "b"),
        ("REQUIRES", "TestCase", "t-3", "Capability", "a"),
        ("ENABLES", "Finding", "f-1", "Capability", "a"),
        ("ENABLES", "Finding", "f-2", "Capability", "a"),
        ("ENABLES", "Finding", "f-3", "Capability", "b"),
        ("ENABLES", "Finding", "f-4", "Capability", "b"),
        ("ATTEMPTS", "Case", "c-1", "TestCase", "t-1"),
        ("ATTEMPTS", "Case", "c-2", "TestCase", "t-3"),
        ("ATTEMPTS", "Case", "c-3", "TestCase", "t-3"),
    ]
    rows: list[tuple[NodeKey | EdgeKey, Row]] = [(NodeKey(*key), row) for key, row in nodes.items()]
    rows += [(EdgeKey(name, NodeKey(a, b), NodeKey(c, d)), {}) for name, a, b, c, d in ends]
    assert eligible_by_search(rows, "r2") == [("t-3", 5, [("f-1", "a"), ("f-2", "a")])]
