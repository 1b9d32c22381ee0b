"""`forktrail review`: accept or reject an observation."""

from __future__ import annotations

import argparse
from typing import get_args

from forktrail_lab.console.arguments import add_case, add_format, add_key, add_run
from forktrail_lab.console.named import find_case, observation_of
from forktrail_lab.console.output import print_made
from forktrail_lab.console.session import open_session
from forktrail_lab.evidence import confirm_of_case, stored_evidence
from forktrail_producers.blobs import BlobStore
from forktrail_schemas.errors import ExitCode
from forktrail_schemas.events import ReviewDecided
from forktrail_schemas.events.evidence import ReviewDecision
from forktrail_schemas.ids import derived_id
from forktrail_schemas.settings import Settings

EXAMPLE = "  FINDING=$(forktrail review $RUN case-3f accept --key ravi --note 'both responses are in the transcript')"
ACCEPT = "accept"
_PAST = {ACCEPT: "accepted", "reject": "rejected"}


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare run, case, decision, key and note."""
    add_run(parser)
    add_case(parser)
    parser.add_argument("decision", choices=get_args(ReviewDecision))
    add_key(parser)
    parser.add_argument("--note", metavar="TEXT", default="", help="for the record")
    add_format(parser)


def run(arguments: argparse.Namespace, settings: Settings) -> int:
    """Write the review; accepting a reproduced observation makes a finding, whose id is printed.

    Nothing is accepted whose evidence isn't what its runner stored and signed for; it can be rejected.

    Raises:
        InvalidInput: there is no observation to review yet; nothing was sent.
        Corruption: the evidence is missing, or other than it was; nothing was sent.
        EventVoid: the rules refused it, because the reviewer is also the approver, say.
    """
    with open_session(settings, arguments.run) as session:
        case = find_case(session, arguments.case)
        observation = observation_of(session, case)
        if arguments.decision == ACCEPT:
            _, transcript = stored_evidence(BlobStore(str(settings.blobs_dir)), observation)
            confirm_of_case(transcript, str(case["id"]), arguments.run)
        person = session.person(arguments.key)
        written = session.write(
            ReviewDecided,
            person,
            causes=[str(observation["created_event"])],
            case_id=case["id"],
            observation_id=observation["id"],
            decision=arguments.decision,
            note=arguments.note,
        )
        made = session.row("Finding", derived_id("finding", written.event_id))
    finding = None if made is None else str(made["id"])
    facts = written.facts() | {
        "case_id": case["id"],
        "test_id": case["test"],
        "decision": arguments.decision,
        "outcome": case["outcome"],
        "reviewer": person.id,
        "finding_id": finding,
    }
    line = f"{case['id']} ({case['test']}, {case['outcome']}) {_PAST[arguments.decision]} by {person.id}"
    came_of_it = "no finding" if finding is None else finding
    print_made(finding, f"{line}: {came_of_it} (offset {written.offset})", facts, arguments.format)
    return ExitCode.OK
