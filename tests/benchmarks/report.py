"""What a run of the benchmarks says: one table for people, one JSON document for programs."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Sequence
from dataclasses import asdict
from importlib.metadata import version

from benchmarks.figures import Line

BUSY_LOAD = 1.0
_HEAD = ("figure", "measured on", "median", "min", "max", "unit", "aim", "met", "ratio")
_LEFT = {0, 1, 5}


def machine() -> dict[str, object]:
    """What the figures depend on."""
    return {
        "processors": os.cpu_count(),
        "load": round(os.getloadavg()[0], 2),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "packages": {name: version(name) for name in ("confluent-kafka", "fastavro", "ladybug", "pydantic")},
    }


def table(lines: Sequence[Line], *, quick: bool) -> str:
    """The table, and under it what the second sides are."""
    rows = [_HEAD, *(_row(line, quick=quick) for line in lines)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEAD))]
    text = [_laid_out(row, widths) for row in rows]
    text.insert(1, "  ".join("-" * width for width in widths))
    against = [f"  {line.figure.name}: {line.figure.against}" for line in lines if line.figure.against]
    if against:
        text += ["", "ratio: the figure over its second side", *against]
    return "\n".join(text)


def document(lines: Sequence[Line], failures: dict[str, str], *, quick: bool, repeats: int) -> dict[str, object]:
    """Everything measured, as plain values."""
    return {
        "quick": quick,
        "repeats": repeats,
        "machine": machine(),
        "failures": failures,
        "figures": [
            asdict(line.figure)
            | {
                "measured_on": line.readings[0].size if line.readings else None,
                "values": [reading.value for reading in line.readings],
                "second_values": [reading.second for reading in line.readings],
                "median": line.median if line.readings else None,
                "ratio": line.ratio,
                "met": None if quick else line.met,
            }
            for line in lines
        ],
    }


def number(value: float) -> str:
    """Four digits or so, thousands apart."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}" if abs(value) < 1 else f"{value:.2f}"


def _row(line: Line, *, quick: bool) -> tuple[str, ...]:
    figure = line.figure
    aim = "" if figure.aim is None else f"{'≥' if figure.better == 'high' else '≤'} {figure.aim:,.10g}"
    if not line.readings:
        return (figure.name, "not at these sizes", "", "", "", figure.unit, aim, "", "")
    met = "" if line.met is None else "quick" if quick else "yes" if line.met else "NO"
    ratio = "" if line.ratio is None else f"{line.ratio:.2f}"
    low, high = line.values[0], line.values[-1]
    cells = (number(line.median), number(low), number(high), figure.unit, aim, met, ratio)
    return (figure.name, line.readings[0].size, *cells)


def _laid_out(row: Sequence[str], widths: Sequence[int]) -> str:
    cells = (
        cell.ljust(width) if column in _LEFT else cell.rjust(width)
        for column, (cell, width) in enumerate(zip(row, widths, strict=True))
    )
    return "  ".join(cells).rstrip()


def busy_warning() -> str | None:
    """A line that says that the machine has other work, or None."""
    load = os.getloadavg()[0]
    if load <= BUSY_LOAD:
        return None
    return f"the machine is busy (load {load:.1f} on {os.cpu_count()} processors): expect low figures"


def say(line: str) -> None:
    """Tell what is going on, beside the table."""
    print(line, file=sys.stderr, flush=True)
