"""`forktrail dead`: what becomes of the records that a run refused for what they are."""

from __future__ import annotations

import argparse

from forktrail_lab.console.arguments import (
    add_action,
    add_actions,
    add_actor,
    add_format,
    add_key,
    add_reason,
    add_run,
    login_name,
    offset,
)
from forktrail_lab.console.dead_letter import (
    acknowledged_in_words,
    acknowledgement_facts,
    find_letter,
    letter_facts,
    letter_lines,
    verdict_facts,
)
from forktrail_lab.console.output import Format, counted, note, print_lines, print_result, print_rows, to_json
from forktrail_lab.console.resending import check_signer, check_worth, headers_to_resend, signed_headers
from forktrail_producers.dead_letter_topic import DeadLetterTopic
from forktrail_producers.producer import Producer
from forktrail_projectors.dead_letters import dead_verdicts, valid_again
from forktrail_projectors.projection import open_projection
from forktrail_projectors.rules.reasons import in_words
from forktrail_schemas.errors import ExitCode
from forktrail_schemas.events import DeadLetterAcknowledged
from forktrail_schemas.ids import now_micros
from forktrail_schemas.settings import Settings
from forktrail_schemas.wire import build

LIST_EXAMPLE = "  forktrail dead list $RUN\n  forktrail dead list $RUN --all --format json"
SHOW_EXAMPLE = "  forktrail dead show $RUN 12"
RESEND_EXAMPLE = """  forktrail dead resend $RUN 12
  forktrail key register $RUN olga-2 --holder olga --role operator
  forktrail dead resend $RUN 12 --key olga-2"""
