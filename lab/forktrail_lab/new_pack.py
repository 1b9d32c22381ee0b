"""Makes the folder of a new pack from the template in `pack_template/`."""

from __future__ import annotations

import keyword
import re
import sys
from importlib.util import find_spec
from pathlib import Path

from forktrail_schemas.errors import InvalidInput

TEMPLATE = Path(__file__).parent / "pack_template"
_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_NAME_LENGTH_MAX = 40
_SUFFIX = ".txt"


def make_pack(name: str, parent: Path) -> Path:
    """Make the folder `name` in `parent`; returns it.

    Raises:
        InvalidInput: the name is none, is taken by a module, or there is such a folder.
    """
    module = name.replace("-", "_")
    if not _NAME.fullmatch(name) or len(name) > _NAME_LENGTH_MAX or keyword.iskeyword(module):
        raise InvalidInput(f"{name!r} can't be a pack's name", hint="a to z, 0 to 9 and -, a letter first, 40 at most")
    if module in sys.stdlib_module_names or find_spec(module) is not None:
        raise InvalidInput(f"Python has a module {module!r} already", hint="choose a name of your own")
    folder = parent / name
    if folder.exists():
        raise InvalidInput(f"{folder} is there already", hint="choose another name, or --to another folder")
    for source in sorted(TEMPLATE.rglob(f"*{_SUFFIX}")):
        target = folder / _target(source.relative_to(TEMPLATE), module)
        target.parent.mkdir(parents=True, exist_ok=True)
        text = source.read_text(encoding="utf-8")
        target.write_text(text.replace("{{name}}", name).replace("{{module}}", module), encoding="utf-8")
    return folder


def _target(source: Path, module: str) -> Path:
    """Where a file of the template goes: `.txt` hides what isn't this project's own Python."""
    parts = [module if part == "module" else part for part in source.parts]
    plain = parts[-1].removesuffix(_SUFFIX)
    return Path(*parts[:-1], plain if "." in plain else parts[-1])
