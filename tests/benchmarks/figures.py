"""What a benchmark states: figures with their aims, and one reading of each figure per repeat."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import Literal


class WrongResult(Exception):
    """What was measured did the wrong thing; its figures are worth nothing."""


@dataclass(frozen=True)
class Figure:
    """One line of the table.

    Attributes:
        name: the benchmark's name, alone or with a dot and more.
        unit: of its values.
        better: whether a good value is high or low.
        aim: the value to reach at full size, if there is one.
        against: what the second side is, if there is one.
    """

    name: str
    unit: str
    better: Literal["high", "low"]
    aim: float | None = None
    against: str = ""


@dataclass(frozen=True)
class Reading:
    """The value of one figure in one repeat.

    Attributes:
        figure: its name.
        value: in the figure's unit.
        size: what it was measured on: "100,000 events".
        second: the second side's value in the same repeat and unit, if there is one.
    """

    figure: str
    value: float
    size: str
    second: float | None = None


@dataclass(frozen=True)
class Line:
    """A figure with all its readings; there are none where it isn't measured at these sizes."""

    figure: Figure
    readings: tuple[Reading, ...]

    @property
    def values(self) -> list[float]:
        """One value a repeat, lowest first."""
        return sorted(reading.value for reading in self.readings)

    @property
    def median(self) -> float:
        """The middle value."""
        return median(self.values)

    @property
    def ratio(self) -> float | None:
        """The median of value to second side, each pair from one repeat; None without a second side."""
        pairs = [(reading.value, reading.second) for reading in self.readings]
        ratios = [value / second for value, second in pairs if second]
        return median(ratios) if ratios else None

    @property
    def met(self) -> bool | None:
        """Whether the median reaches the aim; None where there is no aim or no reading."""
        if self.figure.aim is None or not self.readings:
            return None
        return self.median >= self.figure.aim if self.figure.better == "high" else self.median <= self.figure.aim


def rate(count: int, seconds: float) -> float:
    """How many a second."""
    return count / seconds


def events_of(count: int) -> str:
    """A size in words."""
    return f"{count:,} events"
