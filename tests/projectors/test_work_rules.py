from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from forktrail_projectors.content_digest import content_digest
from forktrail_projectors.state import EdgeKey, NodeKey
from forktrail_schemas import events
from forktrail_schemas.events.base import Event
from support.refusals import Refusal, check
from support.refused_work import WORK, end
from support.story import Story
from support.work import (
    BEHAVIOR,
    DUE_AT,
    REQUEST,
    REQUEST_SHA256,
    WORKER,
    WORKER_KEY,
    answer,
    ask,
    by_operator,
    by_worker,
    claim,
    decision,
    execution,
    model_request,
    of_execution,
    open_with_worker,
    registration,
    running,
    start,
    tool_request,
    trigger,
    written,
)

EXECUTION = str(execution()["id"])


@pytest.mark.parametrize("refusal", WORK, ids=lambda refusal: str(refusal.name))
def test_refused_work_changes_nothing_and_takes_its_id_only_where_it_came_at_the_wrong_time(refusal: Refusal) -> None:
    check(refusal)


@pytest.fixture
def story() -> Story:
    """A run with one execution under way."""
    told = Story()
    running(told)
    return told


def settled(story: Story) -> None:
    assert story.projector.recomputed_digest() == story.projector.state_digest


def put(story: Story, cls: type[Event], **fields: object) -> None:
    """Something of the worker's own, valid."""
    verdict = story.append(by_worker(story, cls, **fields))
    assert verdict.valid, verdict


def test_a_registration_replaces_the_last_and_keeps_every_version(story: Story) -> None:
    offset = len(story.records)
    assert story.append(registration(story, version="2", code_sha256="d" * 64)).valid
    row = story.row("Behavior", BEHAVIOR)
    assert (row["version"], row["code_sha256"], row["registered_offset"]) == ("2", "d" * 64, offset)
    assert (row["emits"], row["subscriptions"]) == (("Claim",), "[]")
    first, second = (story.row("BehaviorVersion", f"{BEHAVIOR}@{version}") for version in "12")
    assert (first["registered_offset"], first["superseded_offset"]) == (4, offset)
    assert (second["registered_offset"], second["superseded_offset"]) == (offset, None)
    settled(story)


def test_versions_whose_names_could_be_confused_are_two(story: Story) -> None:
    assert story.append(registration(story, name="a@b", version="c")).valid
    assert story.append(registration(story, name="a", version="b@c")).valid


def test_a_version_that_was_active_at_the_trigger_starts_though_it_was_replaced_since(story: Story) -> None:
    goal = trigger(story)
    assert story.append(registration(story, version="2")).valid
    assert story.append(start(story, goal, execution(2))).valid
    assert story.append(start(story, trigger(story), execution(3, version="2"))).valid


def test_a_start_makes_the_execution_and_joins_its_trigger(story: Story) -> None:
    row = story.row("Execution", EXECUTION)
    assert (row["behavior"], row["version"], row["handler"], row["match"]) == ("ask", "1", "on_goal", ())
    assert (row["status"], row["trigger"]) == ("running", story.row("Event", 6)["id"])
    assert story.related("TRIGGERED", NodeKey("Event", 6)) == [NodeKey("Execution", EXECUTION)]
    settled(story)


def test_a_start_refused_for_its_epoch_may_come_again_under_its_id() -> None:
    story = Story()
    goal = open_with_worker(story)
    event = of_execution(story, events.BehaviorStarted, path="start", epoch=1, trigger=goal, inputs=[])
    assert claim(story, 2, "worker-2").valid
    assert story.tell(event).reason == "old_epoch"
    emitted = of_execution(story, events.GoalSet, text="deeper")
    assert story.tell(emitted).reason == "unknown_execution"
    assert story.tell(event.model_copy(update={"epoch": 2})).valid
    assert story.tell(emitted).valid


