"""One event of each type, as plain fields: all that a class or the codec needs to be tried on each."""

from __future__ import annotations

from typing import Any

from forktrail_schemas import events
from forktrail_schemas.events.base import Event

EVENT_ID = "017f22e2-79b0-7cc3-98c4-dc0c0c07398f"
CASE_ID = "case-0123456789abcdef0123"
CLAIM_ID = "claim-0123456789abcdef0123"
CALL_ID = "call-0123456789abcdef0123"
DIGEST = "ab" * 32


def meta(**changes: Any) -> dict[str, Any]:
    """The fields of a `meta`, some of them changed."""
    fields = {
        "event_id": EVENT_ID,
        "run": "demo",
        "occurred_at": 1_700_000_000_000_001,
        "actor": {"kind": "human", "id": "rita"},
        "causes": ["00000000-0000-7000-8000-000000000001"],
        "goal": "goal-0123456789abcdef0123",
        "execution": {
            "id": "00000000-0000-7000-8000-000000000002",
            "behavior": "ask",
            "version": "1",
            "handler": "on_case",
            "match": ["a", "b"],
            "path": "0.1",
        },
        "frame": "frame 1",
    }
    return {**fields, **changes}


BLOB = {"sha256": DIGEST, "size": 70_000, "media_type": "application/json"}

CLAIM = {"object_type": "Claim", "object_id": CLAIM_ID}
SUPPORTS = {
    "relation_type": "SUPPORTS",
    "source_type": "Document",
    "source_id": "document-0123456789abcdef0123",
    "target_type": "Claim",
    "target_id": CLAIM_ID,
}
ASKED = {"name": "questions", "request": '{"tool":"questions"}', "request_sha256": DIGEST}
ANSWERED = {"call_id": CALL_ID, "outcome": "ok", "answer": "[1,2.5]", "blob": BLOB, "error": "", "cost_micros": 30}

