"""The fold: from (state, record) to changes and a verdict. Pure; the same function live, in replay and in a rebuild.

Order of the checks: readable, known type, not seen before, the run is open, of this run, headers agree, signed as its
type asks, of the worker that holds the run and of an execution that goes on, within the log's budgets, then the type's
rule, and at last that no policy holds what it changes. What is refused for what it is doesn't take its id.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterable
from typing import NamedTuple

from forktrail_projectors import authority
from forktrail_projectors.record import UNREADABLE_HEADERS, LogRecord, Verdict
from forktrail_projectors.rules.book import RULES, keys
from forktrail_projectors.rules.context import RUN, Context, Refused, number, text
from forktrail_projectors.rules.executions import check_work
from forktrail_projectors.rules.policies import check_policies
from forktrail_projectors.rules.support import check_log_budgets
from forktrail_projectors.state import Key, NodeKey, Overlay, Row, RowSource, Value
from forktrail_schemas.declared import ForeignRecord
from forktrail_schemas.errors import EventUnreadable, InvalidEvent
from forktrail_schemas.events import RunOpened
from forktrail_schemas.events.base import Event
from forktrail_schemas.headers import contradiction
from forktrail_schemas.record import Record
from forktrail_schemas.wire import decode, decode_declared, foreign_fingerprint, writer_schema

FOLD_VERSION = 4


class Decoded(NamedTuple):
    """A record with what can be told from it alone.

    Attributes:
        message: the event or record it holds, or None where `fault` says why not.
        fault: the verdict on a record that holds none.
        foreign: hex fingerprint of the schema it was written with, where none that is built in has it; what such a
            record holds depends on what its run declared before it.
    """

    record: LogRecord
    value_sha256: str
    message: Record | ForeignRecord | None
    fault: Verdict | None
    foreign: str | None = None


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
    return Decoded(record, digest, None, verdict, foreign_fingerprint(value))


def _declared_record(decoded: Decoded, schema: Row) -> Decoded:
    """Read a record by the schema that its run declared."""
    record, name = decoded.record, text(schema, "name")
    try:
        return decoded._replace(message=decode_declared(record.value or b"", text(schema, "text")), fault=None)
    except EventUnreadable as error:
        return decoded._replace(fault=Verdict(record.offset, "unreadable", error.code, error.message, type=name))
    except InvalidEvent as error:
        return decoded._replace(fault=Verdict(record.offset, "void", error.code, error.message, type=name))


def event_of(record: LogRecord, rows: RowSource) -> Event | None:
    """The event that a record holds, as its fold read it; None where it holds none.

    Args:
        rows: of a graph that has folded the record; whether a foreign schema was declared by then is its affair.
    """
    decoded = decode_record(record)
    if decoded.foreign is not None and (schema := rows.node("Schema", decoded.foreign)) is not None:
        decoded = _declared_record(decoded, schema)
    return decoded.message if isinstance(decoded.message, Event) else None


def known_keys(decoded: Decoded) -> Iterable[Key]:
    """The keys that folding this record reads for sure and that no other record is likely to have read."""
    if isinstance(decoded.message, Event):
        yield from keys(decoded.message)
        yield from authority.keys(decoded.record)
    elif decoded.foreign is not None:
        yield NodeKey("Schema", decoded.foreign)


def fold(decoded: Decoded, overlay: Overlay) -> Verdict:
    """Fold one record into the overlay; returns its verdict."""
    if decoded.foreign is not None:
        schema = overlay.node("Schema", decoded.foreign)
        if schema is not None:
            decoded = _declared_record(decoded, schema)
    verdict, context, takes_id = _judge(decoded, overlay)
    if verdict.kind == "valid":
        assert context is not None
        _put_staged(context, overlay)
    if takes_id:
        identity: Row = {"id": verdict.event_id, "offset": verdict.offset, "depth": context.depth if context else 0}
        overlay.put_new_node("Identity", verdict.event_id, identity)
    overlay.put_new_node("Event", verdict.offset, _event_row(decoded, verdict, context))
    return verdict


def _judge(decoded: Decoded, overlay: Overlay) -> tuple[Verdict, Context[Event] | None, bool]:
    """The verdict, the context its rule ran in (if it came so far), and whether the event takes its id."""
    record, event = decoded.record, decoded.message
    if decoded.fault is not None:
        return decoded.fault, None, False
    if isinstance(event, ForeignRecord):
        event_id = event.meta.event_id if event.meta else ""
        return Verdict(record.offset, "unhandled", "no_rule", "", event_id, event.type), None, False
    if not isinstance(event, Event) or type(event) not in RULES:
        assert event is not None
        return Verdict(record.offset, "unhandled", "no_rule", type=event.TYPE), None, False
    event_id = event.meta.event_id
    identity = overlay.node("Identity", event_id)
    if identity is not None:
        return _second(decoded, event, number(identity, "offset"), overlay), None, False
    context: Context[Event] | None = None
    try:
        run = _check_place(event, record, overlay)
        signer = authority.check_signature(event, record, overlay)
        causes, depth = _causes(event, overlay)
        context = Context(event, record.offset, signer, overlay, run, causes, depth)
        check_work(context)
        check_log_budgets(context)
        RULES[type(event)].apply(context)
        check_policies(context)
    except Refused as refusal:
        verdict = Verdict(record.offset, "void", refusal.reason, refusal.detail, event_id, event.TYPE)
        return verdict, context, refusal.takes_id
    return Verdict(record.offset, "valid", "", "", event_id, event.TYPE), context, True


def _second(decoded: Decoded, event: Event, first: int, overlay: Overlay) -> Verdict:
    """The verdict on an event whose id is taken."""
    offset, event_id = decoded.record.offset, event.meta.event_id
    row = overlay.node("Event", first)
    assert row is not None, "a taken id names a record that was folded"
    if row["value_sha256"] == decoded.value_sha256:
        # A copy of a refused event stays refused, and says why.
        return Verdict(offset, "duplicate", text(row, "reason"), f"of offset {first}", event_id, event.TYPE)
    return Verdict(offset, "void", "id_reused", f"by offset {first}", event_id, event.TYPE)


def _causes(event: Event, overlay: Overlay) -> tuple[tuple[int, ...], int]:
    """Offsets of the causes that this log knows, and the event's depth among causes.

    A cause outside this log, or one refused for what it is, has no node to point from.
    """
    offsets: list[int] = []
    depth = 0
    for cause in event.meta.causes:
        identity = overlay.node("Identity", cause)
        if identity is not None:
            offsets.append(number(identity, "offset"))
            depth = max(depth, 1 + number(identity, "depth"))
    return tuple(offsets), depth


def _check_place(event: Event, record: LogRecord, overlay: Overlay) -> Row | None:
    """The run's row; refuses what comes before its opening, after its close, for another run or under false headers."""
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
    return run


