"""Stops a running behavior from what would differ in a replay, whoever calls it: clocks, random, environment, files.

`install` puts it into a process, and `armed` turns it on for the calling thread; everywhere else all goes on as before.
Imports are let through, and what `logging` and tracebacks do, since no behavior sees it.

It can't catch what never passes Python: `datetime.now()`, a clock or random number that a module took by its name
before `install` (`from time import time_ns`), or a library's own generator. The check finds
most of it in a behavior's own code; what is left is found by strict replay, at the field where it shows.
"""

from __future__ import annotations

import functools
import os
import random
import sys
import threading
import time
import uuid
from _thread import get_ident
from collections.abc import Callable
from types import FrameType
from typing import Any

from forktrail_behaviors.determinism import instead
from forktrail_schemas.errors import ForktrailError


class NondeterministicCall(ForktrailError):
    """A behavior called what would give something else in a replay."""

    code = "nondeterministic_call"


_CLOCKS = (
    "time time_ns monotonic monotonic_ns perf_counter perf_counter_ns process_time process_time_ns thread_time"
    " thread_time_ns clock_gettime clock_gettime_ns localtime ctime sleep"
)
_CLOCKS_WITHOUT_ARGUMENT = "gmtime asctime"
_OF_THE_PROCESS = "getpid getppid getcwd getcwdb times getloadavg cpu_count"
_OF_RANDOM = "urandom getrandom"
_OF_FILES = "stat lstat access readlink"
_UUIDS = "uuid1 uuid4 uuid6 uuid7 getnode"
_ENVIRONMENT_METHODS = "__getitem__ __iter__ __len__"
# What Python tells its audit hooks (PEP 578), by the beginning of its name.
_AUDITED = {
    "open": instead.OUTSIDE,
    "socket.": instead.OUTSIDE,
    "subprocess.": instead.OUTSIDE,
    "os.": instead.OUTSIDE,
    "shutil.": instead.OUTSIDE,
    "tempfile.": instead.OUTSIDE,
    "glob.": instead.OUTSIDE,
    "urllib.": instead.OUTSIDE,
    "sqlite3.": instead.OUTSIDE,
    "ctypes.": instead.OUTSIDE,
    "_thread.": instead.SIDE_BY_SIDE,
    "builtins.input": instead.OUTSIDE,
}
_AUDITED_PREFIXES = tuple(_AUDITED)
# Frames of these modules excuse what they call: no behavior sees what they make of it, or it is always the same.
_EXCUSED = frozenset(
    {"_frozen_importlib", "importlib._bootstrap", "linecache", "logging", "forktrail_behaviors.model_schema"}
)


# The threads that the guard is on in, each with the frame that turned it on.
_frames: dict[int, FrameType] = {}
_replaced: list[tuple[Any, str, Any]] = []
_hooked: list[bool] = []


class _Armed:
    """A context manager, the same for all threads."""

    __slots__ = ()

    def __enter__(self) -> None:
        _frames[get_ident()] = sys._getframe(1)

    def __exit__(self, *error: object) -> None:
        del _frames[get_ident()]


_armed = _Armed()


def armed() -> _Armed:
    """Turn the guard on in this thread while a `with` block runs; it doesn't nest. Without `install` it stops nothing.

    In the block, what isn't deterministic raises NondeterministicCall.
    """
    return _armed


def install() -> None:
    """Put the guard into this process: a few functions of the standard library look whether it is on, then do as ever.

    Doing it again changes nothing. A module that is imported later gets the guarded functions by any name.
    """
    if _replaced:
        return
    _replace_all(time, _CLOCKS, instead.CLOCK)
    _replace_all(time, _CLOCKS_WITHOUT_ARGUMENT, instead.CLOCK, arguments=1)
    _replace(time, "strftime", "time.strftime", instead.CLOCK, arguments=2)
    for name, function in vars(random).copy().items():
        # The module's functions are methods of one generator that it seeds by itself.
        if isinstance(getattr(function, "__self__", None), random.Random):
            _replace(random, name, f"random.{name}", instead.RANDOM)
    _replace(random, "_urandom", "random.SystemRandom", instead.RANDOM)
    _replace(random.Random, "seed", "random.Random() without a seed", instead.RANDOM, arguments=2)
    _replace_all(os, _OF_RANDOM, instead.RANDOM)
    _replace_all(os, _OF_THE_PROCESS, instead.ENVIRONMENT)
    _replace_all(os, _OF_FILES, instead.OUTSIDE)
    _replace_all(uuid, _UUIDS, instead.ID)
    for name in _ENVIRONMENT_METHODS.split():
        _replace(type(os.environ), name, "os.environ", instead.ENVIRONMENT)
    _replace(threading.Thread, "start", "threading.Thread", instead.SIDE_BY_SIDE)
    if not _hooked:
        _hooked.append(True)
        sys.addaudithook(_audit)


def uninstall() -> None:
    """Take the guard out of this process again; its audit hook, which can't be taken out, does nothing from then on."""
    while _replaced:
        owner, name, original = _replaced.pop()
        setattr(owner, name, original)


def _replace_all(owner: Any, names: str, hint: str, *, arguments: int | None = None) -> None:
    for name in names.split():
        if hasattr(owner, name):  # some are of newer versions of Python, or of some systems
            _replace(owner, name, f"{owner.__name__}.{name}", hint, arguments=arguments)


def _replace(owner: Any, name: str, shown: str, hint: str, *, arguments: int | None = None) -> None:
    """Guard a function.

    Args:
        arguments: with so many it is let through: it then asks no clock or generator. None: it never is.
    """
    original = getattr(owner, name)
    _replaced.append((owner, name, original))
    setattr(owner, name, _guarded(original, shown, hint, arguments))


def _guarded(original: Callable[..., Any], shown: str, hint: str, arguments: int | None) -> Callable[..., Any]:
    frames, ident = _frames, get_ident

    @functools.wraps(original)
    def guarded(*args: Any, **kwargs: Any) -> Any:
        boundary = frames.get(ident()) if frames else None
        if boundary is not None and not _is_harmless(args, kwargs, arguments) and not _is_excused(boundary):
            raise _refusal(shown, hint)
        return original(*args, **kwargs)

    return guarded


def _is_harmless(args: tuple[Any, ...], kwargs: dict[str, Any], arguments: int | None) -> bool:
    return arguments is not None and len(args) + len(kwargs) >= arguments and None not in args + tuple(kwargs.values())


def _audit(event: str, args: tuple[Any, ...]) -> None:
    if not _frames or not _replaced or not event.startswith(_AUDITED_PREFIXES):
        return
    boundary = _frames.get(get_ident())
    if boundary is None or _is_excused(boundary):
        return
    hint = next(hint for prefix, hint in _AUDITED.items() if event.startswith(prefix))
    what = f" of {args[0]!r:.80}" if event == "open" and args else ""
    raise _refusal(f"{event}{what}", hint)


def _is_excused(boundary: FrameType) -> bool:
    """Whether an excused module stands between the behavior's driver and the call."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and frame is not boundary:
        if frame.f_globals.get("__name__") in _EXCUSED:
            return True
        frame = frame.f_back
    return False


def _refusal(shown: str, hint: str) -> NondeterministicCall:
    return NondeterministicCall(f"a behavior called {shown}", hint=hint)
