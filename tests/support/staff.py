"""A run opened on the command line with the shipped registry, people's keys registered in it, and a stand-in runner.

The stand-in writes what a runner would, without a request: commands about observations need some to be there.
"""

from __future__ import annotations

from collections.abc import Iterable

from forktrail_lab.exchange.transcript import Transcript, evidence_bytes
from forktrail_lab.registry.file import shipped_registry_path
from forktrail_producers.blobs import BlobStore
from forktrail_producers.keys import KeyStore
from forktrail_producers.producer import Producer, meta
from forktrail_projectors.projection import fold_in_memory
from forktrail_projectors.receipts import Statement, sign_receipt
from forktrail_projectors.state import NodeKey, Row
from forktrail_schemas.events import KeyRegistered, ObservationRecorded, TestStarted
from forktrail_schemas.settings import Settings
from forktrail_schemas.signatures import SigningKey
from forktrail_schemas.wire import build
from support.command_line import CommandLine

GATEWAY, INVOICE = "gateway-routing-context", "invoice-tenant-boundary"
ROLES = {"olga": "operator", "ravi": "reviewer", "runner-1": "runner"}


def open_staffed_run(forktrail: CommandLine, settings: Settings) -> str:
    """A new run with a key for an operator, a reviewer and a runner; returns its id."""
    run = open_run(forktrail)
    store = KeyStore(settings.keys_dir)
    register(settings, run, [(store.new(name), name, role) for name, role in ROLES.items()])
    return run


def register(settings: Settings, run: str, keys: Iterable[tuple[SigningKey, str, str]]) -> None:
    """Register keys, each with its holder and role, signed by the local `admin`; in one go, without a graph."""
    admin = KeyStore(settings.keys_dir).load("admin")
    with Producer(settings.bootstrap_servers) as producer:
        producer.emit_all([(_registration(run, key, holder, role), admin) for key, holder, role in keys])


def open_run(forktrail: CommandLine, *words: str) -> str:
    """A new run with the shipped registry; returns its id."""
    registry = str(shipped_registry_path())
    return forktrail.ok("run", "open", "--registry", registry, "--goal", "see what breaks", *words).out.strip()


def report(forktrail: CommandLine, run: str, test: str = GATEWAY) -> str:
    """A report by rita; returns the id of the case that it opens."""
    said = forktrail.ok("report", run, test, "--as", "rita", "--summary", "look here", "--format", "json").json
    assert said["outcome"] == "case_opened", said
    return str(said["case_id"])


def observe(
    settings: Settings,
    run: str,
    case_id: str,
    outcome: str,
    *,
    runner: str = "runner-1",
    evidence_sha256: str | None = None,
) -> str:
    """Take an approved case and observe it, with a receipt by the runner's key; returns the observation's event id.

    Args:
        evidence_sha256: of what is in the blob store; None stores a transcript in which nothing was sent.
    """
    key = KeyStore(settings.keys_dir).load(runner)
    graph, _ = fold_in_memory(settings, run)
    case = graph.nodes([NodeKey("Case", case_id)])[NodeKey("Case", case_id)]
    test = NodeKey("TestCase", str(case["test"]))
    if evidence_sha256 is None:
        evidence_sha256 = _store_evidence(settings, case)
    size = len(BlobStore(str(settings.blobs_dir)).get(evidence_sha256))
    statement = Statement(evidence_sha256, case_id, str(case["test"]), str(case["revision"]), outcome)
    started = build(
        TestStarted,
        {"meta": meta(run, "service", runner), "case_id": case_id, "approval_id": case["approval"]},
    )
    observed = build(
        ObservationRecorded,
        {
            "meta": meta(run, "service", runner),
            "case_id": case_id,
            "test_id": case["test"],
            "revision": case["revision"],
            "outcome": outcome,
            "reason": "as the test says",
            "evidence": {"sha256": evidence_sha256, "size": size, "media_type": "application/json"},
            "requests": graph.nodes([test])[test]["requests_max"],
            "interrupted": False,
            "receipt": sign_receipt(statement, key),
        },
    )
    with Producer(settings.bootstrap_servers) as producer:
        producer.emit_all([(started, key), (observed, key)])
    return observed.meta.event_id


def _store_evidence(settings: Settings, case: Row) -> str:
    transcript = Transcript(
        case_id=str(case["id"]),
        test_id=str(case["test"]),
        revision=str(case["revision"]),
        definition_sha256="0" * 64,
        target="http://127.0.0.1:1",
        exchanges=(),
    )
    return BlobStore(str(settings.blobs_dir)).put(evidence_bytes(transcript))


def _registration(run: str, key: SigningKey, holder: str, role: str) -> KeyRegistered:
    fields = {
        "meta": meta(run, "human", "admin"),
        "key_id": key.key_id,
        "public_key": key.public_key,
        "holder": holder,
        "holder_kind": "service" if role == "runner" else "human",
        "roles": [role],
    }
    return build(KeyRegistered, fields)
