"""Where packs come from: installed distributions, modules, and folders that hold one.

A distribution says in its pyproject.toml which packs it brings:

    [project.entry-points."forktrail.packs"]
    diligence = "my_package:PACK"
"""

from __future__ import annotations

import importlib
import sys
import tomllib
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any

from forktrail_behaviors.pack import Pack
from forktrail_schemas.errors import ForktrailError, InvalidInput, NotFound

GROUP = "forktrail.packs"
ATTRIBUTE = "PACK"
_PROJECT = "pyproject.toml"


@dataclass(frozen=True)
class Installed:
    """An installed pack.

    Attributes:
        place: module and attribute.
        distribution: that brings it, with its version.
    """

    name: str
    place: str
    distribution: str


def installed_packs() -> list[Installed]:
    """The packs that installed distributions bring, by name."""
    found = sorted(_entry_points().items())
    return [Installed(name, one.value, _distribution(one)) for name, entries in found for one in entries]


def load_pack(name: str) -> Pack:
    """Load a pack by the name that it is installed under, by the module that holds it as `PACK`, by
    `module:attribute`, or by a folder whose pyproject.toml names one. A module beside one is found too.

    Raises:
        NotFound: there is no such pack, module, attribute or folder.
        InvalidInput: it is no pack, its import fails, or the pack is refused.
    """
    entries = _entry_points().get(name, [])
    if len(entries) > 1:
        told = " and ".join(f"{one.value} of {_distribution(one)}" for one in entries)
        raise InvalidInput(f"two packs are installed as {name!r}: {told}", hint="name one by its module")
    if entries:
        return _loaded(entries[0].value)
    folder = Path(name)
    if "/" in name or name == ".":
        return _of_folder(folder)
    _look_in(Path.cwd())
    return _loaded(name)


def _of_folder(folder: Path) -> Pack:
    """The one pack of a project that needn't be installed."""
    try:
        project = tomllib.loads((folder / _PROJECT).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise NotFound(f"{folder} holds no {_PROJECT}", hint="`forktrail pack new` makes such a folder") from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InvalidInput(f"{folder / _PROJECT} can't be read: {error}") from None
    told: Any = project.get("project", {}).get("entry-points", {}).get(GROUP, {})
    if not isinstance(told, Mapping) or len(told) != 1:
        raise InvalidInput(
            f"{folder / _PROJECT} names {len(told) if isinstance(told, Mapping) else 'no'} packs",
            hint=f'put one under [project.entry-points."{GROUP}"]',
        )
    (place,) = told.values()
    source = folder / "src"
    _look_in((source if source.is_dir() else folder).absolute())
    return _loaded(str(place))


def _loaded(place: str) -> Pack:
    module_name, _, attribute = place.partition(":")
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is not None and (module_name == error.name or module_name.startswith(f"{error.name}.")):
            known = ", ".join(_entry_points()) or "none"
            raise NotFound(
                f"there is no pack or module {module_name!r}",
                hint=f"installed packs: {known}; a module is named as Python imports it",
            ) from error
        raise InvalidInput(f"{module_name} can't be imported: {error}") from error
    except ForktrailError:
        raise  # a pack that is refused
    except Exception as error:  # what a module of the user's raises may be anything
        at = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{at.filename}:{at.lineno}"
        raise InvalidInput(f"{module_name} can't be imported: {type(error).__name__}: {error} ({where})") from error
    pack: Any = getattr(module, attribute or ATTRIBUTE, None)
    if pack is None:
        hint = "PACK = Pack(…) makes one"
        if (Path.cwd() / module_name / _PROJECT).is_file():
            hint = f"the folder is named ./{module_name}"
        raise NotFound(f"{module_name} has no {attribute or ATTRIBUTE}", hint=hint)
    if not isinstance(pack, Pack):
        raise InvalidInput(f"{place} is no Pack: its type is {type(pack).__name__}")
    return pack


def _look_in(folder: Path) -> None:
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))


def _entry_points() -> dict[str, list[EntryPoint]]:
    """The entry points of packs by name; of each place one, however often Python finds it."""
    found: dict[str, list[EntryPoint]] = {}
    for one in entry_points(group=GROUP):
        known = found.setdefault(one.name, [])
        if one.value not in [other.value for other in known]:
            known.append(one)
    return found


def _distribution(entry: EntryPoint) -> str:
    return f"{entry.dist.name} {entry.dist.version}" if entry.dist is not None else "unknown"
