"""The tables of the graph: the one place that names them, their keys, columns and ends.

Every domain node carries the event and offset that made it and last changed it; every domain relation those that made
it. Times are microseconds since 1970 (UTC). A column may be null unless it is the key.

What a table's columns mean to the content digest (content_digest.py) stands beside them: each is data, a reference to
another node by an id that follows from an event's, or left out; a table without content is left out as a whole, and so
are the relations to it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from operator import itemgetter

from forktrail_projectors.state import Row, Value


class ColumnType(StrEnum):
    """Column types, in the engine's words."""

    STRING = "STRING"
    INT64 = "INT64"
    DOUBLE = "DOUBLE"
    BOOL = "BOOL"
    STRINGS = "STRING[]"


# The graph's own, which no fold and no digest sees.
CURSOR_TABLE = "Cursor"

STAMP_CREATED = {"created_event": ColumnType.STRING, "created_offset": ColumnType.INT64}
STAMP_CHANGED = {"changed_event": ColumnType.STRING, "changed_offset": ColumnType.INT64}


@dataclass(frozen=True)
class Content:
    """What the content digest takes of a table's columns; each is in exactly one of these.

    Attributes:
        data: what the node says.
        references: columns that hold another node's id, and that node's table; its content stands in for the id.
        left_out: what differs between logs that came to the same conclusions: ids, offsets, times, keys, signatures.
        only: a column and the values of it with which a row counts at all; None where every row does.
    """

    data: tuple[str, ...]
    references: Mapping[str, str]
    left_out: tuple[str, ...]
    only: tuple[str, tuple[str, ...]] | None = None

    def counts(self, row: Row) -> bool:
        """Whether a row is part of what the log came to."""
        return self.only is None or row[self.only[0]] in self.only[1]


@dataclass(frozen=True)
class NodeTable:
    """A node table.

    Attributes:
        name: label in Cypher.
        key: primary key column.
        columns: all columns, the key first, in order.
        domain: True for what events are about, False for the log's own bookkeeping (events, identities).
        content: what the content digest takes of it; None where it isn't in it.
    """

    name: str
    key: str
    columns: dict[str, ColumnType]
    domain: bool
    content: Content | None = None

    @cached_property
    def list_columns(self) -> tuple[str, ...]:
        """Names of the columns that hold lists."""
        return tuple(name for name, kind in self.columns.items() if kind is ColumnType.STRINGS)

    @cached_property
    def values(self) -> Callable[[Row], tuple[Value, ...]]:
        """Takes a row's values in column order."""
        return values_in(self.columns)

    @cached_property
    def blank(self) -> Row:
        """A row of nulls."""
        return dict.fromkeys(self.columns)


@dataclass(frozen=True)
class EdgeTable:
    """A relation table.

    Attributes:
        pairs: the node tables it may join, as (from, to).
        removable: whether relations of it may be removed; those of built-in tables never are.
    """

    name: str
    pairs: tuple[tuple[str, str], ...]
    columns: dict[str, ColumnType]
    removable: bool = False

    @cached_property
    def list_columns(self) -> tuple[str, ...]:
        """Names of the columns that hold lists."""
        return tuple(name for name, kind in self.columns.items() if kind is ColumnType.STRINGS)

    @cached_property
    def values(self) -> Callable[[Row], tuple[Value, ...]]:
        """Takes a row's values in column order."""
        return values_in(self.columns)


def values_in(names: Mapping[str, object]) -> Callable[[Row], tuple[Value, ...]]:
    """What takes the values of some columns from a row, in order."""
    columns = tuple(names)
    # itemgetter gives a bare value for one name and takes no fewer.
    return itemgetter(*columns) if len(columns) > 1 else lambda row: tuple(row[name] for name in columns)


def _strings(*names: str) -> dict[str, ColumnType]:
    return dict.fromkeys(names, ColumnType.STRING)


def _integers(*names: str) -> dict[str, ColumnType]:
    return dict.fromkeys(names, ColumnType.INT64)


def _domain(name: str, columns: dict[str, ColumnType], content: Content | None) -> NodeTable:
    return NodeTable(name, "id", _strings("id") | columns | STAMP_CREATED | STAMP_CHANGED, domain=True, content=content)


def _content(
    data: str, *, left_out: str = "", only: tuple[str, tuple[str, ...]] | None = None, **references: str
) -> Content:
    """Columns by their names, separated by blanks; the stamps are always left out."""
    return Content(tuple(data.split()), references, (*left_out.split(), *STAMP_CREATED, *STAMP_CHANGED), only)


