"""What `forktrail approve` and `forktrail deny` share: a person's yes or no to a case, or to what a behavior asks."""

from __future__ import annotations

import argparse
from dataclasses import dataclass

from forktrail_lab.console.arguments import add_format, add_key, add_reason, add_run
from forktrail_lab.console.named import CALL, find_call, find_case
from forktrail_lab.console.output import print_result
from forktrail_lab.console.session import RunSession, open_session
from forktrail_schemas.events import ApprovalDecided
from forktrail_schemas.events.evidence import ApprovalDecision
from forktrail_schemas.ids import derived_id
from forktrail_schemas.settings import Settings

_PAST: dict[ApprovalDecision, str] = {"approve": "approved", "deny": "denied"}


def configure_decision(parser: argparse.ArgumentParser) -> None:
    """Declare run, case or request, key and reason."""
    add_run(parser)
    parser.add_argument(
        "case", metavar="ID", help="case, or a behavior's request (call-…): its id, or the first characters of one"
    )
    add_key(parser)
    add_reason(parser)
    add_format(parser)


def decide(arguments: argparse.Namespace, settings: Settings, decision: ApprovalDecision) -> None:
    """Write the decision on the case or request that `arguments` names, and print what came of it.

    Raises:
        NotFound: no such run, case, request or key.
        EventVoid: the rules refused it, because it is decided already, say.
    """
    with open_session(settings, arguments.run) as session:
        subject = _subject(session, arguments.case)
        person = session.person(arguments.key)
        written = session.write(
            ApprovalDecided,
            person,
            causes=[subject.event_id],
            subject={"kind": subject.kind, "id": subject.id},
            decision=decision,
            reason=arguments.reason,
        )
    facts = written.facts() | subject.facts
    facts |= {
        "decision": decision,
        "approver": person.id,
        "approval_id": derived_id("approval", written.event_id),
    }
    line = f"{subject.id} ({subject.told}) {_PAST[decision]} by {person.id} at offset {written.offset}"
    print_result(line, facts, arguments.format)


@dataclass(frozen=True)
class _Subject:
    """What is decided on: a case, or what a behavior has put to people."""

    kind: str
    id: str
    told: str
    event_id: str
    facts: dict[str, object]


def _subject(session: RunSession, name: str) -> _Subject:
    """The case or request of that name; a request's begins with `call-`."""
    if name.startswith(CALL.prefix):
        call = find_call(session, name)
        id, told = str(call["id"]), str(call["name"])
        return _Subject("request", id, told, str(call["created_event"]), {"call_id": id, "title": told})
    case = find_case(session, name)
    id, test = str(case["id"]), str(case["test"])
    return _Subject("case", id, test, str(case["created_event"]), {"case_id": id, "test_id": test})
