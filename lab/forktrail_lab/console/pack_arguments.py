"""Packs as commands take them: by module, several as one."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from forktrail_behaviors.models.config import load_models
from forktrail_behaviors.pack import Pack
from forktrail_behaviors.packs import load_pack


def add_packs(parser: argparse.ArgumentParser) -> None:
    """Modules that hold packs, as `packs`."""
    parser.add_argument(
        "--pack",
        dest="packs",
        action="append",
        required=True,
        metavar="PACK",
        help="an installed pack's name (`forktrail pack list`), a module that holds PACK, or module:attribute; may be"
        " given several times",
    )


def add_models(parser: argparse.ArgumentParser) -> None:
    """The file that says which models answer, as `models`."""
    parser.add_argument(
        "--models",
        type=Path,
        metavar="FILE",
        help="file that says which models answer under which names (default: models.toml in FORKTRAIL_HOME, if there)",
    )


def with_models(pack: Pack, file: Path | None, home: Path, environ: Mapping[str, str]) -> Pack:
    """The pack with the models that a file names, each in the place of the pack's of that name.

    Raises:
        NotFound: there is no such file.
        InvalidInput: it isn't as it should be.
    """
    default = home / "models.toml"
    if file is None and not default.exists():
        return pack
    configured = load_models(file or default, environ)
    names = {model.name for model in configured}
    return replace(pack, models=[*configured, *(model for model in pack.models if model.name not in names)])


def loaded(names: Sequence[str]) -> Pack:
    """The packs of these names, as one.

    Raises:
        NotFound: there is no such module.
        InvalidInput: it holds no pack, or the pack is refused.
    """
    packs = [load_pack(name) for name in names]
    if len(packs) == 1:
        return packs[0]
    return Pack(
        "+".join(pack.name for pack in packs),
        [one for pack in packs for one in pack.objects],
        [one for pack in packs for one in pack.relations],
        behaviors=[one for pack in packs for one in pack.behaviors],
        tools=[one for pack in packs for one in pack.tools],
        models=[one for pack in packs for one in pack.models],
    )