def test_another_match_or_handler_fires_and_two_triggers_without_a_match_fire_twice() -> None:
    story = Story()
    goal = open_with_worker(story)
    others: list[dict[str, Any]] = [
        {"match": ["a"]},
        {"match": ["a", "b"]},
        {"match": ["a"], "handler": "other"},
        {},
        {},
    ]
    for number, other in enumerate(others):
        assert story.append(start(story, goal, execution(number, **other))).valid
    matches = [row for key, row in story.rows().items() if isinstance(key, NodeKey) and key.table == "Match"]
    assert sorted(str(row["execution"]) for row in matches) == [execution(number)["id"] for number in range(3)]
    assert not any(isinstance(key, EdgeKey) and key.target.table == "Match" for key in story.rows())
    settled(story)


@pytest.mark.parametrize(
    ("cls", "fields", "status", "said"),
    [
        (events.BehaviorCompleted, {}, "completed", (None, None)),
        (events.BehaviorFailed, {"error_type": "ValueError", "message": "no"}, "failed", ("ValueError", "no")),
    ],
)
def test_an_execution_ends_as_it_says(
    story: Story, cls: type[Event], fields: dict[str, str], status: str, said: tuple[object, object]
) -> None:
    assert story.append(written(story, cls, path="end", epoch=1, **fields)).valid
    row = story.row("Execution", EXECUTION)
    assert (row["status"], row["error_type"], row["message"]) == (status, *said)


def test_a_person_ends_an_execution(story: Story) -> None:
    assert story.append(by_operator(story, events.ExecutionCancelled, execution_id=EXECUTION, reason="stuck")).valid
    row = story.row("Execution", EXECUTION)
    assert (row["status"], row["message"]) == ("cancelled", "stuck")


def test_a_request_is_a_call_that_tells_a_worker_all_it_needs(story: Story) -> None:
    calls = {
        cls: story.row("Call", ask(story, cls))
        for cls in (events.ModelRequested, events.ToolRequested, events.TimerSet, events.ApprovalRequested)
    }
    columns = ("execution", "path", "status", "kind", "name", "request", "request_sha256", "due_at")
    place = (EXECUTION, "1", "pending")
    assert {cls: tuple(row[name] for name in columns) for cls, row in calls.items()} == {
        events.ModelRequested: (*place, "model", "small", REQUEST, REQUEST_SHA256, None),
        events.ToolRequested: (*place, "tool", "look", REQUEST, REQUEST_SHA256, None),
        events.TimerSet: (*place, "timer", None, None, None, DUE_AT),
        events.ApprovalRequested: (*place, "approval", "Send it?", "to all", None, None),
    }
    asked = {str(key.id) for key in story.related("ASKED", NodeKey("Execution", EXECUTION))}
    assert asked == {row["id"] for row in calls.values()}
    settled(story)


def test_a_models_answer_is_kept_with_what_it_cost(story: Story) -> None:
    call = ask(story, events.ModelRequested)
    put(story, events.ModelResponded, **answer(call, input_tokens=5, output_tokens=7))
    row = story.row("Call", call)
    assert (row["status"], row["outcome"], row["answer"], row["error"]) == ("answered", "ok", "[1]", None)
    assert (row["input_tokens"], row["output_tokens"], row["cost_micros"]) == (5, 7, 20)


def test_a_tools_failure_and_an_answer_in_the_blob_store(story: Story) -> None:
    failed, large = ask(story, events.ToolRequested), ask(story, events.ToolRequested)
    put(story, events.ToolResponded, **answer(failed, outcome="error", answer=None, error="timed out"))
    blob = {"sha256": "b" * 64, "size": 70_000, "media_type": "application/json"}
    put(story, events.ToolResponded, **answer(large, answer=None, blob=blob))
    row = story.row("Call", failed)
    assert (row["status"], row["outcome"], row["error"]) == ("answered", "error", "timed out")
    row = story.row("Call", large)
    assert (row["status"], row["answer"], row["blob"]) == ("answered", None, "b" * 64)


