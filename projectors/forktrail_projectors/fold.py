"""The fold: from (state, record) to changes and a verdict. Pure; the same function live, in replay and in a rebuild.

Order of the checks: readable, known type, not seen before, the run is open, of this run, headers agree, signed as its
type asks, and then the type's rule. What fails before the rule is refused for what it is, and doesn't take its id.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

from forktrail_projectors import authority
from forktrail_projectors.graph.schema import NODE_TABLES
from forktrail_projectors.record import UNREADABLE_HEADERS, LogRecord, Verdict, VerdictKind
from forktrail_projectors.rules.book import RULES, keys
from forktrail_projectors.rules.context import RUN, Context, Refused, number, text
from forktrail_projectors.state import EdgeKey, Key, KeyNotPrefetched, NodeKey, Overlay, Row, Value
from forktrail_schemas.errors import EventUnreadable, InvalidEvent
from forktrail_schemas.events import RunOpened
from forktrail_schemas.events.base import Event
from forktrail_schemas.headers import contradiction
from forktrail_schemas.record import Record
from forktrail_schemas.wire import decode, writer_schema

FOLD_VERSION = 1


@dataclass(frozen=True)
class Decoded:
    """A record with what can be told from it alone.

    Attributes:
        message: the event or record it holds, or None where `fault` says why not.
        fault: the verdict on a record that holds none.
    """

    record: LogRecord
    value_sha256: str
    message: Record | None
    fault: Verdict | None


def decode_record(record: LogRecord) -> Decoded:
    """Read a record; never raises."""
    value = record.value
    if value is None:
        return Decoded(record, "", None, Verdict(record.offset, "unreadable", "no_value"))
    digest = hashlib.sha256(value).hexdigest()
    try:
        return Decoded(record, digest, decode(value), None)
    except EventUnreadable as error:
        verdict = Verdict(record.offset, "unreadable", error.code, error.message)
    except InvalidEvent as error:
        verdict = Verdict(record.offset, "void", error.code, error.message, type=writer_schema(value).name)
    return Decoded(record, digest, None, verdict)


def known_keys(decoded: Decoded) -> Iterable[Key]:
    """Every key that folding this record will read for sure."""
    yield NodeKey("Event", decoded.record.offset)
    yield RUN
    if isinstance(decoded.message, Event):
        yield from keys(decoded.message)
        yield from authority.keys(decoded.record)


def fold(decoded: Decoded, overlay: Overlay) -> Verdict:
    """Fold one record into the overlay; returns its verdict.

    Keys that depend on state are prefetched in rounds until the rule asks for none that is new.
    """
    while True:
        try:
            return _fold_once(decoded, overlay)
        except KeyNotPrefetched as missing:
            overlay.prefetch([missing.key])


def _fold_once(decoded: Decoded, overlay: Overlay) -> Verdict:
    """One attempt: everything is read before anything is put, so a missing key leaves no trace."""
    verdict, context, takes_id = _judge(decoded, overlay)
    nodes: dict[NodeKey, Row] = {NodeKey("Event", verdict.offset): _event_row(decoded, verdict, context)}
    edges: dict[EdgeKey, Row] = {}
    if takes_id:
        identity: Row = {"id": verdict.event_id, "offset": verdict.offset, "value_sha256": decoded.value_sha256}
        nodes[NodeKey("Identity", verdict.event_id)] = identity
    if verdict.kind == "valid":
        assert context is not None
        nodes |= _stamped_nodes(context)
        edges |= _stamped_edges(context)
    for key in nodes:
        overlay.node(*key)
    for key, row in nodes.items():
        overlay.put_node(key, row)
    for edge, row in edges.items():
        overlay.put_edge(edge, row)
    return verdict


def _judge(decoded: Decoded, overlay: Overlay) -> tuple[Verdict, Context[Event] | None, bool]:
    """The verdict, the context its rule ran in (if it came so far), and whether the event takes its id."""
    record, event = decoded.record, decoded.message
    if decoded.fault is not None:
        return decoded.fault, None, False
    if not isinstance(event, Event) or type(event) not in RULES:
        assert event is not None
        return Verdict(record.offset, "unhandled", "no_rule", type=event.TYPE), None, False

    def verdict(kind: VerdictKind, reason: str = "", detail: str = "") -> Verdict:
        return Verdict(record.offset, kind, reason, detail, event.meta.event_id, event.TYPE)

    identity = overlay.node("Identity", event.meta.event_id)
    if identity is not None:
        if identity["value_sha256"] == decoded.value_sha256:
            first = overlay.node("Event", number(identity, "offset"))
            assert first is not None, "a taken id names a record that was folded"
            # A copy of a refused event stays refused, and says why.
            return verdict("duplicate", text(first, "reason"), f"of offset {identity['offset']}"), None, False
        return verdict("void", "id_reused", f"by offset {identity['offset']}"), None, False
    context: Context[Event] | None = None
    try:
        _check_place(event, record, overlay)
        context = Context(event, record.offset, authority.check_signature(event, record, overlay), overlay)
        RULES[type(event)].apply(context)
    except Refused as refusal:
        return verdict("void", refusal.reason, refusal.detail), context, refusal.takes_id
    return verdict("valid"), context, True


def _check_place(event: Event, record: LogRecord, overlay: Overlay) -> None:
    """Refuse what comes before the run is open, after it is closed, for another run, or under headers that lie."""
    run = overlay.node(*RUN)
    if run is None and not isinstance(event, RunOpened):
        raise Refused("run_not_open", takes_id=False)
    if run is not None and run["run_id"] != event.meta.run:
        raise Refused("wrong_run", event.meta.run, takes_id=False)
    if record.headers == UNREADABLE_HEADERS:
        raise Refused("headers_unreadable", takes_id=False)
    header = contradiction(event, record.headers)
    if header is not None:
        raise Refused("header_mismatch", header, takes_id=False)
    if run is not None and run["status"] == "closed":
        raise Refused("run_closed")


def _event_row(decoded: Decoded, verdict: Verdict, context: Context[Event] | None) -> Row:
    """The row of a record in the log's own table: what it says of itself, and what became of it."""
    row: dict[str, Value] = dict.fromkeys(NODE_TABLES["Event"].columns)
    row |= {
        "offset": verdict.offset,
        "id": verdict.event_id,
        "type": verdict.type,
        "verdict": verdict.kind,
        "reason": verdict.reason,
        "detail": verdict.detail,
        "value_sha256": decoded.value_sha256,
        "signer": context.signer.key_id if context and context.signer else None,
    }
    event = decoded.message
    if isinstance(event, Event):
        row |= {
            # The run's own id stays out of rows: the same records give the same digest in a fork.
            "subject": None if event.SUBJECT == "meta.run" else event.subject_id,
            "goal": event.meta.goal,
            "actor_kind": event.meta.actor.kind,
            "actor": event.meta.actor.id,
            "occurred_at": event.meta.occurred_at,
        }
    return row