def _event_row(decoded: Decoded, verdict: Verdict, context: Context[Event] | None) -> Row:
    """The row of a record in the log's own table: what it says of itself, and what became of it."""
    event = decoded.message if isinstance(decoded.message, Event) else None
    actor = event.meta.actor if event else None
    return {
        "offset": verdict.offset,
        "id": verdict.event_id,
        "type": verdict.type,
        "verdict": verdict.kind,
        "reason": verdict.reason,
        "detail": verdict.detail,
        # The run's own id stays out of rows: the same records give the same digest in a fork.
        "subject": _shared(event.subject_id) if event and event.SUBJECT != "meta.run" else None,
        "goal": _shared(event.meta.goal) if event else None,
        "actor_kind": actor.kind if actor else None,
        "actor": _shared(actor.id) if actor else None,
        "occurred_at": event.meta.occurred_at if event else None,
        "signer": context.signer.key_id if context and context.signer else None,
        "value_sha256": decoded.value_sha256,
    }


def _shared(name: str | None) -> str | None:
    """The one copy of a text that many events repeat; a graph in memory would hold each."""
    return None if name is None else sys.intern(name)


def _put_staged(context: Context[Event], overlay: Overlay) -> None:
    """Put what a rule staged, with the event that made and last changed it, what caused it and what it produced."""
    event_id, offset = context.event.meta.event_id, context.offset
    event = NodeKey("Event", offset)
    for cause in context.causes:
        overlay.put_edge("CAUSED", NodeKey("Event", cause), event, {})
    tables = overlay.tables.nodes
    for key, values in context.new_nodes.items():
        there = tables[key.table]
        blank = there.blank
        if not there.domain:
            overlay.put_new_node(*key, {**blank, **values, "id": key.id})
            continue
        new = {**blank, **values, "id": key.id, "created_event": event_id, "created_offset": offset}
        overlay.put_new_node(*key, _changed(new, blank, event_id, offset))
        overlay.put_edge("PRODUCED", event, key, {})
    for key, values in context.changed_nodes.items():
        before = overlay.node(*key)
        assert before is not None, f"a rule changes {key}, which isn't there"
        overlay.put_node(key, _changed({**before, **values}, before, event_id, offset))
    stamp: Row = {"created_event": event_id, "created_offset": offset}
    for edge, row in context.old_edges.items():
        overlay.remove_edge(edge, row)
    for table, source, target, data in context.new_edges:
        overlay.put_edge(table, source, target, {**data, **stamp} if data else stamp)
    if context.declared is not None:
        overlay.declare(context.declared)


def _changed(row: dict[str, Value], whole: Row, event_id: str, offset: int) -> Row:
    row["changed_event"], row["changed_offset"] = event_id, offset
    assert len(row) == len(whole), f"a row has other columns than its table: {sorted(row)}"
    return row
