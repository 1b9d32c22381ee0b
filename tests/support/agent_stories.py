"""Stories of declared types and of executions, for `tests/histories`: what counts, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from forktrail_projectors.record import LogRecord
from forktrail_schemas import events
from forktrail_schemas.events.base import Event
from support import changes, objects, work
from support.objects import CLAIM, COMPANY, SUPPORTS, creation, ends, id_of, patch, retirement
from support.story import REVIEWER, Story

Refuse = Callable[[str, LogRecord], None]


def tell_objects(story: Story, refused: Refuse) -> None:
    """Types, objects and relations: each change that there is, and each refusal."""
    story.open()

    def told(cls: type[Event], fields: dict[str, Any]) -> None:
        verdict = objects.tell(story, cls, fields)
        assert verdict.valid, verdict

    def not_told(reason: str, cls: type[Event], fields: dict[str, Any]) -> None:
        refused(reason, objects.said(story, cls, fields))

    refused("bad_type", objects.declaration(story, COMPANY, name="company"))
    refused("unknown_type", objects.declaration(story, CLAIM))
    for fields in (COMPANY, CLAIM, SUPPORTS):
        assert story.append(objects.declaration(story, fields)).valid
    refused("type_exists", objects.declaration(story, COMPANY, name="COMPANY"))
    told(events.ObjectCreated, creation("Company", 0, name="Acme", founded=1999))
    told(events.ObjectCreated, creation("Company", 1, name="süß, 世界 and 🙂"))
    told(events.ObjectCreated, creation("Claim", 0, text="it grows", weight=-0.0, about=id_of("Company", 0)))
    told(events.ObjectCreated, creation("Claim", 1, text="it hires", weight=1e-7, follows=id_of("Claim", 0)))
    not_told("bad_data", events.ObjectCreated, creation("Claim", 2, weight=1))
    not_told("object_exists", events.ObjectCreated, creation("Company", 0, name="Other"))
    told(events.ObjectPatched, patch("Claim", 0, expected_version=1, about=id_of("Company", 1), weight=None))
    not_told("version_conflict", events.ObjectPatched, patch("Claim", 0, expected_version=1, text="it shrinks"))
    not_told("unknown_object", events.ObjectPatched, patch("Claim", 0, follows=id_of("Claim", 9)))
    told(events.RelationCreated, {**ends(("Claim", 1), ("Claim", 0)), "data": '{"weight":0.5}'})
    told(events.RelationCreated, {**ends(("Company", 0), ("Claim", 0)), "data": "{}"})
    told(events.RelationCreated, {**ends(("Company", 0), ("Claim", 1)), "data": "{}"})
    not_told("relation_exists", events.RelationCreated, {**ends(("Claim", 1), ("Claim", 0)), "data": "{}"})
    not_told("wrong_ends", events.RelationCreated, {**ends(("Claim", 1), ("Company", 0)), "data": "{}"})
    implied = {**ends(("Claim", 1), ("Claim", 0), "FOLLOWS"), "reason": ""}
    not_told("relation_implied", events.RelationRetired, implied)
    told(events.RelationRetired, {**ends(("Company", 0), ("Claim", 0)), "reason": "no longer"})
    not_told("unknown_relation", events.RelationRetired, {**ends(("Company", 0), ("Claim", 0)), "reason": ""})
    told(events.ObjectRetired, retirement("Claim", 0))
    not_told("object_retired", events.ObjectRetired, retirement("Claim", 0))


def tell_work(story: Story, refused: Refuse) -> None:
    """A worker, its behavior, two executions and what they ask for, and each refusal."""
    story.open()
    early = work.trigger(story)
    assert story.append(work.registration(story)).valid
    refused("behavior_exists", work.registration(story, code_sha256="0" * 64))
    refused("no_worker", work.start(story, early))
    assert work.claim(story).valid
    refused("epoch_conflict", work.by_worker(story, events.WorkerClaimed, worker="worker-2", epoch=1))
    _refuse_starts(story, refused, early)
    _tell_calls(story, refused)
    _tell_ends(story, refused)


def _refuse_starts(story: Story, refused: Refuse, early: str) -> None:
    goal = work.trigger(story)
    refused("not_active", work.start(story, early))
    refused("unknown_trigger", work.start(story, "00000000-0000-7000-8000-999999999999", work.execution(2)))
    refused("unknown_behavior", work.start(story, goal, work.execution(3, version="2")))
    match = work.execution(4, match=["claim-1", "company-1"])
    assert story.append(work.start(story, goal, match)).valid
    refused("already_fired", work.start(story, goal, {**match, "id": work.execution(5)["id"]}))
    assert story.append(work.start(story, goal)).valid
    refused("execution_exists", work.start(story, goal))


def _tell_calls(story: Story, refused: Refuse) -> None:
    model, tool, timer, approval, lost = (
        work.ask(story, cls)
        for cls in (
            events.ModelRequested,
            events.ToolRequested,
            events.TimerSet,
            events.ApprovalRequested,
            events.ToolRequested,
        )
    )
    refused("execution_missing", work.by_worker(story, events.ModelRequested, **work.model_request()))
    wrong = work.model_request(request_sha256="0" * 64)
    refused("request_mismatch", work.written(story, events.ModelRequested, **wrong))
    refused("unknown_request", work.by_worker(story, events.ToolResponded, **work.answer(work.NO_CALL)))
    refused("execution_mismatch", work.written(story, events.ToolResponded, **work.answer(tool)))
    told = work.answer(model, input_tokens=5, output_tokens=7)
    assert story.append(work.by_worker(story, events.ModelResponded, **told)).valid
    refused("already_answered", work.by_worker(story, events.ModelResponded, **told))
    assert story.append(work.by_worker(story, events.ToolResponded, **work.answer(tool))).valid
    refused("not_due", work.by_worker(story, events.TimerFired, call_id=timer))
    due = work.ask(story, events.TimerSet, due_at=0)
    assert story.append(work.by_worker(story, events.TimerFired, call_id=due)).valid
    assert story.append(work.by_operator(story, events.ApprovalDecided, **work.decision(approval))).valid
    resolution = {"call_id": lost, "outcome": "ok", "answer": "true", "reason": "it was sent"}
    refused("not_unknown", work.by_operator(story, events.EffectResolved, **resolution))
    unknown = work.answer(lost, outcome="unknown", answer=None)
    assert story.append(work.by_worker(story, events.ToolResponded, **unknown)).valid
    assert story.append(work.by_operator(story, events.EffectResolved, **resolution)).valid


def _tell_ends(story: Story, refused: Refuse) -> None:
    assert story.append(work.written(story, events.GoalSet, text="deeper")).valid
    refused("unknown_execution", work.written(story, events.GoalSet, work.execution(9), text="deeper"))
    assert work.claim(story, 2, "worker-2").valid
    refused("old_epoch", work.written(story, events.BehaviorCompleted, path="end", epoch=1))
    assert story.append(work.written(story, events.BehaviorCompleted, path="end", epoch=2)).valid
    refused("execution_ended", work.written(story, events.GoalSet, text="deeper"))
    cancelled = str(work.execution(4)["id"])
    assert story.append(work.by_operator(story, events.ExecutionCancelled, execution_id=cancelled, reason="")).valid
    assert story.append(work.registration(story, version="2")).valid
    goal, third = work.trigger(story), work.execution(6, version="2")
    assert story.append(work.start(story, goal, third, epoch=2)).valid
    failed = {"epoch": 2, "error_type": "ValueError", "message": "no such thing"}
    assert story.append(work.written(story, events.BehaviorFailed, third, path="end", **failed)).valid


def tell_changes(story: Story, refused: Refuse) -> None:
    """Policies, proposals, frames and a budget that is used up, and what is refused of them."""
    objects.tell_all(story)
    text = {"text": "it shrinks"}
    refused("type_reserved", changes.policy(story, "Call", "create"))
    changes.govern(story, "Claim", "patch", "retire")
    refused("approval_required", objects.said(story, events.ObjectPatched, patch("Claim", 0, text="it shrinks")))
    held = changes.propose(story, changes.proposal("patch", "Claim", 0, data=text, expected_version=1))
    assert changes.decide(story, held).valid
    refused("bad_patch", objects.said(story, events.PatchProposed, changes.proposal("create", "Claim", 2)))
    _refuse_decision(story, refused, "already_decided", held)
    _refuse_decision(story, refused, "unknown_patch", "patch-ffffffffffffffffffff")
    rejected = changes.propose(story, changes.proposal("retire", "Claim", 1))
    assert changes.decide(story, rejected, "reject").valid
    changes.propose(story, changes.proposal("create", "Company", 1, data={"name": "Other"}))
    _tell_frames(story, refused)
    assert story.budget("model-calls", 0).valid
    used_up = {"name": "model-calls", "limit": 0, "used": 0}
    refused("budget_left", objects.said(story, events.BudgetExhausted, {**used_up, "limit": 1}))
    assert objects.tell(story, events.BudgetExhausted, used_up).valid
    refused("already_said", objects.said(story, events.BudgetExhausted, used_up))


def _refuse_decision(story: Story, refused: Refuse, reason: str, patch_id: str) -> None:
    event = story.event(events.PatchDecided, "ravi", patch_id=patch_id, decision="accept", reason="")
    refused(reason, story.record(event, REVIEWER))


def _tell_frames(story: Story, refused: Refuse) -> None:
    merged, conflicting, dropped = (changes.open_frame(story) for _ in range(3))
    changes.hold(story, merged, events.ObjectCreated, creation("Claim", 3, text="it sells", about=id_of("Company", 1)))
    changes.hold(story, merged, events.RelationCreated, {**ends(("Company", 1), ("Claim", 3)), "data": "{}"})
    changes.hold(story, merged, events.ObjectPatched, patch("Company", 0, name="Acme Ltd", founded=1999))
    changes.hold(story, conflicting, events.ObjectPatched, patch("Company", 0, name="Acme GmbH"))
    changes.hold(story, dropped, events.ObjectRetired, retirement("Company", 1))
    assert changes.close(story, merged).valid
    assert changes.close(story, dropped, "drop").valid
    closing = {"frame_id": conflicting, "outcome": "merge", "reason": ""}
    refused("merge_conflict", objects.said(story, events.FrameClosed, closing))
    refused("frame_ended", objects.said(story, events.FrameClosed, {**closing, "frame_id": merged}))
    unknown = "frame-ffffffffffffffffffff"
    refused("unknown_frame", objects.said(story, events.FrameClosed, {**closing, "frame_id": unknown}))
