"""What a run amounts to so far: where it stands, what it holds, who may sign, what limits it."""

from __future__ import annotations

from dataclasses import dataclass

from forktrail_lab.console.output import time_text
from forktrail_lab.console.session import RunSession
from forktrail_projectors.rules.context import number, text
from forktrail_projectors.rules.log import BUDGETS, EVENTS, SETTINGS
from forktrail_schemas.topics import run_topic

KEY_COLUMNS = ("key_id", "holder", "kind", "roles", "revoked")
SETTING_COLUMNS = ("setting", "value")
BUDGET_COLUMNS = ("budget", "limit", "used")
TEST_COLUMNS = ("test", "asset", "impact", "requires", "enables")

Rows = list[tuple[object, ...]]


@dataclass(frozen=True)
class RunSummary:
    """A run's facts, and its tests, keys, settings and budgets as rows."""

    facts: dict[str, object]
    tests: Rows
    keys: Rows
    settings: Rows
    budgets: Rows


def summarise(session: RunSession) -> RunSummary:
    """Sum a run up from its graph."""
    run = session.run
    position = session.projection.position()
    revision = text(run, "active_revision")
    facts: dict[str, object] = {
        "run": session.projection.run,
        "topic": run_topic(session.projection.run),
        "status": run["status"],
        "goal": session.existing("Goal", text(run, "goal"))["text"],
        "opened_at": time_text(session.existing("Event", number(run, "created_offset"))["occurred_at"]),
        "active_revision": revision,
        "next_offset": position.next_offset,
        "end": position.end,
        "state_digest": position.state_digest,
        "log_root": position.log_root,
        "tests": _count(session, "MATCH (t:TestCase) RETURN count(*)"),
        "cases": _count(session, "MATCH (c:`Case`) RETURN count(*)"),
    }
    for status, count in session.query("MATCH (c:`Case`) RETURN c.status, count(*) ORDER BY c.status").rows:
        facts[f"cases_{status}"] = count
    facts["findings"] = _count(session, "MATCH (f:Finding) RETURN count(*)")
    facts["findings_current"] = _count(
        session, "MATCH (f:Finding) WHERE f.revision = $revision AND NOT f.withdrawn RETURN count(*)", revision
    )
    return RunSummary(facts, test_rows(session), key_rows(session), setting_rows(session), budget_rows(session))


def test_rows(session: RunSession) -> Rows:
    """The registered tests, by id, with the capabilities that each requires and enables; see TEST_COLUMNS."""
    requires = _linked(session, "MATCH (t:TestCase)-[:REQUIRES]->(c:Capability) RETURN t.id, c.id ORDER BY c.id")
    enables = _linked(session, "MATCH (t:TestCase)-[:WOULD_ENABLE]->(c:Capability) RETURN t.id, c.id ORDER BY c.id")
    rows = _rows(session, "MATCH (t:TestCase) RETURN t.id, t.asset, t.impact ORDER BY t.id")
    return [(*row, requires.get(row[0], ()), enables.get(row[0], ())) for row in rows]


def key_rows(session: RunSession) -> Rows:
    """The registered keys, in the order they came; see KEY_COLUMNS."""
    return _rows(
        session, "MATCH (k:Key) RETURN k.id, k.holder, k.holder_kind, k.roles, k.revoked ORDER BY k.created_offset"
    )


def setting_rows(session: RunSession) -> Rows:
    """Every setting that a run has, with what holds now; see SETTING_COLUMNS."""
    changed = {row[0]: row[1] for row in session.query("MATCH (s:Setting) RETURN s.id, s.value").rows}
    return [(name, changed.get(name, allowed[0])) for name, allowed in SETTINGS.items()]


def budget_rows(session: RunSession) -> Rows:
    """Every budget with its limit (None: unlimited) and what is used of it; see BUDGET_COLUMNS."""
    length = _count(session, "MATCH (e:Event) RETURN count(*)")
    rows = _rows(session, "MATCH (b:Budget) RETURN b.id, b.limit, b.used")
    kept = {name: (limit, used) for name, limit, used in rows}
    # Of some there is a row only once they are limited or used.
    told = sorted((name, *kept.get(name, (None, 0))) for name in BUDGETS)
    return [(name, limit, length if name == EVENTS else used) for name, limit, used in told]


def used_of_budget(session: RunSession, name: str) -> int:
    """What is used of a budget; of a depth, the deepest so far."""
    (used,) = [used for budget, _, used in budget_rows(session) if budget == name]
    assert isinstance(used, int)
    return used


def _linked(session: RunSession, cypher: str) -> dict[object, tuple[object, ...]]:
    """The second column's values by the first's, each in the order of the rows."""
    linked: dict[object, tuple[object, ...]] = {}
    for one, other in session.query(cypher).rows:
        linked[one] = (*linked.get(one, ()), other)
    return linked


def _rows(session: RunSession, cypher: str) -> Rows:
    return [tuple(row) for row in session.query(cypher).rows]


def _count(session: RunSession, cypher: str, revision: str | None = None) -> object:
    parameters = {} if revision is None else {"revision": revision}
    return session.query(cypher, **parameters).rows[0][0]
