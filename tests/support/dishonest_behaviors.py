"""Behaviors that the check refuses: each line that it must name says so, with words that the fault must hold."""
# ruff: noqa
# mypy: ignore-errors
# Code for the check to read; none of it runs, and how it is typed doesn't matter.

from __future__ import annotations

import asyncio
import datetime
import bisect
import collections
import dataclasses
import datetime as dt
import functools
import heapq
import importlib
import io
import itertools
import json
import os
import pathlib
import random
import secrets
import socket
import subprocess
import threading
import time
import typing
import urllib.request
import uuid
from collections.abc import Set as AbstractSet
from os import environ, path
from pathlib import Path
from random import choice as pick
from time import time_ns as t

COUNTS: dict[str, int] = {}
SEEN: list[str] = []
KINDS = frozenset({"a", "b"})
TOTAL = 0


async def clocks(ctx, event):
    time.time()  # refused: time.time
    t()  # refused: time.time_ns
    datetime.datetime.now()  # refused: datetime.now
    dt.date.today()  # refused: date.today
    clock = time.monotonic  # refused: time.monotonic
    time.sleep(1)  # refused: time.sleep
    import time as later  # refused: time
    from datetime import datetime as day

    day.utcnow()  # refused: datetime.utcnow


async def chance(ctx, event):
    random.random()  # refused: random.random
    pick([1, 2])  # refused: random.choice
    secrets.token_hex()  # refused: secrets
    uuid.uuid4()  # refused: uuid.uuid4
    make = uuid.uuid1  # refused: uuid.uuid1
    os.urandom(3)  # refused: os.urandom
    random.Random(3)  # refused: random.Random


async def outside(ctx, event):
    os.environ["HOME"]  # refused: os.environ
    environ.get("X")  # refused: os.environ
    os.getenv("X")  # refused: os.getenv
    os.listdir(".")  # refused: os.listdir
    path.exists("x")  # refused: os.path.exists
    open("x")  # refused: open
    io.open("x")  # refused: open
    Path("x").read_text()  # refused: pathlib.Path
    pathlib.Path.cwd()  # refused: pathlib.Path
    socket.socket()  # refused: socket
    urllib.request.urlopen("http://x")  # refused: urllib.request
    subprocess.run(["x"])  # refused: subprocess
    threading.Thread()  # refused: threading
    eval("1")  # refused: eval
    exec("1")  # refused: exec
    __import__("time")  # refused: __import__
    globals()  # refused: globals
    input()  # refused: input
    with open("y") as file:  # refused: open
        pass


async def addresses(ctx, event):
    id(event)  # refused: id
    hash(event.object_id)  # refused: hash
    hash(3)
    hash(len("x"))


async def waiting(ctx, event):
    await asyncio.sleep(1)  # refused: asyncio.sleep  # refused: await
    await event  # refused: await event
    async with ctx:  # refused: async with
        pass
    async for one in ctx:  # refused: async for
        pass


async def state(ctx, event):
    global TOTAL  # refused: TOTAL
    TOTAL = 3
    COUNTS["a"] = 1  # refused: COUNTS
    COUNTS["a"] += 1  # refused: COUNTS
    del COUNTS["a"]  # refused: COUNTS
    SEEN.append("x")  # refused: SEEN
    json.state = 1  # refused: json
    Keeper.seen.append("y")  # refused: Keeper.seen


class Keeper:
    seen: list[str] = []
    stamp = time.time()  # refused: time.time

    def note(self, ctx, event):
        self.seen.append("x")  # refused: self.seen
        self.seen[0] = "y"  # refused: self.seen

    def default(self, ctx, at=time.time()):  # refused: time.time
        return at


async def follows(ctx, event):
    helper(ctx)
    await async_helper(ctx)
    Holder(event).value()
    sorted([1], key=by_clock)


def helper(ctx):
    deeper()


def deeper():
    return time.time()  # refused: time.time


async def async_helper(ctx):
    return random.random()  # refused: random.random


class Holder:
    def __init__(self, event):
        self.names = {event.object_id}

    def value(self):
        for name in self.names:  # refused: self.names
            return name


def by_clock(one):
    return time.time()  # refused: time.time


async def holds(ctx, event):
    PARTLY()  # refused: time.time, in PARTLY
    CLOCKS["wall"]()  # refused: time.time, in CLOCKS
    TOOL.run()
    BOUND()
    CALLED()
    STEPS[0](event)
    RULES["late"](event)
    wrapped(ctx)
    importlib.import_module("json")  # refused: importlib
    getattr(datetime.datetime, "now")()  # refused: datetime.now
    late = lambda at=time.time(): at  # refused: time.time

    @functools.partial(map, time.time)  # refused: time.time
    def inner(): ...

    class Inner(metaclass=random.Random): ...  # refused: random.Random


