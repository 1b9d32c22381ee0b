"""`forktrail evidence`: recomputes stored evidence, receipts and outcomes."""

from __future__ import annotations

import argparse
import dataclasses
from pathlib import Path

from forktrail_lab.console.arguments import add_action, add_actions, add_format, add_run
from forktrail_lab.console.output import Format, note, print_rows, to_json
from forktrail_lab.evidence import EvidenceCheck, check_evidence
from forktrail_lab.registry.catalog import registry_of_run
from forktrail_producers.blobs import BlobStore
from forktrail_projectors.projection import open_projection
from forktrail_schemas.errors import Corruption, ExitCode
from forktrail_schemas.settings import Settings

EXAMPLE = "  forktrail evidence verify $RUN"
COLUMNS = ("observation", "test", "revision", "outcome", "evidence", "result")


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare verify."""
    verify = add_action(
        add_actions(parser, "verify"), "verify", "recompute digest, receipt and outcome of every observation", EXAMPLE
    )
    add_run(verify)
    verify.add_argument("--registry", type=Path, metavar="FILE", help="instead of the one the run was opened with")
    add_format(verify)


def run(arguments: argparse.Namespace, settings: Settings) -> int:
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
            f"{len(faulty)} of {len(checks)} observations don't hold: {first.observation_id}: {first.faults[0]}",
            code="evidence_invalid",
            hint="restore the blobs from a copy, or have the findings withdrawn",
        )
    note(f"{len(checks)} observations hold: digests, receipts and outcomes recomputed")
    return ExitCode.OK


def _row(check: EvidenceCheck) -> tuple[str, ...]:
    result = "; ".join(check.faults) or "holds"
    return (check.observation_id, check.test_id, check.revision, check.outcome, check.evidence_sha256[:12], result)
