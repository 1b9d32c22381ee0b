"""Rules of the log family: the run itself, who may sign, settings, budgets, goals and registered tests."""

from __future__ import annotations

from forktrail_projectors.rules.context import WORKER, Context, Refused, number, text
from forktrail_schemas.events import (
    BudgetExhausted,
    BudgetSet,
    GoalSet,
    KeyRegistered,
    KeyRevoked,
    RunClosed,
    RunOpened,
    SettingChanged,
    TestRegistered,
)
from forktrail_schemas.events.base import Event
from forktrail_schemas.ids import derived_id
from forktrail_schemas.signatures import key_id

SAME_PERSON_MAY_REVIEW = "same-person-may-review"
# Whether the planner (a behavior) proposes the next test by itself when there is a new finding.
PROPOSE_TESTS, WHEN_ASKED, ON_FINDING = "propose-tests", "when-asked", "on-finding"
# The model that the planner has choose among the eligible tests, by the name that a worker knows it under.
PLANNER_MODEL, NO_MODEL = "planner-model", "none"
# Every setting a run has, with the values it may take; the first is what holds until it is changed.
SETTINGS: dict[str, tuple[str, ...]] = {
    SAME_PERSON_MAY_REVIEW: ("false", "true"),
    PROPOSE_TESTS: (WHEN_ASKED, ON_FINDING),
    PLANNER_MODEL: (NO_MODEL,),
}
# Those that may take any other name too.
NAMED_SETTINGS = frozenset({PLANNER_MODEL})

CASES = "cases"
HTTP_REQUESTS = "http-requests"
FINDING_DEPTH = "finding-depth"
EVENTS = "events"
CAUSE_DEPTH = "cause-depth"
MODEL_CALLS = "model-calls"
TOOL_CALLS = "tool-calls"
TOKENS = "tokens"
COST = "cost-micros"
SECONDS = "seconds"
# The budgets whose rows RunOpened makes. `used` of a depth is the deepest so far; that of events is the log's length,
# which no row repeats.
_OPENED = (CASES, HTTP_REQUESTS, FINDING_DEPTH, EVENTS, CAUSE_DEPTH)
# Every budget that the rules keep. The others have a row once there is something to say of them: a limit, or a call.
BUDGETS = (*_OPENED, MODEL_CALLS, TOOL_CALLS, TOKENS, COST, SECONDS)
WORKER_ROLE = "worker"


def run_opened(ctx: Context[RunOpened]) -> None:
    """The first valid event of a log; makes the run, its goal, its first revision and its first admin."""
    event = ctx.event
    if ctx.node("Run", "run") is not None:
        raise Refused("run_already_open")
    goal = ctx.create("Goal", derived_id("goal", event.meta.event_id), text=event.goal)
    ctx.create(
        "Run",
        "run",
        run_id=event.meta.run,
        status="open",
        goal=goal.id,
        registry_sha256=event.registry.sha256 if event.registry else None,
        active_revision=event.revision,
        revisions=1,
        last_case=None,
        last_case_offset=-1,
    )
    ctx.create("Revision", event.revision, ordinal=1)
    ctx.create(
        "Key",
        key_id(event.admin_public_key),
        holder=event.meta.actor.id,
        holder_kind=event.meta.actor.kind,
        public_key=event.admin_public_key,
        roles=("admin",),
        revoked=False,
    )
    for name in _OPENED:
        ctx.create("Budget", name, limit=None, used=None if name == EVENTS else 0)


def run_closed(ctx: Context[RunClosed]) -> None:
    """Ends the run."""
    ctx.update("Run", "run", status="closed")


def key_registered(ctx: Context[KeyRegistered]) -> None:
    """Lets a key sign in its roles."""
    event = ctx.event
    if key_id(event.public_key) != event.key_id:
        raise Refused("key_id_mismatch", event.key_id, takes_id=False)
    if ctx.node("Key", event.key_id) is not None:
        raise Refused("key_exists", event.key_id)
    ctx.create(
        "Key",
        event.key_id,
        holder=event.holder,
        holder_kind=event.holder_kind,
        public_key=event.public_key,
        roles=tuple(sorted(set(event.roles))),
        revoked=False,
    )
    if WORKER_ROLE in event.roles:
        _count_worker_key(ctx, 1)


