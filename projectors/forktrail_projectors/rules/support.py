"""Support: which current findings provide what a test requires, and which attempts stand in its way."""

from __future__ import annotations

from forktrail_projectors.rules.context import Context, Refused, number, text
from forktrail_projectors.rules.log import CAUSE_DEPTH, EVENTS
from forktrail_projectors.state import NodeKey, Row
from forktrail_schemas.events.base import Event


def is_current(finding: Row, revision: str) -> bool:
    """Whether a finding counts now: it is of the active revision and nobody withdrew it."""
    return finding["revision"] == revision and not finding["withdrawn"]


def support_of(ctx: Context[Event], test_id: str) -> dict[str, tuple[str, ...]]:
    """Each capability that the test requires, with the ids of the current findings that provide it."""
    required = ctx.neighbours("REQUIRES", "source", NodeKey("TestCase", test_id))
    return {str(capability.id): _providers(ctx, capability) for capability in required}


def _providers(ctx: Context[Event], capability: NodeKey) -> tuple[str, ...]:
    findings = ctx.neighbours("ENABLES", "target", capability)
    current = [key for key in findings if is_current(ctx.existing(key.table, key.id, "unknown_finding"), ctx.revision)]
    return tuple(str(key.id) for key in current)


def missing(support: dict[str, tuple[str, ...]]) -> list[str]:
    """The capabilities that nothing provides, sorted."""
    return sorted(capability for capability, findings in support.items() if not findings)


def standing_attempt(ctx: Context[Event], test_id: str) -> str | None:
    """The case that already stands for the test in the active revision, if any; a retried one doesn't."""
    for case in ctx.neighbours("ATTEMPTS", "target", NodeKey("TestCase", test_id)):
        row = ctx.existing(case.table, case.id, "unknown_case")
        if row["revision"] == ctx.revision and not row["retried"]:
            return str(case.id)
    return None


def depth_on(ctx: Context[Event], finding_ids: tuple[str, ...]) -> int:
    """The depth of a case that rests on these findings: a root's is 0."""
    depths = [number(ctx.existing("Finding", finding, "unknown_finding"), "depth") for finding in finding_ids]
    return 1 + max(depths) if depths else 0


def check_budget(ctx: Context[Event], name: str, amount: int) -> None:
    """Refuse what would pass a budget."""
    budget = ctx.existing("Budget", name, "unknown_budget")
    limit = budget["limit"]
    if isinstance(limit, int) and amount > limit:
        raise Refused("budget_exhausted", f"{name}: {amount} of {limit}")


def check_log_budgets(ctx: Context[Event]) -> None:
    """Refuse what would make the log longer, or a chain of causes deeper, than its budget; notes the deepest so far.

    An admin may always speak, so that a budget can be raised and a run closed.
    """
    events, depth = ctx.node("Budget", EVENTS), ctx.node("Budget", CAUSE_DEPTH)
    if events is None or depth is None or ctx.event.ROLE == "admin":
        return
    limit = events["limit"]
    if isinstance(limit, int) and ctx.offset >= limit:
        raise Refused("budget_exhausted", f"{EVENTS}: {ctx.offset + 1} of {limit}")
    check_budget(ctx, CAUSE_DEPTH, ctx.depth)
    if ctx.depth > number(depth, "used"):
        ctx.update("Budget", CAUSE_DEPTH, used=ctx.depth)


def used(ctx: Context[Event], name: str) -> int:
    """What is used of a budget."""
    return number(ctx.existing("Budget", name, "unknown_budget"), "used")


def check_support(ctx: Context[Event], test_id: str) -> None:
    """Refuse what rests on a test whose requirements aren't met now."""
    gaps = missing(support_of(ctx, test_id))
    if gaps:
        raise Refused("support_missing", ", ".join(gaps))


def check_revision(ctx: Context[Event], row: Row) -> None:
    """Refuse what is about another revision than the active one."""
    revision = text(row, "revision")
    if revision != ctx.revision:
        raise Refused("revision_not_active", f"{revision}; active: {ctx.revision}")
