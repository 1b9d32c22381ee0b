"""`forktrail budget`: show or set the budgets of a run."""

from __future__ import annotations

import argparse

from forktrail_lab.console.arguments import ADMIN_KEY, add_format, add_key, add_run, split_pair
from forktrail_lab.console.output import print_result, print_rows
from forktrail_lab.console.run_summary import BUDGET_COLUMNS, budget_rows
from forktrail_lab.console.session import open_session
from forktrail_projectors.rules.log import BUDGETS
from forktrail_schemas.errors import ExitCode, InvalidInput
from forktrail_schemas.events import BudgetSet
from forktrail_schemas.settings import Settings

EXAMPLE = "  forktrail budget $RUN\n  forktrail budget $RUN cases=10 http-requests=none"
UNLIMITED = "none"
LIMIT_DIGITS_MAX = 18  # within a signed 64-bit number


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the run and its new limits."""
    add_run(parser)
    parser.add_argument(
        "pairs",
        type=split_pair,
        nargs="*",
        metavar="name=limit",
        help=f"{', '.join(BUDGETS)}; {UNLIMITED} lifts the limit; without any, all are shown",
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
            facts = written.facts() | {"budget": name, "limit": limit}
            shown = UNLIMITED if limit is None else limit
            print_result(f"the limit of {name} is {shown} from offset {written.offset}", facts, arguments.format)
    return ExitCode.OK


def _limit(name: str, value: str) -> int | None:
    if name not in BUDGETS:
        raise InvalidInput(f"there is no budget {name!r}", hint=f"known: {', '.join(BUDGETS)}")
    if value == UNLIMITED:
        return None
    if not (value.isascii() and value.isdecimal() and len(value) <= LIMIT_DIGITS_MAX):
        raise InvalidInput(f"the limit of {name} can't be {value!r}", hint=f"a whole number, or {UNLIMITED}")
    return int(value)
