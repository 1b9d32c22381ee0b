"""The tables of the graph: the one place that names them, their keys, columns and ends.

Every domain node carries the event and offset that made it and last changed it; every domain relation those that made
it. Times are microseconds since 1970 (UTC). A column may be null unless it is the key.

What a table's columns mean to the content digest (content_digest.py) stands beside them: each is data, a reference to
another node by an id that follows from an event's, or left out; a table without content is left out as a whole, and so
are the relations to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class ColumnType(StrEnum):
    """Column types, in the engine's words."""

    STRING = "STRING"
    INT64 = "INT64"
    BOOL = "BOOL"
    STRINGS = "STRING[]"


STAMP_CREATED = {"created_event": ColumnType.STRING, "created_offset": ColumnType.INT64}
STAMP_CHANGED = {"changed_event": ColumnType.STRING, "changed_offset": ColumnType.INT64}


@dataclass(frozen=True)
class Content:
    """What the content digest takes of a table's columns; each is in exactly one of these.

    Attributes:
        data: what the node says.
        references: columns that hold another node's id, and that node's table; its content stands in for the id.
        left_out: what differs between logs that came to the same conclusions: ids, offsets, times, keys, signatures.
    """

    data: tuple[str, ...]
    references: Mapping[str, str]
    left_out: tuple[str, ...]


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


@dataclass(frozen=True)
class EdgeTable:
    """A relation table: the node tables it may join, as (from, to) pairs, and its columns."""

    name: str
    pairs: tuple[tuple[str, str], ...]
    columns: dict[str, ColumnType]


def _strings(*names: str) -> dict[str, ColumnType]:
    return dict.fromkeys(names, ColumnType.STRING)


def _integers(*names: str) -> dict[str, ColumnType]:
    return dict.fromkeys(names, ColumnType.INT64)


def _domain(name: str, columns: dict[str, ColumnType], content: Content | None) -> NodeTable:
    return NodeTable(name, "id", _strings("id") | columns | STAMP_CREATED | STAMP_CHANGED, domain=True, content=content)


def _content(data: str, *, left_out: str = "", **references: str) -> Content:
    """Columns by their names, separated by blanks; the stamps are always left out."""
    return Content(tuple(data.split()), references, (*left_out.split(), *STAMP_CREATED, *STAMP_CHANGED))


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
    _domain("Budget", _integers("limit", "used"), _content("id limit used")),
    # Who may sign with what is how a log is vouched for, not what it came to.
    _domain(
        "Key",
        _strings("holder", "holder_kind", "public_key") | {"roles": ColumnType.STRINGS, "revoked": ColumnType.BOOL},
        None,
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
    _relation("DECIDES", ("Approval", "Case")),
    _relation("OBSERVES", ("Observation", "Case")),
    _relation("REVIEWS", ("Review", "Observation")),
    _relation("ESTABLISHES", ("Review", "Finding")),
    _relation("FOUND_IN", ("Finding", "Case")),
    _relation("ENABLES", ("Finding", "Capability")),
)

NODE_TABLES: dict[str, NodeTable] = {table.name: table for table in (*_BOOKKEEPING, *_DOMAIN)}
EDGE_TABLES: dict[str, EdgeTable] = {table.name: table for table in _EDGES}
