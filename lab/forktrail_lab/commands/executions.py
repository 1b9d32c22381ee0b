"""`forktrail executions`: what behaviors did and wait for; and how a person ends one, or settles a call of it."""

from __future__ import annotations

import argparse

from forktrail_lab.console.arguments import add_action, add_actions, add_format, add_key, add_reason, add_run
from forktrail_lab.console.named import find_call, find_execution
from forktrail_lab.console.output import Format, print_facts, print_lines, print_result, print_rows, table_lines
from forktrail_lab.console.session import RunSession, open_session
from forktrail_projectors.state import Row
from forktrail_schemas.errors import ExitCode
from forktrail_schemas.events import EffectResolved, ExecutionCancelled
from forktrail_schemas.settings import Settings

LIST_EXAMPLE = "  forktrail executions list $RUN\n  forktrail executions list $RUN --status running"
SHOW_EXAMPLE = "  forktrail executions show $RUN 3f2a"
CANCEL_EXAMPLE = "  forktrail executions cancel $RUN 3f2a --reason 'asked twice' --key olga"
RESOLVE_EXAMPLE = (
    """  forktrail executions resolve $RUN call-77 ok --answer '"paid"' --reason 'the bank says so' --key olga"""
)
EXAMPLE = "\n".join((LIST_EXAMPLE, SHOW_EXAMPLE, CANCEL_EXAMPLE, RESOLVE_EXAMPLE))
STATUSES = ("running", "completed", "failed", "cancelled")
LIST_COLUMNS = ("id", "behavior", "handler", "status", "calls", "waiting", "started_at_offset", "error")
CALL_COLUMNS = ("id", "path", "kind", "name", "status", "outcome", "request", "answer", "error")
OUTPUT_COLUMNS = ("offset", "type", "subject", "verdict", "reason")

_LIST = """
MATCH (x:Execution) WHERE x.status IN $statuses
OPTIONAL MATCH (x)-[:ASKED]->(c:`Call`)
RETURN x.id, x.behavior, x.handler, x.status, count(c.id) AS calls,
       sum(CASE WHEN c.status <> 'answered' THEN 1 ELSE 0 END) AS waiting, x.created_offset AS since, x.error_type
ORDER BY since
"""
_CALLS = """
MATCH (:Execution {id: $id})-[:ASKED]->(c:`Call`)
RETURN c.id, c.path, c.kind, c.name, c.status, c.outcome, c.request, c.answer, c.error ORDER BY c.created_offset
"""
_OUTPUTS = """
MATCH (x:Execution {id: $id})
MATCH (s:Event {id: x.created_event})
MATCH (s)-[:CAUSED]->(e:Event)
RETURN e.offset, e.type, e.subject, e.verdict, e.reason ORDER BY e.offset
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare list, show, cancel and resolve."""
    actions = add_actions(parser, "list|show|cancel|resolve")
    listing = add_action(actions, "list", "list the executions of behaviors", LIST_EXAMPLE)
    add_run(listing)
    listing.add_argument("--status", choices=STATUSES, help="of one status (default: all)")
    add_format(listing, rows=True)
    show = add_action(actions, "show", "show what an execution was given, asked for and made", SHOW_EXAMPLE)
    _add_execution(show)
    add_format(show)
    cancel = add_action(actions, "cancel", "end an execution where it stands", CANCEL_EXAMPLE)
    _add_execution(cancel)
    add_reason(cancel, required=True)
    add_key(cancel)
    add_format(cancel)
    resolve = add_action(
        actions, "resolve", "settle a call of which nobody knows whether it was carried out", RESOLVE_EXAMPLE
    )
    add_run(resolve)
    resolve.add_argument("call", metavar="CALL", help="call id, or the first characters of one")
    resolve.add_argument("outcome", choices=("ok", "error"), help="what came of it")
    resolve.add_argument("--answer", metavar="JSON", help="what it answered, where it was carried out")
    add_reason(resolve, required=True)
    add_key(resolve)
    add_format(resolve)


def run(arguments: argparse.Namespace, settings: Settings) -> int:
    """Do the action."""
    actions = {"list": _list, "show": _show, "cancel": _cancel, "resolve": _resolve}
    with open_session(settings, arguments.run) as session:
        actions[arguments.action](arguments, session)
    return ExitCode.OK


def _list(arguments: argparse.Namespace, session: RunSession) -> None:
    statuses = (arguments.status,) if arguments.status else STATUSES
    print_rows(LIST_COLUMNS, session.query(_LIST, statuses=statuses).rows, arguments.format)


def _show(arguments: argparse.Namespace, session: RunSession) -> None:
    execution = find_execution(session, arguments.execution)
    id = str(execution["id"])
    facts = _facts(execution)
    calls, outputs = session.query(_CALLS, id=id).rows, session.query(_OUTPUTS, id=id).rows
    tables = {"calls": (CALL_COLUMNS, calls), "outputs": (OUTPUT_COLUMNS, outputs)}
    if arguments.format == Format.JSON:
        nested = {
            name: [dict(zip(columns, row, strict=True)) for row in rows] for name, (columns, rows) in tables.items()
        }
        print_facts(facts | nested, arguments.format)
        return
    print_facts(facts, arguments.format)
    for columns, rows in tables.values():
        print()
        print_lines(table_lines(columns, rows))


def _facts(execution: Row) -> dict[str, object]:
    shown = ("id", "behavior", "version", "handler", "trigger", "match", "status", "error_type", "message")
    facts: dict[str, object] = {name: execution[name] for name in shown}
    return facts | {"started_at_offset": execution["created_offset"]}


def _cancel(arguments: argparse.Namespace, session: RunSession) -> None:
    execution = find_execution(session, arguments.execution)
    written = session.write(
        ExecutionCancelled,
        session.person(arguments.key),
        causes=[str(execution["created_event"])],
        execution_id=execution["id"],
        reason=arguments.reason,
    )
    line = f"{execution['id']} ({execution['behavior']}) cancelled at offset {written.offset}"
    print_result(line, written.facts() | {"execution_id": execution["id"]}, arguments.format)


def _resolve(arguments: argparse.Namespace, session: RunSession) -> None:
    call = find_call(session, arguments.call)
    written = session.write(
        EffectResolved,
        session.person(arguments.key),
        causes=[str(call["created_event"])],
        call_id=call["id"],
        outcome=arguments.outcome,
        answer=arguments.answer,
        reason=arguments.reason,
    )
    line = f"{call['id']} ({call['name']}) settled as {arguments.outcome} at offset {written.offset}"
    print_result(line, written.facts() | {"call_id": call["id"], "outcome": arguments.outcome}, arguments.format)


def _add_execution(parser: argparse.ArgumentParser) -> None:
    add_run(parser)
    parser.add_argument("execution", metavar="EXECUTION", help="execution id, or the first characters of one")
