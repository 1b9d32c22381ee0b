"""What comes with an object that a behavior names: what it wraps, binds or lists may run as well."""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Iterator, Mapping
from itertools import islice
from types import FunctionType, MethodType, ModuleType

ENTRIES_MAX = 1_000  # of a table; a longer one holds data
_LISTS = (list, tuple, set, frozenset, deque)


def all_held(value: object) -> list[object]:
    """The object, and all that comes with it, each once."""
    found: list[object] = []
    seen: set[int] = set()
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if id(one) not in seen:
            seen.add(id(one))
            found.append(one)
            waiting += _held(one)
    return found


def _held(value: object) -> Iterator[object]:
    if isinstance(value, ModuleType | type | str | bytes):
        return
    if isinstance(value, functools.partial):
        yield from (value.func, *value.args, *value.keywords.values())
    elif isinstance(value, MethodType):
        yield from (value.__func__, type(value.__self__))
    elif isinstance(value, Mapping):
        yield from islice(value.values(), ENTRIES_MAX) if isinstance(value, dict) else ()
    elif isinstance(value, _LISTS):
        yield from islice(value, ENTRIES_MAX)
    elif callable(value):
        if hasattr(value, "__wrapped__"):
            yield value.__wrapped__
        elif not isinstance(value, FunctionType):
            yield type(value)  # an object that is called as a function
