"""A helper module of behaviors that reads what they mustn't."""

from __future__ import annotations

import itertools
import os
import random
import time
from pathlib import Path
from time import time_ns

_numbers = itertools.count()


def clock() -> int:
    return time.time_ns()


def dice() -> float:
    return random.random()


def environment() -> str:
    return os.environ.get("HOME", "")


def file() -> str:
    return Path(__file__).read_text()


def clock_taken_before() -> int:
    """By a name of its own, which nothing can stand in for."""
    return time_ns()


def counter() -> int:
    """Another number each time, as memory outside the log gives."""
    return next(_numbers)


def order_of_a_set() -> str:
    """Twenty words in the order that this process's hashes give."""
    return " ".join({f"word-{number}" for number in range(20)})
