"""`python -m forktrail_schemas.compatibility`: check the schemas of this checkout, or record them as released."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from forktrail_schemas.catalog import schema_of
from forktrail_schemas.compatibility.check import problems
from forktrail_schemas.compatibility.snapshot import read_folder, read_release, write_release
from forktrail_schemas.errors import ForktrailError
from forktrail_schemas.generate import AVSC, PACKAGE
from forktrail_schemas.schema_types import short_name
from forktrail_schemas.upcasters import UPCASTERS

RELEASED = PACKAGE.parent / "released.jsonl"
EXAMPLES = PACKAGE.parent / "upcasts"


def main(arguments: Sequence[str], avsc: Path = AVSC, released: Path = RELEASED, examples: Path = EXAMPLES) -> int:
    """Print what is wrong, one line each, and return 1 if anything is; with `--release` record what is right."""
    parser = argparse.ArgumentParser(prog="python -m forktrail_schemas.compatibility", description=main.__doc__)
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--check", action="store_true", help="compare avsc/ with the last release")
    action.add_argument("--release", metavar="NAME", help="check, then record avsc/ as released under this name")
    wanted = parser.parse_args(arguments)
    try:
        schemas = read_folder(avsc)
        release, before = read_release(released)
    except ForktrailError as error:
        print(error, file=sys.stderr)
        return 1
    upcasts = {(short_name(cls.TYPE), schema_of(cls).version) for cls in UPCASTERS}
    found = problems(schemas, before, upcasts, examples)
    for line in found:
        print(f"{line} (released: {release})", file=sys.stderr)
    if wanted.release and not found:
        write_release(released, wanted.release, schemas)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
