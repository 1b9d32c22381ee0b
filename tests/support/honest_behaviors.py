"""Behaviors that the check must let pass, though each comes near to something that it refuses."""
# ruff: noqa
# mypy: ignore-errors
# Code for the check to read; none of it runs, and how it is typed doesn't matter.

from __future__ import annotations

import collections
import dataclasses
import functools
import heapq
import itertools
import json
import math
import os.path
import re
import urllib.parse
import uuid
from datetime import UTC, date, datetime, timedelta
from enum import Enum
from io import StringIO
from pathlib import Path, PurePosixPath
from typing import Any

from pydantic import BaseModel, Field

LIMITS = {"low": 1, "high": 3}
STOP_WORDS = frozenset({"a", "the"})
WORD = re.compile(r"\w+")
HOME = Path("x")


class Stage(Enum):
    SEED = "seed"
    LATE = "late"


class Answer(BaseModel):
    """What a model answers."""

    text: str
    tags: list[str] = Field(default_factory=list)
    when: date | None = None


@dataclasses.dataclass
class Tally:
    seen: set[str] = dataclasses.field(default_factory=set)
    total: int = 0

    def add(self, name: str) -> None:
        self.seen.add(name)
        self.total += 1

    def names(self) -> list[str]:
        return sorted(self.seen)


async def plain(ctx, event, known: set[str], file: Path | None = None):
    now, dice = ctx.now, ctx.random
    later = now + timedelta(days=1)
    born = datetime(2020, 1, 1, tzinfo=UTC)
    answer = await ctx.model("ask", messages=[{"role": "user", "content": str(now)}], schema=Answer)
    pages = await ctx.gather(*(ctx.tool("fetch", url=url) for url in answer.tags))
    await ctx.sleep(timedelta(hours=1))
    pending = ctx.tool("fetch", url="x")
    page = await pending
    for number, name in enumerate(sorted(known)):
        ctx.create("Note", text=f"{number} {name} {dice.random()}", at=later.isoformat(), born=str(born))
    if "x" in known and len(known) > 1 and any(one.startswith("a") for one in known):
        ctx.create("Note", text=max(known))
    return page, pages


async def shapes(ctx, event):
    tally = Tally()
    for word in WORD.findall(event.text):
        if word not in STOP_WORDS:
            tally.add(word)
    counts = collections.Counter(tally.names())
    cache = {}
    cache["a"] = 1
    cache.setdefault("b", []).append(2)
    seen = []
    seen.append(3)
    unique = {one for one in seen}
    unique.add(4)
    unique |= {5}
    unique.update({6})
    if event.short:
        unique = sorted(unique)
    else:
        unique = []
    for one in unique:
        counts[str(one)] += 1
    pairs = itertools.pairwise(sorted(set(counts)))
    ctx.create("Count", data=json.dumps(dict(counts), sort_keys=True), pairs=list(pairs), half=math.floor(0.5))
    ids = [uuid.UUID(int=1), uuid.uuid5(uuid.NAMESPACE_URL, "x")]
    text = StringIO()
    text.write("x")
    name = os.path.join("a", PurePosixPath("b").name)
    url = urllib.parse.quote(name)
    return await finish(ctx, url, LIMITS["low"], Stage.SEED.value, str(ids))


async def finish(ctx, *parts):
    count = 0

    def bump():
        nonlocal count
        count += 1

    async def one(part):
        return await ctx.tool("fetch", url=part)

    for part in parts:
        bump()
        await one(part)
    match parts:
        case [first, *rest]:
            ctx.create("A", name=first, rest=len(rest))
        case _:
            pass
    try:
        id = parts[0]
        open = id
    except IndexError as error:
        raise ValueError(str(error)) from error
    return cached(count), open


@functools.lru_cache
def cached(count: int) -> int:
    return count or len(STOP_WORDS)


class Watch:
    """Several handlers, and what they keep while they run."""

    WEIGHTS = {"a": 1.0}

    def __init__(self) -> None:
        self.found: list[str] = []
        self.names: set[str] = set()

    async def weigh(self, ctx, source, target):
        self.found.append(source.id)
        self.names |= {target.id}
        await self.note(ctx)
        return sorted(self.names), self.WEIGHTS["a"]

    async def note(self, ctx):
        ctx.create("Note", text=", ".join(sorted(name.lower() for name in self.names)))
        return {name for name in self.names if name}


async def orders_that_nobody_minds(ctx, event, names: set[str], others: set[str]):
    listed = sorted(list(names)), sorted(tuple(names)), len(list(names)), set(list(names))
    mapped = sorted(map(str.lower, names)), max(map(len, names)), any(map(str.isupper, names))
    kept = sorted(filter(None, names)), sorted(list(map(str, names)))
    counted = sum(len(one) for one in names), sum(1 for one in names if one), sum(one > "b" for one in names)
    if names & others or names <= others or not names.isdisjoint(others):
        ctx.create("Note", both=len(names & others))
    names = sorted(names)
    first, *rest = sorted(others)
    return [one for one in names], listed, mapped, kept, counted, first, rest


async def copies(ctx, event, given=(), limit=LIMITS["low"]):
    names = NAMES
    names = [*names, "c"]
    names.append("d")
    limits = dict(LIMITS)
    limits["low"] = 2
    more = LIMITS.copy()
    more["high"] = 4
    low = LIMITS["low"]
    low += 1
    limit += 1
    queue = []
    heapq.heappush(queue, low)
    return helped(event), names, limits, more, heapq.heappop(queue)


def helped(event, seen=None, also=[]):
    seen = [] if seen is None else seen
    seen.append(event)
    return [*seen, *also]


class Rates:
    """An object of the module that a behavior uses."""

    def __init__(self) -> None:
        self.rates = {"a": 1}

    def of(self, name):
        return self.rates.get(name, 0)

    @property
    def first(self):
        return min(self.rates)


def traced(function):
    @functools.wraps(function)
    async def inner(ctx, event):
        return await function(ctx, event)

    return inner


async def tables(ctx, event):
    CHOICES[event.kind](event)
    return RATES.of("a"), RATES.first, TO_INT("3"), SHORT(event), Stage.LATE.value, [one.value for one in Stage]


NAMES = ["b", "a"]
RATES = Rates()
TO_INT = functools.partial(int, base=10)
SHORT = lambda event: event.text[:3]
CHOICES = {"help": helped, "short": lambda event: event.text}

HONEST: list[Any] = [plain, shapes, Watch, orders_that_nobody_minds, copies, tables, cached]