def test_a_person_settles_a_call_whose_outcome_is_unknown(story: Story) -> None:
    call = ask(story, events.ToolRequested)
    put(story, events.ToolResponded, **answer(call, outcome="unknown", answer=None, error="the worker is gone"))
    assert story.row("Call", call)["status"] == "unknown"
    said = {"call_id": call, "outcome": "ok", "answer": '{"sent":true}', "reason": "it was sent"}
    assert story.append(by_operator(story, events.EffectResolved, **said)).valid
    row = story.row("Call", call)
    assert (row["status"], row["outcome"], row["answer"], row["error"]) == ("answered", "ok", '{"sent":true}', None)
    assert row["decided_by"] == "olga"


def test_a_timer_fires_at_its_time(story: Story) -> None:
    call = ask(story, events.TimerSet)
    event = story.event(events.TimerFired, WORKER, "service", call_id=call)
    due = event.model_copy(update={"meta": event.meta.model_copy(update={"occurred_at": DUE_AT})})
    assert story.tell(due).valid
    assert story.row("Call", call)["status"] == "answered"


@pytest.mark.parametrize("said", ["approve", "deny"])
def test_a_persons_decision_answers_the_request(story: Story, said: str) -> None:
    call = ask(story, events.ApprovalRequested)
    offset = len(story.records)
    assert story.append(by_operator(story, events.ApprovalDecided, **decision(call, decision=said))).valid
    row = story.row("Call", call)
    assert (row["status"], row["outcome"], row["decided_by"]) == ("answered", said, "olga")
    (approval,) = story.related("PRODUCED", NodeKey("Event", offset))
    row = story.row(*approval)
    assert (row["decision"], row["approver"], row["reason"], row["case_id"]) == (said, "olga", "fine", None)
    assert story.related("DECIDES", approval) == [NodeKey("Call", call)]
    settled(story)


def test_calls_are_counted_and_queries_of_the_graph_are_not(story: Story) -> None:
    assert not {"model-calls", "tool-calls"} & {key[1] for key in story.rows() if key[0] == "Budget"}
    for _ in range(2):
        ask(story, events.ModelRequested)
    ask(story, events.ToolRequested)
    ask(story, events.ToolRequested, name="graph.query")
    assert [story.row("Budget", name)["used"] for name in ("model-calls", "tool-calls")] == [2, 1]
    assert story.budget("model-calls", 3).valid
    assert story.budget("tool-calls", 1).valid
    ask(story, events.ModelRequested)
    ask(story, events.ToolRequested, name="graph.query")
    assert [story.row("Budget", name)["limit"] for name in ("model-calls", "tool-calls")] == [3, 1]
    settled(story)


def test_what_calls_use_is_added_up_as_they_are_answered(story: Story) -> None:
    first, second = (ask(story, events.ModelRequested) for _ in range(2))
    used = {"input_tokens": 100, "output_tokens": 20, "cost_micros": 700, "duration_micros": 700_000}
    for call in (first, second):
        put(story, events.ModelResponded, **answer(call, **used))
    call = ask(story, events.ToolRequested)
    put(story, events.ToolResponded, **answer(call, cost_micros=5, duration_micros=1_600_001))
    assert story.row("Budget", "tokens")["used"] == 240
    assert story.row("Budget", "cost-micros")["used"] == 1_405
    seconds = story.row("Budget", "seconds")
    assert (seconds["used"], seconds["remainder"]) == (3, 1)
    settled(story)