SAMPLES: dict[type[Event], dict[str, Any]] = {
    events.RunOpened: {"goal": "look", "revision": "r1", "admin_public_key": DIGEST, "registry": BLOB},
    events.RunClosed: {"reason": "done"},
    events.KeyRegistered: {
        "key_id": DIGEST,
        "public_key": DIGEST,
        "holder": "olga",
        "holder_kind": "human",
        "roles": ["operator", "runner"],
    },
    events.KeyRevoked: {"key_id": DIGEST, "reason": "lost"},
    events.SettingChanged: {"name": "same-person-may-review", "value": "true"},
    events.BudgetSet: {"name": "cases", "limit": 3},
    events.PolicySet: {"type_name": "Claim", "changes": ["create", "retire"], "reason": "they matter"},
    events.GoalSet: {"text": "look deeper"},
    events.SchemaDeclared: {"fingerprint": "0123456789abcdef", "text": "{}"},
    events.TestRegistered: {
        "test_id": "gateway",
        "title": "Gateway",
        "asset_id": "gateway",
        "requires": ["a", "b"],
        "enables": ["c"],
        "impact": 70,
        "requests_max": 2,
        "definition_sha256": DIGEST,
    },
    events.ReportFiled: {"test_id": "gateway", "summary": "look here", "details": "line 1\nline 2"},
    events.TestProposed: {
        "test_id": "gateway",
        "revision": "r1",
        "finding_ids": ["finding-0123456789abcdef0123"],
        "as_of": 12,
        "rationale": "highest impact",
    },
    events.ApprovalDecided: {"subject": {"kind": "case", "id": CASE_ID}, "decision": "approve", "reason": ""},
    events.TestStarted: {"case_id": CASE_ID, "approval_id": "approval-0123456789abcdef0123"},
    events.ObservationRecorded: {
        "case_id": CASE_ID,
        "test_id": "gateway",
        "revision": "r1",
        "outcome": "reproduced",
        "reason": "rule 1",
        "evidence": BLOB,
        "requests": 2,
        "interrupted": False,
        "receipt": "{}",
    },
    events.ReviewDecided: {
        "case_id": CASE_ID,
        "observation_id": "observation-0123456789abcdef0123",
        "decision": "accept",
        "note": "seen",
    },
    events.RevisionAdvanced: {"from_revision": "r1", "to_revision": "r2", "reason": "fixed"},
    events.RetryRequested: {"case_id": CASE_ID, "reason": "service was down"},
    events.FindingWithdrawn: {"finding_id": "finding-0123456789abcdef0123", "reason": "wrong"},
    events.TypeDeclared: {
        "name": "Claim",
        "kind": "object",
        "json_schema": '{"type":"object","properties":{"about":{"type":"string"},"text":{"type":"string"}}}',
        "references": [{"property": "about", "object_type": "Company"}],
        "sources": ["Claim"],
        "targets": ["Company"],
        "personal": ["text"],
        "merge": [{"property": "text", "by": "max"}],
    },
    events.BehaviorRegistered: {
        "name": "ask",
        "version": "1",
        "code_sha256": DIGEST,
        "subscriptions": '[{"on":"ObjectCreated"}]',
        "emits": ["Claim"],
    },
    events.ObjectCreated: {"object_type": "Claim", "object_id": CLAIM_ID, "data": '{"text":"a"}'},
    events.ObjectPatched: {**CLAIM, "data": '{"text":null}', "expected_version": 3},
    events.ObjectRetired: {**CLAIM, "reason": "wrong"},
    events.RelationCreated: {**SUPPORTS, "data": '{"weight":0.5}'},
    events.RelationRetired: {**SUPPORTS, "reason": "no longer"},
    events.WorkerClaimed: {"worker": "worker-1", "epoch": 3},
    events.BehaviorStarted: {
        "epoch": 3,
        "trigger": EVENT_ID,
        "inputs": [
            {"name": "known", "rows": '[{"id":"a"}]', "blob": None},
            {"name": "more", "rows": "null", "blob": BLOB},
        ],
    },
    events.BehaviorCompleted: {"epoch": 3},
    events.BehaviorFailed: {"epoch": 3, "error_type": "ValueError", "message": "no such thing"},
    events.ModelRequested: {"epoch": 3, **ASKED, "blob": None},
    events.ToolRequested: {"epoch": 3, **ASKED, "side_effects": "write", "idempotency_key": "once"},
    events.ModelResponded: {
        **ANSWERED,
        "input_tokens": 10,
        "output_tokens": 20,
        "duration_micros": 1_500_000,
        "provider": "anthropic",
        "model": "small-1",
        "finish_reason": "end_turn",
        "attempts": 2,
        "sent": BLOB,
        "received": BLOB,
    },
    events.ToolResponded: ANSWERED,
    events.TimerSet: {"epoch": 3, "due_at": 1_700_000_000_000_002},
    events.TimerFired: {"call_id": CALL_ID},
    events.ApprovalRequested: {"epoch": 3, "title": "Send it?", "details": "to all"},
    events.ExecutionCancelled: {"execution_id": EVENT_ID, "reason": "stuck"},
    events.BudgetExhausted: {"name": "model-calls", "limit": 80, "used": 80},
    events.PatchProposed: {
        "op": "create",
        "type_name": "Claim",
        "object_id": CLAIM_ID,
        "ends": {name: value for name, value in SUPPORTS.items() if name != "relation_type"},
        "data": '{"text":"it grows"}',
        "expected_version": 2,
        "decision": "where_governed",
        "reason": "it follows",
    },
    events.PatchDecided: {"patch_id": "patch-0123456789abcdef0123", "decision": "accept", "reason": "fine"},
    events.FrameOpened: {"title": "what if it shrinks"},
    events.FrameClosed: {"frame_id": "frame-0123456789abcdef0123", "outcome": "merge", "reason": "it holds"},
    events.EffectResolved: {"call_id": CALL_ID, "outcome": "ok", "answer": '{"sent":true}', "reason": "it was sent"},
}


def sample(cls: type[Event], **changes: Any) -> dict[str, Any]:
    """The fields of one event of the type, some of them changed."""
    return {"meta": meta(), **SAMPLES[cls], **changes}
