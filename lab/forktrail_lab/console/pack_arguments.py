"""Packs as commands take them: by module, several as one."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from forktrail_behaviors.pack import Pack, load_pack


def add_packs(parser: argparse.ArgumentParser) -> None:
    """Modules that hold packs, as `packs`."""
    parser.add_argument(
        "--pack",
        dest="packs",
        action="append",
        required=True,
        metavar="MODULE",
        help="Python module that holds PACK, or module:attribute; may be given several times",
    )


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
