"""`forktrail evidence`: prints stored evidence, or recomputes it with receipts and outcomes."""

from __future__ import annotations

import argparse
import dataclasses
import sys
from pathlib import Path

from forktrail_lab.console.arguments import add_action, add_actions, add_case, add_format, add_run
from forktrail_lab.console.named import find_case, observation_of
from forktrail_lab.console.output import Format, counted, note, print_lines, print_rows, to_json
from forktrail_lab.console.session import open_session
from forktrail_lab.console.transcript_text import BODY_CHARACTERS_SHOWN, transcript_lines
from forktrail_lab.evidence import EvidenceCheck, check_evidence, confirm_of_case, stored_evidence
from forktrail_lab.registry.catalog import registry_of_run
from forktrail_producers.blobs import BlobStore
from forktrail_projectors.projection import open_projection
from forktrail_schemas.errors import Corruption, ExitCode
from forktrail_schemas.settings import Settings

VERIFY_EXAMPLE = "  forktrail evidence verify $RUN"
SHOW_EXAMPLE = "  forktrail evidence show $RUN case-3f"
EXAMPLE = f"{SHOW_EXAMPLE}\n{VERIFY_EXAMPLE}"
COLUMNS = ("observation", "test", "revision", "outcome", "evidence", "result")


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare show and verify."""
    actions = add_actions(parser, "show|verify")
    show = add_action(actions, "show", "print what was sent for a case and what came back", SHOW_EXAMPLE)
    add_run(show)
    add_case(show)
    show.add_argument(
        "--full", action="store_true", help=f"bodies of more than {BODY_CHARACTERS_SHOWN} characters whole, too"
    )
    add_format(show)
    verify = add_action(actions, "verify", "recompute digest, receipt and outcome of every observation", VERIFY_EXAMPLE)
    add_run(verify)
    verify.add_argument("--registry", type=Path, metavar="FILE", help="instead of the one the run was opened with")
    add_format(verify)


def run(arguments: argparse.Namespace, settings: Settings) -> int:
    """Do the action."""
    return _show(arguments, settings) if arguments.action == "show" else _verify(arguments, settings)


def _show(arguments: argparse.Namespace, settings: Settings) -> int:
    """Print the exchanges, read from the blob store and checked against the digest in the log; as JSON, those bytes.

    Raises:
        InvalidInput: the case has no observation yet.
        Corruption: the stored bytes are missing or others, or of another case; that is said once they are printed.
    """
    with open_session(settings, arguments.run) as session:
        case = find_case(session, arguments.case)
        observation = observation_of(session, case)
    data, transcript = stored_evidence(BlobStore(str(settings.blobs_dir)), observation)
    if arguments.format == Format.JSON:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    else:
        print_lines(transcript_lines(transcript, full=arguments.full))
    note(f"evidence {observation['evidence_sha256']}, {counted(len(data), 'byte')}: the digest is right")
    confirm_of_case(transcript, str(case["id"]), arguments.run)
    return ExitCode.OK


def _verify(arguments: argparse.Namespace, settings: Settings) -> int:
    """Print what recomputing gave.

    Raises:
        Corruption: something didn't hold; everything was checked and printed first.
    """
    blobs = BlobStore(str(settings.blobs_dir))
    with open_projection(settings, arguments.run, say=note) as projection:
        registry = registry_of_run(projection.graph, blobs, arguments.registry)
        checks = check_evidence(projection.graph, blobs, registry)
    if arguments.format == Format.JSON:
        print(to_json([dataclasses.asdict(check) for check in checks], indent=2))
    else:
        print_rows(COLUMNS, [_row(check) for check in checks], arguments.format)
    faulty = [check for check in checks if check.faults]
    if faulty:
        first = faulty[0]
        raise Corruption(
            f"{len(faulty)} of {counted(len(checks), 'observation')} failed: {first.observation_id}: {first.faults[0]}",
            code="evidence_invalid",
            hint="restore the blobs from a copy, or have the findings withdrawn",
        )
    note(f"{counted(len(checks), 'observation')} recomputed: digests, receipts and outcomes hold")
    return ExitCode.OK


def _row(check: EvidenceCheck) -> tuple[str, ...]:
    result = "; ".join(check.faults) or "holds"
    return (check.observation_id, check.test_id, check.revision, check.outcome, check.evidence_sha256[:12], result)