@pytest.mark.parametrize("name", ["tokens", "cost-micros", "seconds"])
def test_calls_under_way_may_pass_a_budget_and_the_next_is_refused(story: Story, name: str) -> None:
    assert story.budget(name, 10).valid
    used = {"input_tokens": 9, "output_tokens": 0, "cost_micros": 9, "duration_micros": 9_999_999}
    calls = [ask(story, events.ModelRequested) for _ in range(3)]
    put(story, events.ModelResponded, **answer(calls[0], **used))
    calls.append(ask(story, events.ModelRequested))  # 9 of 10: one is left
    for call in calls[1:]:
        put(story, events.ModelResponded, **answer(call, **used))
    assert story.row("Budget", name)["used"] == (39 if name == "seconds" else 36)
    refused = story.append(written(story, events.ModelRequested, **model_request()))
    assert (refused.kind, refused.reason) == ("void", "budget_exhausted")
    ask(story, events.ToolRequested, name="graph.query")
    another = story.append(written(story, events.ToolRequested, **tool_request()))
    assert another.kind == ("valid" if name == "tokens" else "void")
    assert story.budget(name, 100).valid
    ask(story, events.ModelRequested)
    settled(story)


def test_what_calls_claim_to_have_used_may_be_any_number(story: Story) -> None:
    most = 2**63 - 1
    used = {"input_tokens": most, "output_tokens": most, "cost_micros": most, "duration_micros": most}
    for _ in range(2):
        call = ask(story, events.ModelRequested)
        put(story, events.ModelResponded, **answer(call, **used))
    assert [story.row("Budget", name)["used"] for name in ("tokens", "cost-micros")] == [most, most]
    assert story.row("Budget", "seconds")["used"] == 2 * most // 1_000_000
    settled(story)


def test_that_a_budget_is_used_up_is_said_once_for_each_limit(story: Story) -> None:
    def said(limit: int, used: int) -> str:
        return story.append(by_worker(story, events.BudgetExhausted, name="model-calls", limit=limit, used=used)).reason

    assert said(1, 1) == "budget_left"
    assert story.budget("model-calls", 1).valid
    assert said(1, 0) == "budget_left"
    ask(story, events.ModelRequested)
    assert said(1, 2) == "budget_left"
    assert [said(1, 1), said(1, 1)] == ["", "already_said"]
    assert story.budget("model-calls", 2).valid
    assert said(2, 1) == "budget_left"
    ask(story, events.ModelRequested)
    assert said(2, 2) == ""
    settled(story)


def test_a_request_too_large_for_an_event_lies_in_the_blob_store(story: Story) -> None:
    blob = {"sha256": REQUEST_SHA256, "size": 70_000, "media_type": "application/json"}
    call = ask(story, events.ModelRequested, request=None, blob=blob)
    row = story.row("Call", call)
    assert (row["request"], row["request_blob"], row["request_sha256"]) == (None, REQUEST_SHA256, REQUEST_SHA256)
    for wrong in ({"blob": {**blob, "sha256": "0" * 64}}, {"blob": None}, {"request": REQUEST}):
        fields = model_request(**{"request": None, "blob": blob, **wrong})
        assert story.append(written(story, events.ModelRequested, **fields)).reason == "request_mismatch"
    settled(story)


def test_how_long_calls_took_is_no_part_of_the_content() -> None:
    def told(duration: int) -> str:
        story = Story("content")
        running(story)
        call = ask(story, events.ModelRequested)
        fields = answer(call, duration_micros=duration, attempts=duration, provider=str(duration))
        put(story, events.ModelResponded, **fields)
        return content_digest(story.rows().items())

    assert told(1) == told(9_000_000)


def test_a_worker_that_takes_over_goes_on_with_what_is_under_way(story: Story) -> None:
    call = ask(story, events.ModelRequested)
    assert claim(story, 2, "worker-2").valid
    row = story.row("Worker", "worker")
    assert (row["worker"], row["epoch"], row["keys"]) == ("worker-2", 2, 0)
    put(story, events.ModelResponded, **answer(call))  # answered while the first held the run
    ask(story, events.ModelRequested, epoch=2)
    assert story.append(written(story, events.BehaviorCompleted, path="end", epoch=2)).valid


