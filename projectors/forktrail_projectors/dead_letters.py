"""Dead letters: the records of a run that were refused for what they are, found in the graph and made into letters.

That is: unreadable ones, those that no rule handles, and void ones that didn't take their id. What was refused for when
it came, a second review say, is no dead letter: its verdict is all there is to it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from enum import StrEnum

from forktrail_projectors.record import UNREADABLE_HEADERS, LogRecord, Verdict, VerdictKind
from forktrail_projectors.state import NodeKey, Value
from forktrail_projectors.view import GraphView
from forktrail_schemas.events import DeadLetter
from forktrail_schemas.wire import build

# Key, headers and value together; more, with the rest of a letter, wouldn't fit into a record.
CONTENT_BYTES_MAX = 900_000
DETAIL_LENGTH_MAX = 4_000
KINDS: tuple[VerdictKind, ...] = ("unreadable", "unhandled", "void")
_PAGE_OFFSETS = 50_000
_REFUSED = """
MATCH (e:Event)
WHERE e.offset >= $start AND e.offset < $until AND e.verdict IN $kinds
RETURN e.offset, e.verdict, e.reason, e.detail, e.id, e.type
ORDER BY e.offset
"""
_SAME_BYTES = """
MATCH (e:Event)
WHERE e.offset > $offset AND e.value_sha256 = $sha256
RETURN e.offset, e.verdict
ORDER BY e.offset
"""
_VALUES = """
MATCH (e:Event)
WHERE e.offset >= $start AND e.offset < $until AND e.verdict IN $kinds AND e.value_sha256 IS NOT NULL
RETURN e.offset, e.value_sha256
"""
_VALID_BYTES = """
MATCH (e:Event) WHERE e.verdict = 'valid' AND e.value_sha256 IN $values
RETURN e.value_sha256, max(e.offset)
"""
_LETTERS_A_QUERY = 1_000


class Cure(StrEnum):
    """What it takes for a dead letter's bytes to count when they are sent again."""

    LATER = "later"  # what the run lacked then, it may have now
    SCHEMA = "schema"  # a declaration of its schema
    SIGNATURE = "signature"  # another signature, and none but right headers
    NONE = "none"  # it is refused for what it says


# By reason; what isn't named here is refused for what it says.
_CURES = {
    "unknown_key": Cure.LATER,
    "run_not_open": Cure.LATER,
    "unknown_schema": Cure.SCHEMA,
    "actor_mismatch": Cure.SIGNATURE,
    "bad_signature": Cure.SIGNATURE,
    "headers_unreadable": Cure.SIGNATURE,
    "key_revoked": Cure.SIGNATURE,
    "role_missing": Cure.SIGNATURE,
    "unsigned": Cure.SIGNATURE,
}


def cure_of(reason: str) -> Cure:
    """What it takes for a record to count that was refused for this reason."""
    return _CURES.get(reason, Cure.NONE)


def sent_again(graph: GraphView, record: LogRecord) -> list[tuple[int, str]]:
    """Offsets after a record's at which the same bytes lie, with their verdicts; none for a record without a value.

    Looks through all events of the graph.
    """
    if record.value is None:
        return []
    bounds: dict[str, Value] = {"offset": record.offset, "sha256": hashlib.sha256(record.value).hexdigest()}
    return [(int(str(offset)), str(verdict)) for offset, verdict in graph.query(_SAME_BYTES, bounds).rows]


def valid_again(graph: GraphView, offsets: Iterable[int]) -> dict[int, int]:
    """By offset of a dead letter, a later one at which the same bytes lie and are valid; others are left out.

    Looks through all events of the graph, once for every thousand letters.
    """
    letters = sorted(offsets)
    found: dict[int, int] = {}
    for start in range(0, len(letters), _LETTERS_A_QUERY):
        some = set(letters[start : start + _LETTERS_A_QUERY])
        bounds: dict[str, Value] = {"start": min(some), "until": max(some) + 1, "kinds": KINDS}
        values = {int(str(offset)): str(value) for offset, value in graph.query(_VALUES, bounds).rows}
        asked: dict[str, Value] = {"values": tuple(sorted({values[offset] for offset in some & values.keys()}))}
        valid = {str(value): int(str(offset)) for value, offset in graph.query(_VALID_BYTES, asked).rows}
        found |= {
            offset: valid[values[offset]] for offset in some & values.keys() if valid.get(values[offset], -1) > offset
        }
    return found


def dead_verdicts(graph: GraphView, start: int, until: int) -> Iterator[Verdict]:
    """The verdicts on the dead letters among the offsets [start, until), in order.

    Raises:
        GraphError: the graph can't answer.
    """
    for first in range(start, until, _PAGE_OFFSETS):
        bounds: dict[str, Value] = {"start": first, "until": min(until, first + _PAGE_OFFSETS), "kinds": KINDS}
        verdicts = [_verdict(row) for row in graph.query(_REFUSED, bounds).rows]
        takers = graph.nodes({NodeKey("Identity", verdict.event_id) for verdict in verdicts if verdict.event_id})
        for verdict in verdicts:
            taker = takers.get(NodeKey("Identity", verdict.event_id))
            if verdict.kind != "void" or taker is None or taker["offset"] != verdict.offset:
                yield verdict


def letter_of(run: str, record: LogRecord, verdict: Verdict, published_at: int) -> DeadLetter:
    """The letter about a record.

    Args:
        published_at: microseconds since 1970 UTC.
    """
    value = record.value or b""
    headers = () if record.headers == UNREADABLE_HEADERS else record.headers
    size = len(value) + len(record.key or b"") + sum(len(name.encode()) + len(text or b"") for name, text in headers)
    left_out = size > CONTENT_BYTES_MAX or any(len(name) > DETAIL_LENGTH_MAX for name, _ in headers)
    fields = {
        "run": run,
        "offset": record.offset,
        "verdict": verdict.kind,
        "reason": verdict.reason,
        "detail": _text(verdict.detail),
        "type": _text(verdict.type),
        "event_id": _text(verdict.event_id),
        "left_out": left_out,
        "key": None if left_out else record.key,
        "headers": [] if left_out else [{"name": _text(name), "value": text} for name, text in headers],
        "value": None if left_out else record.value,
        "value_bytes": len(value),
        "value_sha256": hashlib.sha256(value).hexdigest(),
        "recorded_at": record.timestamp_ms * 1000,
        "published_at": published_at,
    }
    return build(DeadLetter, fields)


def _verdict(row: tuple[object, ...]) -> Verdict:
    offset, kind, reason, detail, event_id, type = row
    assert isinstance(offset, int)
    return Verdict(offset, _kind(kind), *(str(value or "") for value in (reason, detail, event_id, type)))


def _kind(value: object) -> VerdictKind:
    return next(kind for kind in KINDS if kind == value)


def _text(text: str) -> str:
    return text.replace("\x00", "\\x00")[:DETAIL_LENGTH_MAX]
