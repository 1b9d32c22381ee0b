"""The check of a behavior's code, before its first event: what in it could give something else in a replay.

It reads the text of the behavior, and of the functions and classes of its module that it names. Names are looked up as
the code itself would: `from time import time_ns as t` is seen as what it is. What other modules do is left to the guard
and to strict replay.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import FunctionType
from typing import Any

from forktrail_behaviors.determinism.reader import Reader
from forktrail_schemas.errors import InvalidInput

__all__ = ["Fault", "check"]


@dataclass(frozen=True, order=True)
class Fault:
    """Something that a behavior may not do.

    Attributes:
        what: was used, and how.
        instead: what to do, as a hint.
    """

    file: str
    line: int
    what: str
    instead: str


def check(source: Callable[..., Any] | type) -> list[Fault]:
    """All faults of a behavior's function or class, sorted; empty where it is deterministic as far as its text shows.

    Raises:
        InvalidInput: its text can't be read.
    """
    module = source.__module__
    waiting: list[Any] = [source]
    seen: set[int] = set()
    faults: set[Fault] = set()
    while waiting:
        one = waiting.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        file, tree = _text_of(one)
        reader = Reader(one, _outside(one), tree)
        reader.read()
        faults.update(Fault(file, *found) for found in reader.faults)
        waiting += [named for named in map(_unwrapped, reader.named) if _is_of(named, module)]
    return sorted(faults)


def _unwrapped(value: object) -> object:
    """A function behind its decorators, as far as they say what they wrap."""
    return inspect.unwrap(value) if callable(value) and hasattr(value, "__wrapped__") else value


def _is_of(value: object, module: str) -> bool:
    """Whether a name stands for code of the module: what is imported is checked by others, or not at all."""
    return isinstance(value, FunctionType | type) and value.__module__ == module and _has_text(value)


def _has_text(value: FunctionType | type) -> bool:
    """Whether somebody wrote it: what a library made, an __init__ say, has no text of its own."""
    try:
        return bool(inspect.getsourcelines(value)[0])
    except (OSError, TypeError):
        return False


def _outside(source: Any) -> Mapping[str, object]:
    """What names stand for outside of a function or class."""
    module = inspect.getmodule(source)
    outside = dict(getattr(source, "__globals__", vars(module) if module else {}))
    functions = (
        [one for one in vars(source).values() if inspect.isfunction(one)] if inspect.isclass(source) else [source]
    )
    for function in functions:
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            try:
                outside[name] = cell.cell_contents
            except ValueError:  # it isn't bound yet
                continue
    return outside


def _text_of(source: Any) -> tuple[str, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef]:
    """The file that something was written in, by its name, and its tree with the file's line numbers."""
    name = getattr(source, "__qualname__", repr(source))
    try:
        file = inspect.getsourcefile(source)
        lines, first = inspect.getsourcelines(source)
        text = "".join(lines)
        if text[:1].isspace():  # inside something: that lets it stand, without moving what its strings hold
            text, first = f"if True:\n{text}", first - 1
        tree = ast.parse(text)
    except (OSError, TypeError, SyntaxError) as error:
        raise InvalidInput(
            f"the source of {name} can't be read, so nothing shows that it is deterministic",
            hint="write behaviors as functions or classes in a file",
        ) from error
    ast.increment_lineno(tree, first - 1)
    found = tree.body[0].body[0] if isinstance(tree.body[0], ast.If) else tree.body[0]
    if not isinstance(found, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        raise InvalidInput(f"{name} isn't written as a function or class", hint="write it with def, async def or class")
    return _shown(Path(file or "")), found


def _shown(file: Path) -> str:
    """A file as people call it: from where they stand, or by its name."""
    return str(file.relative_to(Path.cwd())) if file.is_relative_to(Path.cwd()) else file.name
