"""Which rule serves which event type, and which keys to read beforehand."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from forktrail_projectors.graph.declared_tables import BUILT_IN
from forktrail_projectors.rules import (
    calls,
    evidence,
    executions,
    frames,
    graph,
    log,
    patches,
    policies,
    schemas,
)
from forktrail_projectors.state import EdgesKey, Key, NodeKey
from forktrail_schemas import events as types
from forktrail_schemas.events.base import Event
from forktrail_schemas.ids import derived_id
from forktrail_schemas.signatures import key_id

# A rule takes the context of its own event type; the book holds them all, so here the type is open.
Apply = Callable[[Any], None]
Keys = Callable[[Any], Iterable[Key]]


@dataclass(frozen=True)
class Rule:
    """A rule, and the keys it will read that follow from the event alone, so that a batch's can be read at once."""

    apply: Apply
    keys: Keys


# What an event makes has an id that follows from its own.
_MAKES: Mapping[type[Event], tuple[tuple[str, str], ...]] = {
    types.RunOpened: (("Goal", "goal"),),
    types.GoalSet: (("Goal", "goal"),),
    types.ReportFiled: (("Report", "report"), ("Case", "case")),
    types.TestProposed: (("Case", "case"),),
    types.ApprovalDecided: (("Approval", "approval"),),
    types.ObservationRecorded: (("Observation", "observation"),),
    types.ReviewDecided: (("Review", "review"), ("Finding", "finding")),
    types.ModelRequested: (("Call", "call"),),
    types.ToolRequested: (("Call", "call"),),
    types.TimerSet: (("Call", "call"),),
    types.ApprovalRequested: (("Call", "call"),),
    types.PatchProposed: (("Patch", "patch"),),
    types.FrameOpened: (("Frame", "frame"),),
}


def _case(event: Any) -> Iterable[Key]:
    yield NodeKey("Case", event.case_id)


def _opening(event: types.RunOpened) -> Iterable[Key]:
    yield NodeKey("Key", key_id(event.admin_public_key))
    yield NodeKey("Revision", event.revision)


def _attempt(event: types.ReportFiled | types.TestProposed) -> Iterable[Key]:
    test = NodeKey("TestCase", event.test_id)
    yield test
    yield EdgesKey("ATTEMPTS", "target", test)
    yield EdgesKey("REQUIRES", "source", test)


def _observation(event: types.ObservationRecorded) -> Iterable[Key]:
    yield NodeKey("Case", event.case_id)
    yield NodeKey("TestCase", event.test_id)


def _registration(event: types.TestRegistered) -> Iterable[Key]:
    yield NodeKey("TestCase", event.test_id)
    yield NodeKey("Asset", event.asset_id)
    yield from (NodeKey("Capability", capability) for capability in (*event.requires, *event.enables))


def _decision(event: types.ApprovalDecided) -> Iterable[Key]:
    yield NodeKey("Case" if event.subject.kind == "case" else "Call", event.subject.id)


def _registered(event: types.BehaviorRegistered) -> Iterable[Key]:
    yield NodeKey("Behavior", event.name)
    yield NodeKey("BehaviorVersion", executions.version_id(event.name, event.version))


def _objects(*named: tuple[str, str]) -> Iterable[Key]:
    """Objects by type and id; what is said of a built-in table is refused unread."""
    return [NodeKey(table, id) for table, id in named if table not in BUILT_IN.nodes]


def _object(event: types.ObjectCreated | types.ObjectPatched | types.ObjectRetired) -> Iterable[Key]:
    return _objects((event.object_type, event.object_id))


def _ends(event: types.RelationCreated) -> Iterable[Key]:
    return _objects((event.source_type, event.source_id), (event.target_type, event.target_id))


def _proposed(event: types.PatchProposed) -> Iterable[Key]:
    return _objects((event.type_name, event.object_id)) if event.object_id is not None else ()


def _answered(event: types.ModelResponded | types.ToolResponded | types.TimerFired) -> Iterable[Key]:
    yield NodeKey("Call", event.call_id)


def _none(event: Event) -> Iterable[Key]:
    return ()


