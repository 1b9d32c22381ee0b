"""The check of a behavior's code, before its first event: what in it could give something else in a replay.

It reads the text of the behavior, and of the functions and classes of its module that it names. Names are looked up as
the code itself would: `from time import time_ns as t` is seen as what it is. What other modules do is left to the guard
and to strict replay.
"""

from __future__ import annotations

import ast
import inspect
import linecache
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

from forktrail_behaviors.determinism.held import all_held
from forktrail_behaviors.determinism.reader import Reader, Tree
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
    first = inspect.unwrap(source)
    module = first.__module__
    waiting: list[object] = all_held(source)
    seen: set[int] = set()
    faults: set[Fault] = set()
    while waiting:
        one = waiting.pop()
        if id(one) in seen or not (one is first or _is_of(one, module)):
            continue
        seen.add(id(one))
        file, trees = _text_of(one, may_be_lambda=one is not first)
        for tree in trees:
            reader = Reader(one, _outside(one), tree)
            reader.read()
            faults.update(Fault(file, *found) for found in reader.faults)
            waiting += reader.named
    return sorted(faults)


def _is_of(value: object, module: str) -> bool:
    """Whether it is code of the module: what is imported is checked by others, or not at all."""
    if isinstance(value, FunctionType):
        # A wrapper says that it is of the module of what it wraps.
        return value.__globals__.get("__name__") == module and _has_text(value.__code__)
    return isinstance(value, type) and value.__module__ == module and _has_text(value)


def _has_text(value: CodeType | type) -> bool:
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


def _text_of(source: Any, *, may_be_lambda: bool) -> tuple[str, list[Tree]]:
    """The file that something was written in, by its name, and its tree with the file's line numbers.

    Of a lambda all that begin in its line, since nothing tells them apart.
    """
    name = getattr(source, "__qualname__", repr(source))
    code = getattr(source, "__code__", source)  # of itself: a function's lines are those of what it wraps
    try:
        file = inspect.getsourcefile(code)
        if may_be_lambda and isinstance(code, CodeType) and code.co_name == "<lambda>":
            return _shown(Path(file or "")), _lambdas(file or "", code.co_firstlineno)
        lines, first = inspect.getsourcelines(code)
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
    return _shown(Path(file or "")), [found]


def _lambdas(file: str, line: int) -> list[Tree]:
    tree = ast.parse("".join(linecache.getlines(file)))
    return [node for node in ast.walk(tree) if isinstance(node, ast.Lambda) and node.lineno == line]


def _shown(file: Path) -> str:
    """A file as people call it: from where they stand, or by its name."""
    return str(file.relative_to(Path.cwd())) if file.is_relative_to(Path.cwd()) else file.name
