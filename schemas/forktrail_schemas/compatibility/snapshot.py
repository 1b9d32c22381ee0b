"""The schemas of a folder, and those of the last release as one file holds them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from forktrail_schemas.errors import Corruption, InvalidInput
from forktrail_schemas.schema_limits import parse_record
from forktrail_schemas.schema_text import (
    BadSchema,
    Json,
    read_json,
    schema_fingerprint,
    schema_sha256,
    without,
    writers_schema,
)
from forktrail_schemas.schema_types import RecordType, short_name

SHARED = "shared"


@dataclass(frozen=True)
class Published:
    """One version of a type, as a file gives it.

    Attributes:
        file: its path below `avsc/`.
        schema: its JSON, without docs.
    """

    file: str
    schema: Json
    type: RecordType

    @property
    def name(self) -> str:
        """The type's name without its namespace."""
        return short_name(self.type.name)

    @property
    def version(self) -> int:
        """The version that it says it is."""
        return int(self.type.attributes.get("version", 1))

    @property
    def sha256(self) -> str:
        """Its identity."""
        return schema_sha256(self.schema)

    @property
    def fingerprint(self) -> str:
        """What its records begin with, hex."""
        return schema_fingerprint(writers_schema(self.schema)).hex()


def read_folder(avsc: Path) -> list[Published]:
    """Every version of every type in a folder of families, by file name; not what is only embedded in them.

    Raises:
        InvalidInput: a file is no schema.
    """
    paths = sorted(path for path in avsc.glob("*/*.avsc") if path.parent.name != SHARED)
    return [_read(path.relative_to(avsc).as_posix(), path.read_text(encoding="utf-8")) for path in paths]


def read_release(file: Path) -> tuple[str, list[Published]]:
    """The name of the last release and its schemas.

    Raises:
        Corruption: the file isn't as `write_release` writes it.
    """
    try:
        head, *lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
        found = [_read(line["file"], json.dumps(line["schema"])) for line in lines]
        if [version.sha256 for version in found] != [line["sha256"] for line in lines]:
            raise ValueError("a schema isn't the one of its digest")
        return str(head["release"]), found
    except (ValueError, KeyError, TypeError) as error:
        raise Corruption(f"{file} is no record of a release: {error}", hint="restore it from the repository") from error


def write_release(file: Path, release: str, schemas: Sequence[Published]) -> None:
    """Record schemas as released, one a line."""
    lines: Iterable[Json] = (
        {"release": release},
        *({"file": schema.file, "sha256": schema.sha256, "schema": schema.schema} for schema in schemas),
    )
    text = "".join(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n" for line in lines)
    file.write_text(text, encoding="utf-8")


def _read(file: str, text: str) -> Published:
    try:
        schema = read_json(text)
        found = Published(file, without(schema, "doc"), parse_record(schema))
        if type(found.type.attributes.get("version", 1)) is not int:
            raise BadSchema("its version is no number")
        return found
    except BadSchema as error:
        raise InvalidInput(f"{file} is no schema: {error}", hint="mend the file") from error