def _stamped_nodes(context: Context[Event]) -> dict[NodeKey, Row]:
    """Whole rows of the nodes that a rule staged, with the event that made and last changed them."""
    event_id = context.event.meta.event_id
    stamp: Row = {"changed_event": event_id, "changed_offset": context.offset}
    rows: dict[NodeKey, Row] = {}
    for key, values in context.staged_nodes.items():
        before = context.overlay.node(*key)
        if before is None:
            nothing = dict.fromkeys(NODE_TABLES[key.table].columns)
            before = {**nothing, "id": key.id, "created_event": event_id, "created_offset": context.offset}
        unknown = values.keys() - before.keys()
        assert not unknown, f"{key.table} has no column {sorted(unknown)}"
        rows[key] = {**before, **values, **stamp}
    return rows


def _stamped_edges(context: Context[Event]) -> dict[EdgeKey, Row]:
    """The relations that a rule staged, and the event's own: what caused it and what it produced."""
    stamp: Row = {"created_event": context.event.meta.event_id, "created_offset": context.offset}
    edges: dict[EdgeKey, Row] = dict.fromkeys(context.staged_edges, stamp)
    event = NodeKey("Event", context.offset)
    for cause in context.event.meta.causes:
        identity = context.overlay.node("Identity", cause)
        if identity is not None:  # a cause outside this log, or refused for what it is, has no node to point from
            edges[EdgeKey("CAUSED", NodeKey("Event", number(identity, "offset")), event)] = {}
    for key in context.staged_nodes:
        if context.overlay.node(*key) is None:
            edges[EdgeKey("PRODUCED", event, key)] = {}
    return edges
