"""A seed gives the same kills at the same moments; another seed gives others."""

from __future__ import annotations

from collections import Counter
from itertools import islice

import pytest

from chaos.schedule import DELAY_SECONDS, KILLS, MOMENTS, PAUSE_SECONDS, TARGETS, counts_of, draws, order_of


def test_the_whole_run_kills_projector_200_producer_60_broker_40_times() -> None:
    assert counts_of(300) == {"projector": 200, "producer": 60, "broker": 40}


@pytest.mark.parametrize("kills", [3, 4, 10, 30, 301])
def test_fewer_kills_keep_the_proportion_with_one_of_each_at_least(kills: int) -> None:
    counts = counts_of(kills)
    assert sum(counts.values()) == kills
    assert min(counts.values()) >= 1
    assert counts["projector"] >= counts["producer"] >= counts["broker"]


def test_the_order_holds_as_many_kills_as_asked_for_and_follows_the_seed() -> None:
    order = order_of(7, KILLS)
    assert Counter(order) == KILLS
    assert order == order_of(7, KILLS) != order_of(8, KILLS)


@pytest.mark.parametrize("target", TARGETS)
def test_moments_follow_the_seed_and_stay_in_bounds(target: str) -> None:
    drawn = list(islice(draws(7, target), 200))  # type: ignore[arg-type]  # parametrize gives plain text
    assert drawn == list(islice(draws(7, target), 200))  # type: ignore[arg-type]
    assert drawn != list(islice(draws(8, target), 200))  # type: ignore[arg-type]
    assert all(0 <= draw.pause <= PAUSE_SECONDS[target] for draw in drawn)  # type: ignore[index]
    assert all(0 <= draw.delay <= DELAY_SECONDS[target] for draw in drawn)  # type: ignore[index]


def test_the_projector_is_met_at_everything_it_does() -> None:
    assert {draw.moment for draw in islice(draws(7, "projector"), 200)} == set(MOMENTS)