def _relation(name: str, *pairs: tuple[str, str]) -> EdgeTable:
    return EdgeTable(name, pairs, dict(STAMP_CREATED))


_BOOKKEEPING = (
    # One row per record of the log, whatever became of it.
    NodeTable(
        "Event",
        "offset",
        _integers("offset")
        | _strings("id", "type", "verdict", "reason", "detail", "subject", "goal", "actor_kind", "actor")
        | _integers("occurred_at")
        | _strings("signer", "value_sha256"),
        domain=False,
    ),
    # Event ids that are taken, by which event, and how deep it stands among its causes.
    NodeTable("Identity", "id", _strings("id") | _integers("offset", "depth"), domain=False),
    # What a handler has fired for, so that it does once; `id` is a digest of behavior, handler and match.
    NodeTable("Match", "id", _strings("id", "execution") | _integers("offset"), domain=False),
)

PATCH_ENDS = ("source_type", "source_id", "target_type", "target_id")
_CONCLUDED_BUDGETS = (
    *("cases", "http-requests", "finding-depth", "events", "cause-depth"),
    *("model-calls", "tool-calls", "tokens", "cost-micros"),
)

_DOMAIN = (
    _domain(
        "Run",
        _strings("run_id", "status", "goal", "registry_sha256", "active_revision", "last_case")
        | _integers("revisions", "last_case_offset"),
        _content(
            "id status registry_sha256 active_revision revisions",
            goal="Goal",
            left_out="run_id last_case last_case_offset",  # which case came last is the log's order
        ),
    ),
    _domain("Goal", _strings("text"), _content("text", left_out="id")),
    _domain("Revision", _integers("ordinal"), _content("id ordinal")),
    _domain("Setting", _strings("value"), _content("id value")),
    # `remainder`, of `seconds`: microseconds used beyond its whole seconds; how long calls took is no conclusion.
    # `exhausted`: a worker has said that nothing is left of this limit.
    _domain(
        "Budget",
        _integers("limit", "used", "remainder") | {"exhausted": ColumnType.BOOL},
        _content("id limit used", left_out="remainder exhausted", only=("id", _CONCLUDED_BUDGETS)),
    ),
    # Who may sign with what is how a log is vouched for, not what it came to.
    _domain(
        "Key",
        _strings("holder", "holder_kind", "public_key") | {"roles": ColumnType.STRINGS, "revoked": ColumnType.BOOL},
        None,
    ),
    # Types of objects and relations that the run declared; what they make of the graph is `Tables.with_types`.
    _domain(
        "Type",
        _strings("kind", "schema")
        | dict.fromkeys(("references", "sources", "targets", "personal", "merge"), ColumnType.STRINGS),
        None,
    ),
    # What a reviewer has to accept, by the name of a type.
    _domain("Policy", {"changes": ColumnType.STRINGS} | _strings("reason"), None),
    # What was proposed and what became of it; an accepted change is content by itself.
    _domain(
        "Patch",
        _strings("op", "type_name", "object_id", *PATCH_ENDS, "data")
        | _integers("expected_version")
        | _strings("status", "why", "execution", "path", "proposer_kind", "proposer", "decided_by", "reason"),
        None,
    ),
    # A frame, and what it will change once it is merged: one row for each object or relation.
    _domain("Frame", _strings("title", "status", "execution", "reason"), None),
    _domain("FrameChange", _strings("frame", "op", "type_name", "object_id", *PATCH_ENDS, "data", "base"), None),
    # Behaviors are how a run came to its conclusions: the registration that reacts now, and every one that there was.
    _domain(
        "Behavior",
        _strings("version", "code_sha256", "subscriptions")
        | {"emits": ColumnType.STRINGS}
        | _integers("registered_offset"),
        None,
    ),
    _domain(
        "BehaviorVersion",
        _strings("behavior", "version", "code_sha256") | _integers("registered_offset", "superseded_offset"),
        None,
    ),
    # One row: the claim that holds, and how many keys may sign for a worker.
    _domain("Worker", _strings("worker") | _integers("epoch", "keys"), None),
    _domain(
        "Execution",
        _strings("behavior", "version", "handler", "trigger")
        | {"match": ColumnType.STRINGS}
        | _strings("status", "error_type", "message"),
        _content(
            "behavior version handler status error_type message",
            left_out="id trigger match",
            only=("status", ("completed", "failed", "cancelled")),
        ),
    ),
    _domain(
        "Call",
        _strings("execution", "path", "kind", "name", "request", "request_sha256", "status", "outcome", "answer")
        | _strings("request_blob", "blob", "error")
        | _integers("input_tokens", "output_tokens", "cost_micros")
        | _strings("decided_by")
        | _integers("due_at", "duration_micros", "attempts")
        | _strings("provider", "model", "finish_reason", "sent", "received"),
        _content(
            "kind name request_sha256 status outcome answer blob error"
            " input_tokens output_tokens cost_micros decided_by",
            # What was asked is in its digest; how often, how long and over which bytes is how it was asked.
            left_out="id execution path request request_blob due_at"
            " duration_micros attempts provider model finish_reason sent received",
            only=("status", ("answered",)),
        ),
    ),
    # A schema is what records were written in, not what they came to; so it has no content either.
    _domain("Schema", _strings("name", "sha256", "text"), None),
    _domain("Asset", {}, _content("id")),
    _domain("Capability", {}, _content("id")),
    _domain(
        "TestCase",
        _strings("title", "asset", "definition_sha256") | _integers("impact", "requests_max"),
        _content("id title asset definition_sha256 impact requests_max"),
    ),
    _domain(
        "Report",
        _strings("test", "revision", "researcher", "summary", "details", "outcome", "case_id"),
        _content("test revision researcher summary details outcome", case_id="Case", left_out="id"),
    ),
    _domain(
        "Case",
        _strings("test", "asset", "revision", "status", "outcome", "opened_by", "proposer")
        | _strings("approval", "approver", "runner", "observation", "reviewer")
        | _integers("depth")
        | {"retried": ColumnType.BOOL},
        _content(
            "test asset revision status outcome opened_by proposer approver reviewer depth retried",
            approval="Approval",
            observation="Observation",
            left_out="id runner",  # the runner's key
        ),
    ),
    _domain(
        "Approval",
        _strings("case_id", "decision", "approver", "reason"),
        _content("decision approver reason", case_id="Case", left_out="id"),
    ),
    _domain(
        "Observation",
        _strings("case_id", "test", "revision", "outcome", "reason", "runner")
        | _strings("evidence_sha256", "evidence_media_type", "receipt")
        | _integers("evidence_bytes", "requests")
        | {"interrupted": ColumnType.BOOL},
        _content(
            "test revision outcome reason evidence_sha256 evidence_media_type evidence_bytes requests interrupted",
            case_id="Case",
            left_out="id runner receipt",  # the runner's key and signature
        ),
    ),
    _domain(
        "Review",
        _strings("case_id", "observation", "decision", "reviewer", "note"),
        _content("decision reviewer note", case_id="Case", observation="Observation", left_out="id"),
    ),
    _domain(
        "Finding",
        _strings("title", "case_id", "test", "asset", "revision", "researcher", "observation", "review")
        | _integers("impact", "depth")
        | {"withdrawn": ColumnType.BOOL}
        | _strings("withdrawn_by", "withdrawn_reason"),
        _content(
            "title test asset revision researcher impact depth withdrawn withdrawn_by withdrawn_reason",
            case_id="Case",
            observation="Observation",
            review="Review",
            left_out="id",
        ),
    ),
)

