"""The digest of the code that a behavior is made of, by which a replay knows that it changed.

The code is the text of the behavior's module and of all modules of the same top-level package that it imports, directly
or not, their packages' own included. For a module outside any package it is that file and those beside it. Nothing is
executed to find it, and what other packages hold isn't part of it. Of a package that is called `prompts` every file
counts: another prompt is another behavior.
"""

from __future__ import annotations

import ast
import hashlib
import inspect
import sys
import tokenize
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from forktrail_schemas.errors import InvalidInput
from forktrail_schemas.json_text import canonical_json

FILES_CACHED = 4_096
_PACKAGE_FILE = "__init__.py"
_PROMPTS = "prompts"


def code_sha256(source: Callable[..., Any] | type) -> str:
    """The digest of a behavior's code, as hex; the same wherever its files lie and however their lines end.

    Raises:
        InvalidInput: the source of its module, or of one that it imports, can't be read.
    """
    name, file = _module_of(source)
    parts = name.split(".")
    root, top = file.parent, ""
    levels = len(parts) if file.name == _PACKAGE_FILE else len(parts) - 1
    if levels and file.parents[levels - 1].name == parts[0]:
        root, top = file.parents[levels], parts[0]
    else:
        name = file.stem
    found: dict[str, str] = {}
    waiting = [name]
    while waiting:
        one = waiting.pop()
        path = _file_of(one, root, top)
        if one in found or path is None:
            continue
        read = _read(path)
        found[one] = read.sha256
        if path.name == _PACKAGE_FILE and one.rpartition(".")[2] == _PROMPTS:
            found |= {
                f"{one}/{file.name}": hashlib.sha256(file.read_bytes()).hexdigest() for file in _texts(path.parent)
            }
        waiting += read.names(one, is_package=path.name == _PACKAGE_FILE)
    return hashlib.sha256(canonical_json(sorted([one, digest] for one, digest in found.items())).encode()).hexdigest()


@dataclass(frozen=True)
class _Import:
    """An import statement: how many dots, which module, and which names of it."""

    level: int
    module: str
    names: tuple[str, ...]


@dataclass(frozen=True)
class _Read:
    """What is kept of a file: the digest of its text, and what it imports."""

    sha256: str
    imports: tuple[_Import, ...]

    def names(self, module: str, *, is_package: bool) -> Iterator[str]:
        """The modules that may be imported by a module of this text; some may be no modules, but names in one."""
        package = module.split(".") if is_package else module.split(".")[:-1]
        yield from _with_packages(".".join(package))
        for one in self.imports:
            if one.level > len(package):
                base = one.module.split(".") if one.module else []
            else:
                base = package[: len(package) - one.level + 1] if one.level else []
                base = [*base, *(one.module.split(".") if one.module else [])]
            yield from _with_packages(".".join(base))
            yield from (".".join([*base, name]) for name in one.names if name != "*")


def _with_packages(name: str) -> Iterator[str]:
    """A module and the packages that it lies in, all of which its import executes."""
    parts = name.split(".") if name else []
    return (".".join(parts[: count + 1]) for count in range(len(parts)))


def _module_of(source: Callable[..., Any] | type) -> tuple[str, Path]:
    """The name and file of the module that something was written in."""
    source = inspect.unwrap(source)  # not the file of its decorator
    module = sys.modules.get(source.__module__)
    try:
        file = inspect.getsourcefile(source)
    except TypeError:
        file = None
    if file is None or not Path(file).is_file():
        raise InvalidInput(
            f"the source of {source.__name__} can't be read", hint="write behaviors in the file of a module"
        )
    name = source.__module__
    spec = getattr(module, "__spec__", None)
    if name == "__main__" and spec is not None:  # `python -m` keeps the name there
        name = spec.name
    return name, Path(file).absolute()  # a link to a package leads to another name, and away from what it imports


def _file_of(name: str, root: Path, top: str) -> Path | None:
    """The file of a module, where it is one that counts."""
    if top and name.partition(".")[0] != top:
        return None
    path = root.joinpath(*name.split("."))
    for file in (path / _PACKAGE_FILE, path.with_name(f"{path.name}.py")):
        if file.is_file():
            return file
    return None


def _texts(folder: Path) -> list[Path]:
    """The files of a folder that are no Python."""
    return sorted(file for file in folder.iterdir() if file.is_file() and file.suffix not in (".py", ".pyc"))


def _read(path: Path) -> _Read:
    state = path.stat()
    return _read_at(path, state.st_mtime_ns, state.st_size)


@lru_cache(FILES_CACHED)
def _read_at(path: Path, mtime_ns: int, size: int) -> _Read:
    """Read a file, once for each state that it is in."""
    try:
        with tokenize.open(path) as file:
            text = file.read()
        tree = ast.parse(text)
    except (SyntaxError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{path.name} is no Python source: {error}") from error
    imports: list[_Import] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            imports += [_Import(0, alias.name, ()) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            imports.append(_Import(node.level, node.module or "", tuple(alias.name for alias in node.names)))
    return _Read(hashlib.sha256(text.encode()).hexdigest(), tuple(imports))
