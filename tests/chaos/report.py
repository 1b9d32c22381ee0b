"""What a chaos run says: an account of its kills, and one table with every invariant."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from statistics import median

from chaos.campaign import UNITS, Kill
from chaos.checker import Check
from chaos.children import Exit
from chaos.schedule import TARGETS

FAULTS_SHOWN = 3


def say(line: str) -> None:
    """Tell what is going on, beside the account."""
    print(line, file=sys.stderr, flush=True)


def account(kills: Sequence[Kill], starts: Mapping[str, int], exits: Sequence[Exit], seconds: float) -> Iterator[str]:
    """The kills by process: how many, at what, with how much in flight.

    Args:
        starts: how often each process was started.
        exits: how processes ended that nobody killed.
        seconds: how long it took.
    """
    yield f"{sum(kill.counts for kill in kills)} kills in {seconds:.0f} s"
    for target in TARGETS:
        own = [kill for kill in kills if kill.target == target]
        counted = [kill for kill in own if kill.counts]
        moments = Counter(kill.moment for kill in counted)
        told = ", ".join(f"{count} {moment}" for moment, count in moments.most_common())
        in_flight = sorted(kill.in_flight for kill in counted)
        yield (
            f"  {target}: {len(counted)} kills ({told}), "
            f"{in_flight[0]} to {in_flight[-1]} events {UNITS[target]}, {median(in_flight):.0f} in the median; "
            f"{len(own) - len(counted)} more found none and were drawn again; started {starts[target]} times"
        )
    unopened = [kill for kill in kills if kill.target == "projector" and not kill.found.startswith("graph at")]
    if unopened:
        yield f"  {len(unopened)} left a graph that didn't open as it was, the first: {unopened[0].found}"
    if exits:
        names = Counter(exit.name for exit in exits)
        yield f"  ended by themselves: {', '.join(f'{name} {count} times' for name, count in names.items())}"


def table(results: Sequence[tuple[str, Check]]) -> str:
    """One line for each invariant of each scenario, and under it what speaks against it."""
    widths = [
        max(len(name) for name, _ in results),
        max(len(check.invariant) for _, check in results),
    ]
    lines = []
    for name, check in results:
        verdict = "PASS" if check.passed else "FAIL"
        lines.append(f"{verdict}  {name:<{widths[0]}}  {check.invariant:<{widths[1]}}  {check.looked_at}")
        lines += [f"      {fault}" for fault in check.faults[:FAULTS_SHOWN]]
        if len(check.faults) > FAULTS_SHOWN:
            lines.append(f"      and {len(check.faults) - FAULTS_SHOWN:,} more")
    return "\n".join(lines)
