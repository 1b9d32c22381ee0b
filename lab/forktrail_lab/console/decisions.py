"""What `forktrail approve` and `forktrail deny` share: a person's yes or no to a case."""

from __future__ import annotations

import argparse

from forktrail_lab.console.arguments import add_case, add_format, add_key, add_reason, add_run
from forktrail_lab.console.named import find_case
from forktrail_lab.console.output import print_result
from forktrail_lab.console.session import open_session
from forktrail_schemas.events import ApprovalDecided
from forktrail_schemas.events.evidence import ApprovalDecision
from forktrail_schemas.ids import derived_id
from forktrail_schemas.settings import Settings

_PAST: dict[ApprovalDecision, str] = {"approve": "approved", "deny": "denied"}


def configure_decision(parser: argparse.ArgumentParser) -> None:
    """Declare run, case, key and reason."""
    add_run(parser)
    add_case(parser)
    add_key(parser)
    add_reason(parser)
    add_format(parser)


def decide(arguments: argparse.Namespace, settings: Settings, decision: ApprovalDecision) -> None:
    """Write the decision on the case that `arguments` names, and print what came of it.

    Raises:
        NotFound: no such run, case or key.
        EventVoid: the rules refused it, because the case is decided already, say.
    """
    with open_session(settings, arguments.run) as session:
        case = find_case(session, arguments.case)
        person = session.person(arguments.key)
        written = session.write(
            ApprovalDecided,
            person,
            causes=[str(case["created_event"])],
            subject={"kind": "case", "id": case["id"]},
            decision=decision,
            reason=arguments.reason,
        )
    facts = written.facts() | {
        "case_id": case["id"],
        "test_id": case["test"],
        "decision": decision,
        "approver": person.id,
        "approval_id": derived_id("approval", written.event_id),
    }
    line = f"{case['id']} ({case['test']}) {_PAST[decision]} by {person.id} at offset {written.offset}"
    print_result(line, facts, arguments.format)