# Signatures.


def with_key(story: Story) -> None:
    assert story.add_key(WORKER_KEY, "worker", holder=WORKER, kind="service").valid


def test_what_a_worker_writes_may_be_signed_and_must_be_once_the_run_has_a_workers_key() -> None:
    story = Story()
    story.open()
    assert story.append(registration(story)).valid
    with_key(story)
    goal = trigger(story)
    taken = story.event(events.WorkerClaimed, WORKER, "service", worker=WORKER, epoch=1)
    assert story.tell(taken).reason == "unsigned"
    assert story.tell(taken, WORKER_KEY).valid
    begun = of_execution(story, events.BehaviorStarted, path="start", epoch=1, trigger=goal, inputs=[])
    assert story.tell(begun).reason == "unsigned"
    assert story.tell(begun, WORKER_KEY).valid
    emitted = of_execution(story, events.GoalSet, text="deeper")
    assert story.tell(emitted).reason == "unsigned"
    assert story.tell(emitted, WORKER_KEY).valid
    assert story.tell(story.event(events.GoalSet, text="by hand")).valid
    settled(story)


def test_without_a_workers_key_what_is_signed_is_checked_all_the_same(story: Story) -> None:
    assert story.tell(of_execution(story, events.GoalSet, text="deeper"), WORKER_KEY).reason == "unknown_key"


def test_revoking_the_last_workers_key_lets_workers_write_unsigned_again(story: Story) -> None:
    with_key(story)
    other = type(WORKER_KEY).from_private_bytes(bytes([8]) * 32)
    assert story.add_key(other, "operator", "worker", holder="olga").valid
    assert story.row("Worker", "worker")["keys"] == 2
    assert story.revoke(WORKER_KEY).valid
    assert story.append(written(story, events.GoalSet, text="deeper")).reason == "unsigned"
    assert story.revoke(other).valid
    assert story.row("Worker", "worker")["keys"] == 0
    assert story.append(written(story, events.GoalSet, text="deeper")).valid


def test_until_a_worker_has_claimed_the_run_an_event_may_name_an_execution_as_it_likes() -> None:
    """So logs of before there were executions read as they did."""
    story = Story()
    story.open()
    assert story.append(written(story, events.GoalSet, text="deeper")).valid
    assert claim(story).valid
    assert story.append(written(story, events.GoalSet, text="deeper")).reason == "unknown_execution"


# What it all came to.


def content(story: Story) -> str:
    return content_digest(story.graph.rows(), story.graph.tables)


def test_what_is_under_way_is_no_part_of_the_content_and_what_has_ended_is() -> None:
    story = Story()
    goal = open_with_worker(story)
    before = content(story)
    assert story.append(start(story, goal, execution(match=["a"]))).valid
    assert content(story) == before
    end_of = written(story, events.BehaviorCompleted, execution(match=["a"]), path="end", epoch=1)
    assert story.append(replace(end_of, offset=len(story.records))).valid
    assert content(story) != before


def test_the_content_tells_answers_and_not_who_worked_when() -> None:
    def told(text: str, epochs: int) -> str:
        story = Story()
        running(story)
        for epoch in range(2, 2 + epochs):
            assert claim(story, epoch).valid
        call = ask(story, events.ToolRequested, epoch=1 + epochs)
        put(story, events.ToolResponded, **answer(call, answer=text))
        assert story.append(written(story, events.BehaviorCompleted, path="end", epoch=1 + epochs)).valid
        return content(story)

    assert told("[1]", 0) == told("[1]", 3)
    assert told("[1]", 0) != told("[2]", 0)


def test_a_call_of_an_execution_that_goes_on_counts_once_it_is_answered(story: Story) -> None:
    before = content(story)
    call = ask(story, events.ToolRequested, name="graph.query")
    assert content(story) == before
    put(story, events.ToolResponded, **answer(call))
    assert content(story) != before
    end(story)
