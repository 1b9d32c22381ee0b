"""Reads a value of any published version of a type as its current version.

A record is checked as what it was written as, then brought forward version by version: by the named upcaster where
there is one (upcasters.py), else by Avro's schema resolution, which knows defaults, aliases and promotions.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from forktrail_schemas.body import Body, body_of, resolved, validated
from forktrail_schemas.catalog import Schema, class_of, published, resolving_codec
from forktrail_schemas.record import Record
from forktrail_schemas.upcasters import UPCASTERS

Step = Callable[[Record], Record]
# From a value and where its body begins.
ReadVersion = Callable[[bytes, int], Record]


def version_reader(schema: Schema) -> ReadVersion:
    """A reader of values that were written under a published schema, as records of their type's current version.

    It raises what Body.read raises.
    """
    body = Body(schema)
    later = published()[schema.name][schema.version :]
    steps = [_step(class_of(version.name, version.version - 1), version) for version in later]

    def read(value: bytes, at: int) -> Record:
        record = body.read(value, at)
        for step in steps:
            record = step(record)
        return record

    return read if steps else body.read


@cache
def _step(cls: type[Record], following: Schema) -> Step:
    """What makes a record of the next version of one of this class."""
    into = class_of(following.name, following.version)
    if cls in UPCASTERS:
        upcast = UPCASTERS[cls]
        return lambda record: validated(into, upcast(record))
    body = body_of(cls)
    codec = resolving_codec(following.name, following.version)
    return lambda record: validated(into, resolved(body.schema, body.write(record), codec))