def key_revoked(ctx: Context[KeyRevoked]) -> None:
    """Ends a key. An admin can't revoke the key it signs with, so a run always has one."""
    key = ctx.existing("Key", ctx.event.key_id, "unknown_key")
    if key["revoked"]:
        raise Refused("already_revoked", ctx.event.key_id)
    if ctx.signer is not None and ctx.signer.key_id == ctx.event.key_id:
        raise Refused("own_key", ctx.event.key_id)
    ctx.update("Key", ctx.event.key_id, revoked=True)
    roles = key["roles"]
    if isinstance(roles, tuple) and WORKER_ROLE in roles:
        _count_worker_key(ctx, -1)


def _count_worker_key(ctx: Context[Event], change: int) -> None:
    """Keep count of the keys that may sign for a worker: as soon as there is one, workers must sign."""
    row = ctx.node(*WORKER)
    if row is None:
        ctx.create("Worker", "worker", epoch=0, keys=change)
    else:
        ctx.update("Worker", "worker", keys=number(row, "keys") + change)


def setting_changed(ctx: Context[SettingChanged]) -> None:
    """Sets a known setting to a known value."""
    event = ctx.event
    if event.name not in SETTINGS:
        raise Refused("unknown_setting", f"{event.name}; known: {', '.join(SETTINGS)}", takes_id=False)
    if event.name not in NAMED_SETTINGS and event.value not in SETTINGS[event.name]:
        allowed = ", ".join(SETTINGS[event.name])
        raise Refused("bad_value", f"{event.value}; allowed: {allowed}", takes_id=False)
    if ctx.node("Setting", event.name) is None:
        ctx.create("Setting", event.name, value=event.value)
    else:
        ctx.update("Setting", event.name, value=event.value)


def budget_set(ctx: Context[BudgetSet]) -> None:
    """Sets or lifts a limit; what is used already stays used."""
    event = ctx.event
    if event.name not in BUDGETS:
        raise Refused("unknown_budget", f"{event.name}; known: {', '.join(BUDGETS)}", takes_id=False)
    if ctx.node("Budget", event.name) is None:
        ctx.create("Budget", event.name, limit=event.limit, used=0)
    else:
        ctx.update("Budget", event.name, limit=event.limit, exhausted=None)


def budget_exhausted(ctx: Context[BudgetExhausted]) -> None:
    """A worker says, once for each limit, that nothing is left of a budget."""
    event = ctx.event
    row = ctx.node("Budget", event.name)
    if row is None:
        raise Refused("budget_left", event.name)
    limit, used = row["limit"], row["used"]
    if (event.limit, event.used) != (limit, used) or event.used < event.limit:
        raise Refused("budget_left", f"{event.name}: {used} of {limit}")
    if row["exhausted"]:
        raise Refused("already_said", event.name)
    ctx.update("Budget", event.name, exhausted=True)


def goal_set(ctx: Context[GoalSet]) -> None:
    """Makes a goal and puts it in front."""
    goal = ctx.create("Goal", derived_id("goal", ctx.event.meta.event_id), text=ctx.event.text)
    ctx.update("Run", "run", goal=goal.id)


def registration_made(ctx: Context[TestRegistered]) -> None:
    """Makes a test, and the asset and capabilities that it names."""
    event = ctx.event
    if ctx.node("TestCase", event.test_id) is not None:
        raise Refused("test_exists", event.test_id)
    circular = sorted(set(event.requires) & set(event.enables))
    if circular:
        raise Refused("circular_test", circular[0], takes_id=False)
    test = ctx.create(
        "TestCase",
        event.test_id,
        title=event.title,
        asset=event.asset_id,
        impact=event.impact,
        requests_max=event.requests_max,
        definition_sha256=event.definition_sha256,
    )
    ctx.relate("TARGETS", test, ctx.ensure("Asset", event.asset_id))
    for relation, capabilities in (("REQUIRES", event.requires), ("WOULD_ENABLE", event.enables)):
        for capability in dict.fromkeys(capabilities):
            ctx.relate(relation, test, ctx.ensure("Capability", capability))


def setting(ctx: Context[Event], name: str) -> str:
    """A setting's value, or what holds until it is changed."""
    row = ctx.node("Setting", name)
    return SETTINGS[name][0] if row is None else text(row, "value")
