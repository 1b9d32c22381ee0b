"""Finds the benchmarks: every module in `benchmarks/suite`."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterable
from typing import Protocol, cast

from benchmarks import suite
from benchmarks.figures import Figure, Reading
from benchmarks.stage import Stage


class Benchmark(Protocol):
    """What each module in `benchmarks.suite` offers; its name is the benchmark's.

    Attributes:
        FIGURES: what it measures, in the order of the table.
        prepare: makes what all repeats share; run once, in a process of its own, untimed.
        measure: one repeat, in a process of its own: a reading of each figure that is measured at these sizes.
    """

    FIGURES: tuple[Figure, ...]
    prepare: Callable[[Stage], None]
    measure: Callable[[Stage], Iterable[Reading]]


def names() -> list[str]:
    """The names of all benchmarks, sorted."""
    return sorted(module.name for module in pkgutil.iter_modules(suite.__path__))


def load(name: str) -> Benchmark:
    """Import one benchmark."""
    return cast(Benchmark, importlib.import_module(f"{suite.__name__}.{name}"))
