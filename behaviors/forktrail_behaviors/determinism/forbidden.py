"""Which objects a behavior may not name, and what it uses instead."""

from __future__ import annotations

import builtins
import datetime
import inspect
import io
import os
import pathlib
import random
import sys
import uuid
from collections.abc import Mapping
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import NamedTuple

from forktrail_behaviors.determinism import instead


class Forbidden(NamedTuple):
    """What is named, as a reader knows it, and what to use instead."""

    what: str
    instead: str


_WORLD = (
    "socket _socket ssl select selectors subprocess urllib.request urllib.robotparser http.client http.server"
    " http.cookiejar httpx httpcore requests urllib3 aiohttp ftplib smtplib imaplib poplib sqlite3 shutil tempfile glob"
    " fileinput signal mmap ctypes webbrowser confluent_kafka ladybug kuzu platform getpass numpy.random"
)
# Modules of which nothing may be used, with those inside them.
_MODULES: Mapping[str, str] = {
    "time": instead.CLOCK,
    "random": instead.RANDOM,
    "secrets": instead.RANDOM,
    "asyncio": instead.WAIT,
    "trio": instead.WAIT,
    "anyio": instead.WAIT,
    "threading": instead.SIDE_BY_SIDE,
    "_thread": instead.SIDE_BY_SIDE,
    "multiprocessing": instead.SIDE_BY_SIDE,
    "concurrent.futures": instead.SIDE_BY_SIDE,
    "importlib": instead.IMPORT,
    "pkgutil": instead.IMPORT,
} | dict.fromkeys(_WORLD.split(), instead.OUTSIDE)
_OS = "path sep altsep extsep linesep curdir pardir fspath fsencode fsdecode PathLike name"
_OS_PATH = "join basename dirname split splitext splitdrive normpath normcase commonprefix commonpath isabs sep"
# Of these modules, only what is named here.
_ALLOWED_OF: Mapping[str, frozenset[str]] = {
    "os": frozenset(_OS.split()),
    "os.path": frozenset(_OS_PATH.split()),
    "io": frozenset({"StringIO", "BytesIO"}),
    "pathlib": frozenset({"PurePath", "PurePosixPath", "PureWindowsPath"}),
}
_ALIASES = {
    "posix": "os",
    "nt": "os",
    "posixpath": "os.path",
    "genericpath": "os.path",
    "ntpath": "os.path",
    "_io": "io",
}
# Of these, all but what is named here.
_REFUSED_OF: Mapping[str, Mapping[str, str]] = {
    "uuid": dict.fromkeys(("uuid1", "uuid4", "uuid6", "uuid7", "getnode"), instead.ID),
    "sys": dict.fromkeys(
        ("argv", "stdin", "path", "modules", "platform", "getrefcount", "_getframe"), instead.ENVIRONMENT
    ),
    "builtins": dict.fromkeys(("eval", "exec", "compile", "__import__", "globals", "breakpoint"), instead.CODE)
    | {"open": instead.OUTSIDE, "input": instead.OUTSIDE, "id": instead.ADDRESS},
}
_OF_DATES = frozenset({"now", "utcnow", "today"})
_BY_IDENTITY: Mapping[int, Forbidden] = {
    id(getattr(owner, name)): Forbidden(f"{owner.__name__}.{name}".removeprefix("builtins."), hint)
    for owner in (builtins, uuid, sys)
    for name, hint in _REFUSED_OF[owner.__name__].items()
    if hasattr(owner, name)
}


def forbidden_member(owner: object, name: str) -> Forbidden | None:
    """What is wrong with an attribute of a module or class; None where nothing is."""
    if isinstance(owner, ModuleType):
        return forbidden_import(owner.__name__, name)
    if isinstance(owner, type) and issubclass(owner, datetime.date) and name in _OF_DATES:
        return Forbidden(f"{owner.__name__}.{name}", instead.CLOCK)
    return None


def forbidden_import(module: str, name: str | None = None) -> Forbidden | None:
    """What is wrong with a module, or something that is taken of it; None where nothing is."""
    module = _ALIASES.get(module, module)
    shown = f"{module}.{name}" if name else module
    for one in (module, shown):
        parts = one.split(".")
        for count in range(1, len(parts) + 1):
            hint = _MODULES.get(".".join(parts[:count]))
            if hint is not None:
                return Forbidden(shown, hint)
    if name is None:
        return None
    if module in _ALLOWED_OF and name not in _ALLOWED_OF[module]:
        of_system = {"environ": instead.ENVIRONMENT, "getenv": instead.ENVIRONMENT, "urandom": instead.RANDOM}
        return Forbidden(shown, of_system.get(name, instead.OUTSIDE))
    hint = _REFUSED_OF.get(module, {}).get(name)
    return None if hint is None else Forbidden(shown, hint)


def forbidden_object(value: object) -> Forbidden | None:
    """What is wrong with an object, by whatever name it goes; None where nothing is."""
    value = inspect.unwrap(value) if callable(value) and hasattr(value, "__wrapped__") else value  # the guard's, say
    if isinstance(value, ModuleType):
        return forbidden_import(value.__name__)
    if value is os.environ:
        return Forbidden("os.environ", instead.ENVIRONMENT)
    if isinstance(value, random.Random) or isinstance(getattr(value, "__self__", None), random.Random):
        return Forbidden(f"random.{getattr(value, '__name__', 'Random')}", instead.RANDOM)
    if isinstance(value, io.IOBase) and not isinstance(value, io.StringIO | io.BytesIO):
        return Forbidden("an open file", instead.OUTSIDE)
    if isinstance(value, pathlib.Path):
        return Forbidden("pathlib.Path", instead.OUTSIDE)
    if id(value) in _BY_IDENTITY:
        return _BY_IDENTITY[id(value)]
    owner = getattr(value, "__self__", None)
    if isinstance(value, BuiltinFunctionType) and isinstance(owner, type):
        return forbidden_member(owner, value.__name__)
    if isinstance(value, type | FunctionType | BuiltinFunctionType | MethodType):
        module, name = getattr(value, "__module__", None), value.__qualname__.partition(".")[0]
        return forbidden_import(module, name) if isinstance(module, str) and module != "builtins" else None
    return None
