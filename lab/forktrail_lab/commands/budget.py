"""`forktrail budget`: show or set the budgets of a run."""

from __future__ import annotations

import argparse

from forktrail_lab.console.arguments import ADMIN_KEY, add_format, add_key, add_run, split_pair
from forktrail_lab.console.output import note, print_result, print_rows
from forktrail_lab.console.run_summary import BUDGET_COLUMNS, budget_rows, used_of_budget
from forktrail_lab.console.session import open_session
from forktrail_projectors.rules.log import (
    BUDGETS,
    CASES,
    CAUSE_DEPTH,
    COST,
    EVENTS,
    FINDING_DEPTH,
    HTTP_REQUESTS,
    MODEL_CALLS,
    SECONDS,
    TOKENS,
    TOOL_CALLS,
)
from forktrail_schemas.errors import ExitCode, InvalidInput
from forktrail_schemas.events import BudgetSet
from forktrail_schemas.settings import Settings

EXAMPLE = "  forktrail budget $RUN\n  forktrail budget $RUN cases=10 http-requests=none"
UNLIMITED = "none"
DEPTHS = (FINDING_DEPTH, CAUSE_DEPTH)
# What a budget of which nothing is left refuses.
FROM_NOW_ON = {
    CASES: "no further case is opened",
    HTTP_REQUESTS: "no test is started that sends a request",
    FINDING_DEPTH: "no case is opened that would lie deeper than the limit",
    EVENTS: "every further event but an admin's is refused (budget_exhausted)",
    MODEL_CALLS: "no further model is asked",
    TOOL_CALLS: "no further tool is called, but for queries of the graph",
    TOKENS: "no further model is asked",
    COST: "no further model is asked and no tool called, but for queries of the graph",
    SECONDS: "no further model is asked and no tool called, but for queries of the graph",
    CAUSE_DEPTH: "every event with a longer chain of causes than the limit is refused, but an admin's",
}
LIMIT_DIGITS_MAX = 18  # within a signed 64-bit number


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the run and its new limits."""
    add_run(parser)
    parser.add_argument(
        "pairs",
        type=split_pair,
        nargs="*",
        metavar="name=limit",
        help=f"{CASES}: how many are opened; {HTTP_REQUESTS}: how many the tests may send; {EVENTS}: how long the log"
        f" gets; {FINDING_DEPTH}: how many findings may rest on one another, a root's depth being 0; {CAUSE_DEPTH}: how"
        f" long a chain of events that led to one another; {MODEL_CALLS}, {TOOL_CALLS}: how many behaviors may make;"
        f" {TOKENS}, {COST} (millionths of your prices' currency), {SECONDS} (spent in models and tools): how much"
        " their calls may use, those under way when a limit is reached left out;"
        f" {UNLIMITED} lifts the limit; without any, all are shown",
    )
    add_key(parser, ADMIN_KEY)
    add_format(parser)


def run(arguments: argparse.Namespace, settings: Settings) -> int:
    """Show limits and what is used, or set some, in the order given.

    Raises:
        InvalidInput: an unknown budget or a limit that is no number; nothing was sent.
        EventVoid: the key may not; those before it were set.
    """
    limits = [(name, _limit(name, value)) for name, value in arguments.pairs]
    with open_session(settings, arguments.run) as session:
        if not limits:
            print_rows(BUDGET_COLUMNS, budget_rows(session), arguments.format)
            return ExitCode.OK
        speaker = session.person(arguments.key)
        for name, limit in limits:
            written = session.write(BudgetSet, speaker, name=name, limit=limit)
            used = used_of_budget(session, name)
            facts = written.facts() | {"budget": name, "limit": limit, "used": used}
            shown = UNLIMITED if limit is None else limit
            print_result(f"the limit of {name} is {shown} from offset {written.offset}", facts, arguments.format)
            # At a depth's limit there is still room for what is no deeper.
            if limit is not None and (used > limit or (used == limit and name not in DEPTHS)):
                note(_exhausted(name, used, limit))
    return ExitCode.OK


def _exhausted(name: str, used: int, limit: int) -> str:
    """What follows where nothing is left of a limit."""
    what = f"the deepest so far is {used}" if name in DEPTHS else f"{used} used already"
    return f"{name}: {what}, of {limit} allowed; what stands stays, and {FROM_NOW_ON[name]}"


def _limit(name: str, value: str) -> int | None:
    if name not in BUDGETS:
        raise InvalidInput(f"there is no budget {name!r}", hint=f"known: {', '.join(BUDGETS)}")
    if value == UNLIMITED:
        return None
    if not (value.isascii() and value.isdecimal() and len(value) <= LIMIT_DIGITS_MAX):
        raise InvalidInput(f"the limit of {name} can't be {value!r}", hint=f"a whole number, or {UNLIMITED}")
    return int(value)
