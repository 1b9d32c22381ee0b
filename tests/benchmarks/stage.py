"""What a benchmark is given: a Kafka, a folder that its repeats and the other benchmarks share, sizes, a clock."""

from __future__ import annotations

import cProfile
import gc
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.figures import WrongResult
from forktrail_schemas.settings import Settings


@dataclass
class Clock:
    """How long a timed part took, in seconds, once it is over."""

    seconds: float = 0.0


@dataclass
class Stage:
    """One process's view of a run of the benchmarks.

    Attributes:
        folder: kept until the whole run ends.
        quick: take small sizes.
        profiled: the figure, or the benchmark, whose timed parts go into `profile`.
    """

    folder: Path
    bootstrap_servers: str
    graph_engine: str
    quick: bool = False
    profiled: str = ""
    profile: cProfile.Profile = field(default_factory=cProfile.Profile)

    @property
    def settings(self) -> Settings:
        """The settings of a process that uses this folder as its home."""
        return Settings(
            home=self.folder / "home",
            bootstrap_servers=self.bootstrap_servers,
            external_kafka=True,
            graph_engine=self.graph_engine,
        )

    def size(self, full: int, quick: int) -> int:
        """One of two sizes."""
        return quick if self.quick else full

    @contextmanager
    def timed(self, figure: str) -> Iterator[Clock]:
        """Time the body of a `with` block, garbage of earlier work collected before; profile it if that was asked."""
        gc.collect()
        clock = Clock()
        profiled = self.profiled != "" and f"{figure}.".startswith(f"{self.profiled}.")
        began = time.perf_counter()
        if profiled:
            self.profile.enable()
        try:
            yield clock
        finally:
            self.profile.disable()
            clock.seconds = time.perf_counter() - began

    @contextmanager
    def timed_second_side(self) -> Iterator[Clock]:
        """Time the second side; it is never profiled."""
        gc.collect()
        clock = Clock()
        began = time.perf_counter()
        yield clock
        clock.seconds = time.perf_counter() - began

    def keep(self, name: str, value: Any) -> None:
        """Keep a JSON value for the repeats and for other benchmarks."""
        path = self._path(name)
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(value))

    def kept(self, name: str) -> Any:
        """The value that was kept under a name, None where there is none."""
        path = self._path(name)
        return json.loads(path.read_text()) if path.exists() else None

    def expect(self, what: str, found: object, expected: object) -> None:
        """Check a result; call it outside the timed parts.

        Raises:
            WrongResult: it is another one than expected.
        """
        if found != expected:
            raise WrongResult(f"{what} is {_short(found)}, expected {_short(expected)}")

    def expect_same(self, what: str, value: str) -> None:
        """Check that a value is the same in every repeat and benchmark that states it under this name.

        Raises:
            WrongResult: it was another one before.
        """
        before = self.kept(what)
        if before is None:
            self.keep(what, value)
        else:
            self.expect(what, value, before)

    def _path(self, name: str) -> Path:
        return self.folder / "kept" / f"{name.replace(' ', '-').replace(',', '')}.json"


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 200 else f"{text[:200]}…"
