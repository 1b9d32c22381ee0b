"""The check of a folder of schemas against the last release, and of each version against the one before.

Beside the rules of evolution.py:

    edited      a released version was changed where it stands; a change is a new version
    withdrawn   a released version is gone; its records are on logs for ever
    numbering   versions aren't 1, 2, 3…, or a file's name says another version than the file
    collision   two versions have one fingerprint, so that their records can't be told apart
    example     an upcaster has no example
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path

from forktrail_schemas.compatibility.evolution import Break, breaks
from forktrail_schemas.compatibility.snapshot import Published
from forktrail_schemas.schema_types import short_name

# The short name of a type, and the version that an upcaster starts from.
Upcast = tuple[str, int]


def problems(
    schemas: Sequence[Published], released: Sequence[Published], upcasts: Collection[Upcast], examples: Path
) -> list[str]:
    """What is wrong with schemas, one line each: the type, its version, the field, the rule, and what to do.

    Args:
        schemas: of the folder.
        released: of the last release.
        upcasts: for which there are upcasters.
        examples: folder of upcasters' examples, `<type>.v<version>.json`.
    """
    found = [*_against_release(schemas, released), *_numbering(schemas), *_collisions(schemas)]
    for earlier, later in _successions(schemas):
        settled = (earlier.name, earlier.version) in upcasts
        for broken in breaks(earlier, later):
            if not (settled and broken.settled_by_upcaster):
                advice = (
                    f"write an upcaster from version {earlier.version}" if broken.settled_by_upcaster else _NEW_TYPE
                )
                found.append(_line(later, broken, advice))
        if settled and not (examples / f"{earlier.name}.v{earlier.version}.json").exists():
            where = f"{earlier.name}.v{earlier.version}.json"
            found.append(_line(earlier, Break("example", "", f"its upcaster has none in {where}"), "add one"))
    return found


def _against_release(schemas: Sequence[Published], released: Iterable[Published]) -> Iterator[str]:
    here = {(schema.type.name, schema.version): schema for schema in schemas}
    for old in released:
        now = here.get((old.type.name, old.version))
        if now is None:
            yield _line(old, Break("withdrawn", "", "it was released and is gone"), f"put {_kept_as(old)} back")
        elif now.sha256 != old.sha256:
            for broken in breaks(old, now):
                yield _line(now, broken, "a released version stays as it is")
            what = "it was released and isn't the same any more"
            advice = f"keep the released text as {_kept_as(old)}, and make the change version {_next(schemas, old)}"
            yield _line(now, Break("edited", "", what), advice)


def _numbering(schemas: Sequence[Published]) -> Iterator[str]:
    for versions in _by_type(schemas):
        numbers = [schema.version for schema in versions]
        if numbers != list(range(1, len(versions) + 1)):
            what = f"there are the versions {', '.join(map(str, numbers))}"
            yield _line(versions[-1], Break("numbering", "", what), "number them from 1 without gaps")
            continue
        for schema in versions:
            name = Path(_kept_as(schema)).name if schema.version < len(versions) else f"{schema.name}.avsc"
            if Path(schema.file).name != name:
                yield _line(schema, Break("numbering", "", f"it stands in {schema.file}"), f"name the file {name}")


def _collisions(schemas: Sequence[Published]) -> Iterator[str]:
    first: dict[str, Published] = {}
    for schema in schemas:
        other = first.setdefault(schema.fingerprint, schema)
        if other is not schema:
            what = f"{other.name} version {other.version} has the fingerprint {schema.fingerprint} too"
            yield _line(schema, Break("collision", "", what), "change the name of a field with its meaning")


def _successions(schemas: Sequence[Published]) -> Iterator[tuple[Published, Published]]:
    for versions in _by_type(schemas):
        yield from pairwise(versions)


def _by_type(schemas: Sequence[Published]) -> list[list[Published]]:
    """The versions of each type, in order."""
    names = dict.fromkeys(schema.type.name for schema in schemas)
    of_type = [[schema for schema in schemas if schema.type.name == name] for name in names]
    return [sorted(versions, key=lambda schema: schema.version) for versions in of_type]


def _kept_as(schema: Published) -> str:
    """The file in which an earlier version is kept."""
    return f"{Path(schema.file).parent.as_posix()}/{short_name(schema.type.name)}.v{schema.version}.avsc"


def _next(schemas: Sequence[Published], schema: Published) -> int:
    return 1 + max(other.version for other in schemas if other.type.name == schema.type.name)


def _line(schema: Published, broken: Break, advice: str) -> str:
    field = f", field {broken.field}" if broken.field else ""
    return f"{schema.name} version {schema.version}{field}: {broken.rule}: {broken.what}; {advice}"


_NEW_TYPE = "give what is different a type of another name"
