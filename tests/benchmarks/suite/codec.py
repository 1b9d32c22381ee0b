"""The codec alone: events built from plain fields and encoded, and decoded again, with every field checked both ways.

Second side: fastavro on the same fields and bytes, unchecked.
"""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks import bare
from benchmarks.figures import Figure, Reading, events_of, rate
from benchmarks.stage import Stage
from benchmarks.workload import BULK, Workload, tests_for
from forktrail_schemas.wire import HEADER_BYTES, build, decode, encode, fingerprint_of

FIGURES = (
    Figure("codec.encode", "events/s", "high", against="fastavro writes the fields"),
    Figure("codec.decode", "events/s", "high", against="fastavro reads the fields"),
)


def prepare(stage: Stage) -> None:
    """Nothing."""


def measure(stage: Stage) -> Iterator[Reading]:
    """Encode and decode the same events once."""
    count = stage.size(50_000, 5_000)
    drafts = list(Workload(BULK, tests=tests_for(count)).drafts(count))
    codecs = bare.codecs()
    for draft in {draft.cls: draft for draft in drafts}.values():
        decode(encode(build(draft.cls, draft.fields)))
    with stage.timed("codec.encode") as encoding:
        values = [encode(build(draft.cls, draft.fields)) for draft in drafts]
    fingerprints = [fingerprint_of(value) for value in values]
    with stage.timed_second_side() as writing:
        bodies = [
            bare.write_fields(draft.fields, codecs[fingerprint])
            for draft, fingerprint in zip(drafts, fingerprints, strict=True)
        ]
    stage.expect("the encoded bodies", [value[HEADER_BYTES:] for value in values], bodies)
    with stage.timed("codec.decode") as decoding:
        decoded = [decode(value) for value in values]
    with stage.timed_second_side() as reading:
        for value in values:
            bare.read_fields(value, codecs)
    stage.expect("the decoded events", decoded, [build(draft.cls, draft.fields) for draft in drafts])
    size = events_of(count)
    yield Reading("codec.encode", rate(count, encoding.seconds), size, rate(count, writing.seconds))
    yield Reading("codec.decode", rate(count, decoding.seconds), size, rate(count, reading.seconds))
