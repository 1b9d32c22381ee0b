"""The gate lets readers hold the fold for a bounded time, and everybody have their turn."""

from __future__ import annotations

import threading

import pytest

from forktrail_projectors.owner.gate import BUSY_SECONDS, IDLE_SECONDS, TOTAL_SECONDS, Gate

WAIT_S = 20.0


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def writer(gate: Gate, wrote: threading.Event, go_on: threading.Event | None = None) -> threading.Thread:
    """A thread that writes once, for as long as the test lets it."""

    def write() -> None:
        with gate.writing():
            wrote.set()
            if go_on is not None:
                assert go_on.wait(WAIT_S)

    thread = threading.Thread(target=write, daemon=True)
    thread.start()
    return thread


def test_several_readers_hold_it_at_once_and_a_writer_waits_for_the_last() -> None:
    gate, wrote = Gate(), threading.Event()
    holds = [gate.hold() for _ in range(3)]
    thread = writer(gate, wrote)
    for hold in holds:
        assert not wrote.wait(0.02)
        gate.release(hold)
    assert wrote.wait(WAIT_S)
    thread.join(WAIT_S)


def test_a_reader_waits_for_the_writer_that_came_first() -> None:
    gate, wrote, go_on, held = Gate(), threading.Event(), threading.Event(), threading.Event()
    first = gate.hold()
    thread = writer(gate, wrote, go_on)
    assert not wrote.wait(0.02)

    def hold() -> None:
        gate.hold()
        held.set()

    threading.Thread(target=hold, daemon=True).start()
    assert not held.wait(0.02)
    gate.release(first)
    assert wrote.wait(WAIT_S)
    assert not held.is_set()
    go_on.set()
    assert held.wait(WAIT_S)
    thread.join(WAIT_S)


@pytest.mark.parametrize(
    ("busy", "seconds"), [(None, IDLE_SECONDS), (False, IDLE_SECONDS), (True, BUSY_SECONDS)], ids=str
)
def test_a_hold_ends_by_itself(busy: bool | None, seconds: float) -> None:
    clock = Clock()
    gate = Gate(clock)
    hold = gate.hold()
    if busy is not None:
        gate.extend(hold, busy=busy)
    clock.now += seconds - 0.01
    assert gate.holds(hold)
    clock.now += 0.02
    assert not gate.holds(hold)
    with gate.writing():
        pass


def test_no_hold_outlasts_its_total() -> None:
    clock = Clock()
    gate = Gate(clock)
    hold = gate.hold()
    began = clock.now
    while gate.holds(hold):
        gate.extend(hold, busy=True)
        clock.now += IDLE_SECONDS
    assert TOTAL_SECONDS <= clock.now - began <= TOTAL_SECONDS + IDLE_SECONDS


def test_a_hold_whose_time_was_up_stays_lost() -> None:
    clock = Clock()
    gate = Gate(clock)
    hold = gate.hold()
    clock.now += IDLE_SECONDS + 1
    gate.extend(hold, busy=True)
    assert not gate.holds(hold)


def test_clear_takes_every_hold() -> None:
    gate, wrote = Gate(), threading.Event()
    gate.hold()
    thread = writer(gate, wrote)
    gate.clear()
    assert wrote.wait(WAIT_S)
    thread.join(WAIT_S)


def test_a_writer_that_fails_lets_others_in() -> None:
    gate = Gate()
    with pytest.raises(ValueError, match="inside"), gate.writing():
        raise ValueError("inside")
    gate.release(gate.hold())
    with gate.writing():
        pass
