"""`forktrail run`: open, list, show or close a run."""

from __future__ import annotations

import argparse
from pathlib import Path

from forktrail_lab.console.arguments import (
    ADMIN_KEY,
    add_action,
    add_actions,
    add_actor,
    add_format,
    add_key,
    add_reason,
    add_run,
    run_id,
)
from forktrail_lab.console.output import (
    Format,
    counted,
    note,
    print_facts,
    print_lines,
    print_result,
    print_rows,
    table_lines,
    time_text,
)
from forktrail_lab.console.run_summary import (
    BUDGET_COLUMNS,
    KEY_COLUMNS,
    SETTING_COLUMNS,
    TEST_COLUMNS,
    Rows,
    RunSummary,
    summarise,
)
from forktrail_lab.console.session import open_session
from forktrail_lab.opening import Opening, announce, open_run
from forktrail_lab.registry.file import load_registry
from forktrail_producers.directory import Directory
from forktrail_producers.keys import KeyStore
from forktrail_producers.producer import Producer
from forktrail_projectors.rules.context import number, text
from forktrail_schemas.errors import ExitCode, NotFound
from forktrail_schemas.events import RunClosed
from forktrail_schemas.ids import new_run_id
from forktrail_schemas.settings import Settings
from forktrail_schemas.signatures import SigningKey

OPEN_EXAMPLE = "  RUN=$(forktrail run open --registry registry.json --goal 'find what a tenant can reach')"
LIST_EXAMPLE = "  forktrail run list"
SHOW_EXAMPLE = "  forktrail run show $RUN"
CLOSE_EXAMPLE = "  forktrail run close $RUN --reason 'all candidates are settled'"
EXAMPLE = "\n".join((OPEN_EXAMPLE, LIST_EXAMPLE, SHOW_EXAMPLE, CLOSE_EXAMPLE))
LIST_COLUMNS = ("run", "status", "opened_at", "goal")


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare open, list, show and close."""
    actions = add_actions(parser, "open|list|show|close")
    opening = add_action(actions, "open", "open a run, or complete one that was not quite opened", OPEN_EXAMPLE)
    opening.add_argument(
        "--registry", type=Path, metavar="FILE", help="the tests that may be run, as a JSON file (default: none)"
    )
    opening.add_argument("--goal", metavar="TEXT", required=True, help="what the run is for")
    opening.add_argument("--run", type=run_id, metavar="ID", help="run id (default: a new one)")
    add_key(opening, ADMIN_KEY)
    add_actor(opening, "actor id that the admin key speaks for (default: the key's name)")
    listing = add_action(actions, "list", "list the runs", LIST_EXAMPLE)
    add_format(listing, rows=True)
    showing = add_action(actions, "show", "show where a run stands and what it holds", SHOW_EXAMPLE)
    add_run(showing)
    add_format(showing)
    closing = add_action(actions, "close", "end a run; nothing after that counts", CLOSE_EXAMPLE)
    add_run(closing)
    add_reason(closing, required=True)
    add_key(closing, ADMIN_KEY)
    add_format(closing)


def run(arguments: argparse.Namespace, settings: Settings) -> int:
    """Do the action."""
    actions = {"open": _open, "list": _list, "show": _show, "close": _close}
    actions[arguments.action](arguments, settings)
    return ExitCode.OK


def _open(arguments: argparse.Namespace, settings: Settings) -> None:
    """Print the run id alone on stdout, for `RUN=$(…)`; all else goes to stderr."""
    registry = load_registry(arguments.registry) if arguments.registry else None
    opening = Opening(
        run=arguments.run or new_run_id(),
        goal=arguments.goal,
        holder=arguments.actor or arguments.key,
        admin=_admin_key(settings, arguments.key),
        registry=registry,
    )
    note(f"opening {opening.run}; should this be cut short, --run {opening.run} completes it")
    opened = open_run(settings, opening)
    what = "opened" if opened.began else "open already, its goal is kept"
    note(f"{opening.run}: {what}; {counted(opened.registered, 'test')} registered, admin key {arguments.key!r}")
    print(opening.run, flush=True)


def _admin_key(settings: Settings, name: str) -> SigningKey:
    store = KeyStore(settings.keys_dir)
    try:
        return store.load(name)
    except NotFound:
        key = store.new(name)
        note(f"made the signing key {name!r}, {key.key_id[:12]}…: there was none of that name")
        return key


def _list(arguments: argparse.Namespace, settings: Settings) -> None:
    listing = Directory(settings.bootstrap_servers).list()
    rows = [(run.run, run.status, time_text(run.opened_at), run.goal) for run in listing.runs]
    print_rows(LIST_COLUMNS, rows, arguments.format)
    if listing.unreadable:
        note(f"in the directory, {counted(listing.unreadable, 'record')} can't be read as an announcement")


def _show(arguments: argparse.Namespace, settings: Settings) -> None:
    with open_session(settings, arguments.run) as session:
        summary = summarise(session)
    tables = {
        "registered_tests": (TEST_COLUMNS, summary.tests),
        "keys": (KEY_COLUMNS, summary.keys),
        "settings": (SETTING_COLUMNS, summary.settings),
        "budgets": (BUDGET_COLUMNS, summary.budgets),
    }
    if arguments.format == Format.JSON:
        print_facts(_as_json(summary, tables), arguments.format)
        return
    print_facts(summary.facts, arguments.format)
    for columns, rows in tables.values():
        print()
        print_lines(table_lines(columns, rows))


def _as_json(summary: RunSummary, tables: dict[str, tuple[tuple[str, ...], Rows]]) -> dict[str, object]:
    nested = {name: [dict(zip(columns, row, strict=True)) for row in rows] for name, (columns, rows) in tables.items()}
    return summary.facts | nested


def _close(arguments: argparse.Namespace, settings: Settings) -> None:
    """Close a run and say so in the directory; done again, it completes what a kill left."""
    name = arguments.run
    with open_session(settings, name) as session:
        row = session.run
        facts: dict[str, object] = {"run": name, "status": "closed"}
        line = f"{name} was closed already"
        if row["status"] != "closed":
            closed = session.write(RunClosed, session.person(arguments.key), reason=arguments.reason)
            facts |= closed.facts()
            line = f"{name} closed at offset {closed.offset}"
        goal = text(session.existing("Goal", text(row, "goal")), "text")
        opened_at = number(session.existing("Event", number(row, "created_offset")), "occurred_at")
    with Producer(settings.bootstrap_servers) as producer:
        announce(settings, name, goal, opened_at, producer, status="closed")
    print_result(line, facts, arguments.format)