ACK_EXAMPLE = "  forktrail dead ack $RUN 12 --reason 'a scanner of the old version; it was sent again by the new one'"
EXAMPLE = "\n".join((LIST_EXAMPLE, SHOW_EXAMPLE, RESEND_EXAMPLE, ACK_EXAMPLE))
COLUMNS = ("offset", "type", "verdict", "reason", "detail", "valid_at_offset")


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare list, show, resend and ack."""
    actions = add_actions(parser, "list|show|resend|ack")
    listing = add_action(actions, "list", "list what nobody has acknowledged yet", LIST_EXAMPLE)
    add_run(listing)
    listing.add_argument("--all", action="store_true", help="what was acknowledged, too")
    add_format(listing, rows=True)
    show = add_action(actions, "show", "show verdict, headers, fields and bytes of a record", SHOW_EXAMPLE)
    _add_letter(show)
    resend = add_action(
        actions, "resend", "append the record once more, as a new event; the old verdict stands", RESEND_EXAMPLE
    )
    _add_letter(resend)
    add_key(resend, unless="a record whose signature is right, or that needs none")
    resend.add_argument("--force", action="store_true", help="send what would be refused again, too")
    acknowledge = add_action(
        actions,
        "ack",
        "take a record off the list, since it is dealt with; done again, another reason takes the place of the first",
        ACK_EXAMPLE,
    )
    _add_letter(acknowledge)
    add_reason(acknowledge, required=True)
    add_actor(acknowledge, "who says so (default: the login name)")


def run(arguments: argparse.Namespace, settings: Settings) -> int:
    """Do the action.

    Raises:
        NotFound: no such run, or no dead letter at this offset.
    """
    actions = {"list": _list, "show": _show, "resend": _resend, "ack": _acknowledge}
    return actions[arguments.action](arguments, settings)


def _add_letter(parser: argparse.ArgumentParser) -> None:
    add_run(parser)
    parser.add_argument("offset", type=offset, metavar="OFFSET", help="as `forktrail dead list` shows it")
    add_format(parser)


def _list(arguments: argparse.Namespace, settings: Settings) -> int:
    """List from the graph, but for what the topic says is acknowledged; the topic may be empty."""
    with open_projection(settings, arguments.run, say=note) as view:
        verdicts = list(dead_verdicts(view.graph, 0, view.next_offset))
        again = valid_again(view.graph, (verdict.offset for verdict in verdicts))
    acknowledged = DeadLetterTopic(settings.bootstrap_servers).of_run(arguments.run).acknowledged if verdicts else {}
    listed = [verdict for verdict in verdicts if arguments.all or verdict.offset not in acknowledged]
    facts = [
        verdict_facts(verdict)
        | {"valid_at_offset": again.get(verdict.offset)}
        | {"acknowledged": acknowledgement_facts(acknowledged.get(verdict.offset))}
        for verdict in listed
    ]
    if arguments.format == Format.JSON:
        print(to_json(facts, indent=2))
    else:
        columns = (*COLUMNS, "acknowledged") if arguments.all else COLUMNS
        print_rows(columns, [[_cell(row[name]) for name in columns] for row in facts], arguments.format)
    note(f"{counted(len(verdicts), 'dead letter')}, {sum(v.offset in acknowledged for v in verdicts)} acknowledged")
    cured = [verdict.offset for verdict in verdicts if verdict.offset in again and verdict.offset not in acknowledged]
    if cured:
        note(f"sent again, the bytes of {counted(len(cured), 'letter')} became valid: {_acknowledging(arguments.run)}")
    return ExitCode.OK


def _acknowledging(run: str, offset: int | None = None) -> str:
    """How to take a letter off the list."""
    return f"`forktrail dead ack {run} {'OFFSET' if offset is None else offset} --reason …` takes it off the list"


def _cell(value: object) -> object:
    """A fact in a cell: of an acknowledgement, who made it; nothing said is nothing shown."""
    return value["by"] if isinstance(value, dict) else None if value == "" else value


def _show(arguments: argparse.Namespace, settings: Settings) -> int:
    with open_projection(settings, arguments.run, say=note) as view:
        verdict = find_letter(view, arguments.offset)
        told = DeadLetterTopic(settings.bootstrap_servers).of_run(arguments.run)
        letter, acknowledged = told.letters.get(verdict.offset), told.acknowledged.get(verdict.offset)
        facts = letter_facts(view, view.reader.record_at(verdict.offset), verdict, letter, acknowledged)
    if arguments.format == Format.JSON:
        print(to_json(facts, indent=2))
    else:
        print_lines(letter_lines(facts))
    return ExitCode.OK


def _resend(arguments: argparse.Namespace, settings: Settings) -> int:
    """Append the same bytes and headers, or sign them anew; exit 1 where the new record doesn't count either.

    Raises:
        InvalidInput: it would be refused again, as it is or under this key, the headers can't be read, or there is
            nothing to sign; nothing was sent.
    """
    with open_projection(settings, arguments.run, say=note) as view:
        old = find_letter(view, arguments.offset)
        record = view.reader.record_at(arguments.offset)
        if not arguments.force:
            check_worth(view.graph, record, old, signed_anew=arguments.key is not None)
            check_signer(view.graph, record, arguments.run, settings, arguments.key)
        if arguments.key:
            headers = signed_headers(view.graph, record, settings, arguments.key)
        else:
            headers = headers_to_resend(record)
        with Producer(settings.bootstrap_servers) as producer:
            made = producer.emit_raw(arguments.run, record.key, record.value, headers)
        view.catch_up(made + 1)
        verdict = view.verdict(made)
    why = f": {in_words(verdict.reason, verdict.detail)}" if verdict.reason else ""
    line = f"offset {record.offset} of {arguments.run} was sent again as offset {made}, which is {verdict.kind}{why}"
    facts = {"run": arguments.run, "resent": record.offset, **verdict_facts(verdict)}
    print_result(line, facts, arguments.format)
    if verdict.valid:
        note(f"offset {record.offset} stays refused: {_acknowledging(arguments.run, record.offset)}")
    return ExitCode.OK if verdict.valid else ExitCode.ERROR


def _acknowledge(arguments: argparse.Namespace, settings: Settings) -> int:
    """Say that a letter is dealt with, unless that was said before with this reason; another reason takes its place."""
    with open_projection(settings, arguments.run, say=note) as view:
        verdict = find_letter(view, arguments.offset)
    topic = DeadLetterTopic(settings.bootstrap_servers)
    before = topic.of_run(arguments.run).acknowledged.get(verdict.offset)
    told = acknowledgement_facts(before)
    place = f"offset {verdict.offset} of {arguments.run}"
    facts = {"run": arguments.run, "offset": verdict.offset, "before": told}
    if before is not None and told is not None and before.reason == arguments.reason:
        line = f"{place} is already acknowledged {acknowledged_in_words(told)}"
        print_result(line, facts | {"acknowledged": told}, arguments.format)
        return ExitCode.OK
    fields = {
        "run": arguments.run,
        "offset": verdict.offset,
        "by": arguments.actor or login_name(),
        "reason": arguments.reason,
        "acknowledged_at": now_micros(),
    }
    acknowledgement = build(DeadLetterAcknowledged, fields)
    with Producer(settings.bootstrap_servers) as producer:
        topic.acknowledge(acknowledgement, producer)
    line = f"{place} is acknowledged by {acknowledgement.by}"
    if told is not None:
        line += f"; before, it was {acknowledged_in_words(told)}"
    print_result(line, facts | {"acknowledged": acknowledgement_facts(acknowledgement)}, arguments.format)
    return ExitCode.OK