_EDGES = (
    EdgeTable("CAUSED", (("Event", "Event"),), {}),
    EdgeTable("PRODUCED", tuple(("Event", table.name) for table in _DOMAIN), {}),
    _relation("TARGETS", ("TestCase", "Asset")),
    _relation("REQUIRES", ("TestCase", "Capability")),
    _relation("WOULD_ENABLE", ("TestCase", "Capability")),
    _relation("REPORTS", ("Report", "TestCase")),
    _relation("OPENED", ("Report", "Case")),
    _relation("ATTEMPTS", ("Case", "TestCase")),
    _relation("RESTS_ON", ("Case", "Finding")),
    _relation("DECIDES", ("Approval", "Case"), ("Approval", "Call")),
    _relation("OBSERVES", ("Observation", "Case")),
    _relation("REVIEWS", ("Review", "Observation")),
    _relation("ESTABLISHES", ("Review", "Finding")),
    _relation("FOUND_IN", ("Finding", "Case")),
    _relation("ENABLES", ("Finding", "Capability")),
    _relation("TRIGGERED", ("Event", "Execution")),
    _relation("ASKED", ("Execution", "Call")),
    _relation("PROPOSED", ("Execution", "Patch")),
    _relation("HOLDS", ("Frame", "FrameChange")),
)

BUILT_IN_NODES: dict[str, NodeTable] = {table.name: table for table in (*_BOOKKEEPING, *_DOMAIN)}
BUILT_IN_EDGES: dict[str, EdgeTable] = {table.name: table for table in _EDGES}
