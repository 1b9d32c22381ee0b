"""A live fold says when it is behind, sparingly, and when it has caught up, if it said that it was behind."""

from __future__ import annotations

from forktrail_projectors.owner.progress import SECONDS_BETWEEN, Progress


def lines(*moments: tuple[float, int, int]) -> list[str | None]:
    progress = Progress()
    return [progress.line(*moment) for moment in moments]


def test_nothing_is_said_while_it_keeps_up() -> None:
    assert lines((0, 5, 5), (1, 6, 6), (2, 9, 9)) == [None, None, None]


def test_behind_for_a_moment_is_not_worth_a_line() -> None:
    assert lines((0, 5, 9), (1, 9, 9), (2, 9, 12), (3, 12, 12)) == [None] * 4


def test_behind_is_said_once_in_a_while_and_caught_up_at_the_end() -> None:
    told = lines(
        (0, 0, 5000),
        (1, 1000, 5000),
        (2, 2000, 5000),
        (1 + SECONDS_BETWEEN, 4999, 5000),
        (2 + SECONDS_BETWEEN, 5000, 5000),
        (3 + SECONDS_BETWEEN, 5000, 5000),
    )
    assert told == [
        None,
        "4,000 records behind, at offset 1000",
        None,
        "1 record behind, at offset 4999",
        "caught up at offset 5000",
        None,
    ]


def test_a_graph_ahead_of_an_end_read_earlier_is_not_behind() -> None:
    assert lines((0, 7, 5), (1, 7, 5)) == [None, None]