RULES: Mapping[type[Event], Rule] = {
    types.RunOpened: Rule(log.run_opened, _opening),
    types.RunClosed: Rule(log.run_closed, lambda event: []),
    types.KeyRegistered: Rule(log.key_registered, lambda event: [NodeKey("Key", event.key_id)]),
    types.KeyRevoked: Rule(log.key_revoked, lambda event: [NodeKey("Key", event.key_id)]),
    types.SettingChanged: Rule(log.setting_changed, lambda event: [NodeKey("Setting", event.name)]),
    types.BudgetSet: Rule(log.budget_set, lambda event: [NodeKey("Budget", event.name)]),
    types.BudgetExhausted: Rule(log.budget_exhausted, lambda event: [NodeKey("Budget", event.name)]),
    types.SchemaDeclared: Rule(schemas.schema_declared, lambda event: [NodeKey("Schema", event.fingerprint)]),
    types.GoalSet: Rule(log.goal_set, lambda event: []),
    types.TestRegistered: Rule(log.registration_made, _registration),
    types.ReportFiled: Rule(evidence.report_filed, _attempt),
    types.TestProposed: Rule(evidence.proposal_made, _attempt),
    types.ApprovalDecided: Rule(evidence.approval_decided, _decision),
    types.TestStarted: Rule(evidence.case_started, _case),
    types.ObservationRecorded: Rule(evidence.observation_recorded, _observation),
    types.ReviewDecided: Rule(evidence.review_decided, _case),
    types.RevisionAdvanced: Rule(evidence.revision_advanced, lambda event: [NodeKey("Revision", event.to_revision)]),
    types.RetryRequested: Rule(evidence.retry_requested, _case),
    types.FindingWithdrawn: Rule(evidence.finding_withdrawn, lambda event: [NodeKey("Finding", event.finding_id)]),
    types.TypeDeclared: Rule(graph.type_declared, lambda event: [NodeKey("Type", event.name)]),
    types.ObjectCreated: Rule(graph.object_created, _object),
    types.ObjectPatched: Rule(graph.object_patched, _object),
    types.ObjectRetired: Rule(graph.object_retired, _object),
    types.RelationCreated: Rule(graph.relation_created, _ends),
    types.RelationRetired: Rule(graph.relation_retired, _none),
    types.BehaviorRegistered: Rule(executions.behavior_registered, _registered),
    types.WorkerClaimed: Rule(executions.worker_claimed, _none),
    types.BehaviorStarted: Rule(executions.behavior_started, executions.start_keys),
    types.BehaviorCompleted: Rule(executions.behavior_completed, _none),
    types.BehaviorFailed: Rule(executions.behavior_failed, _none),
    types.ExecutionCancelled: Rule(
        executions.execution_cancelled, lambda event: [NodeKey("Execution", event.execution_id)]
    ),
    types.ModelRequested: Rule(calls.model_requested, _none),
    types.ToolRequested: Rule(calls.tool_requested, _none),
    types.TimerSet: Rule(calls.timer_set, _none),
    types.ApprovalRequested: Rule(calls.approval_requested, _none),
    types.ModelResponded: Rule(calls.model_responded, _answered),
    types.ToolResponded: Rule(calls.tool_responded, _answered),
    types.TimerFired: Rule(calls.timer_fired, _answered),
    types.EffectResolved: Rule(calls.effect_resolved, _answered),
    types.PolicySet: Rule(policies.policy_set, lambda event: [NodeKey("Policy", event.type_name)]),
    types.PatchProposed: Rule(patches.patch_proposed, _proposed),
    types.PatchDecided: Rule(patches.patch_decided, patches.keys),
    types.FrameOpened: Rule(frames.frame_opened, _none),
    types.FrameClosed: Rule(frames.frame_closed, lambda event: [NodeKey("Frame", event.frame_id)]),
}


def keys(event: Event) -> Iterable[Key]:
    """The keys that folding an event reads and few others do: its identity, its causes, and its rule's own."""
    yield NodeKey("Identity", event.meta.event_id)
    yield from (NodeKey("Identity", cause) for cause in event.meta.causes)
    yield from executions.keys(event)
    rule = RULES.get(type(event))
    if rule is not None:
        yield from rule.keys(event)
        for table, kind in _MAKES.get(type(event), ()):
            yield NodeKey(table, derived_id(kind, event.meta.event_id))