class Tool:
    def run(self):
        return self._deeper()

    def _deeper(self):
        return time.time()  # refused: time.time


class Bound:
    def run(self):
        return uuid.uuid4()  # refused: uuid.uuid4


class Called:
    def __call__(self):
        return uuid.uuid1()  # refused: uuid.uuid1


def step(event):
    return os.getenv("X")  # refused: os.getenv


def stamped(function):
    @functools.wraps(function)
    def stamp(ctx):
        time.time_ns()  # refused: time.time_ns
        return function(ctx)

    return stamp


@stamped
def wrapped(ctx):
    return random.random()  # refused: random.random


PARTLY = functools.partial(time.time)
CLOCKS = {"wall": time.time}
TOOL = Tool()
BOUND = Bound().run
CALLED = Called()
STEPS = [step]
RULES = {
    "late": lambda event: time.monotonic(),  # refused: time.monotonic
}


async def aliases(ctx, event):
    seen = SEEN
    seen.append("x")  # refused: seen
    also = more = COUNTS
    also["a"] = 1  # refused: also
    more |= {"a": 2}  # refused: more
    first, second = SEEN, 1
    first += ["y"]  # refused: first
    if (walrus := SEEN) is not None:
        walrus.clear()  # refused: walrus
    heapq.heappush(SEEN, 1)  # refused: SEEN
    bisect.insort(SEEN, 1)  # refused: SEEN
    setattr(json, "state", 1)  # refused: json
    keeps(event)


def keeps(event, seen=[], *, counts=dict(), shared=SEEN):
    seen.append(event)  # refused: seen
    counts["x"] = 1  # refused: counts
    shared.pop()  # refused: shared
    seen = list(seen)
    seen.append(event)
    return seen


@dataclasses.dataclass
class Field:
    names: set[str] = dataclasses.field(default_factory=set)

    def shown(self):
        return [name for name in self.names]  # refused: self.names


async def more_orders(
    ctx, event, maybe: typing.Optional[set[str]], marked: typing.Annotated[set[str], "x"], given={"a"}
):
    Field().shown()
    for one in maybe or ():  # refused: set
        pass
    list(marked)  # refused: set
    list(given)  # refused: set
    list(typing.cast("set[str]", event.names))  # refused: set
    functools.reduce(max, marked)  # refused: set
    marked.__iter__()  # refused: set
    names, count = {"a", "b"}, 1
    tuple(names)  # refused: set
    listed = []
    listed += names  # refused: set
    listed[0:0] = names  # refused: set
    for one in listed:
        pass
    sorted(list(names), key=len)  # refused: set
    sum(one.weight for one in names)  # refused: set
    sum((1 for one in names), start=list(names)[0])  # refused: set


async def orders(ctx, event, named: set[str], others: AbstractSet[str]):
    for one in {"a", "b"}:  # refused: set
        ctx.create("A", name=one)
    names = {one for one in event.names}
    more = names | {"x"}
    [one for one in more]  # refused: set
    {one: 1 for one in names}  # refused: set
    (one for one in names - {"y"})  # refused: set
    list(names)  # refused: set
    tuple(set(event.names))  # refused: set
    ", ".join(frozenset(event.names))  # refused: set
    print(*names)  # refused: set
    [*names]  # refused: set
    first, *rest = names  # refused: set
    names.pop()  # refused: set
    enumerate(names)  # refused: set
    zip([1], names)  # refused: set
    map(str, names)  # refused: set
    next(iter(names))  # refused: set
    sum(x for x in names)  # refused: set
    f"{names}"  # refused: set
    str(names)  # refused: set
    itertools.chain(names)  # refused: set
    [1].extend(names)  # refused: set
    for one in named:  # refused: set
        pass
    for one in others.union("x"):  # refused: set
        pass
    for one in KINDS:  # refused: set
        pass
    for one in event.a.keys() & event.b.keys():  # refused: set
        pass
    for one in made():  # refused: set
        pass
    sorted(names, key=len)  # refused: set
    min(names, key=len)  # refused: set
    if event.x:
        late = {"q"}
    else:
        late = ["q"]
    for one in late:  # refused: set
        pass
    if (walrus := set(event.names)) and True:
        for one in walrus:  # refused: set
            pass
    queue = []
    for _ in range(2):
        for one in queue:  # refused: set
            pass
        queue = {"z"}
    grown = set()
    grown |= {"x"}
    yielded = [one for part in [1] for one in grown]  # refused: set

    def inner():
        for one in names:  # refused: set
            pass

    inner()


def made() -> set[str]:
    return {"a"}
