"""Every way in which a rule of behaviors and executions refuses an event."""

from __future__ import annotations

from forktrail_projectors.record import LogRecord
from forktrail_schemas import events
from support.refusals import Refusal, case
from support.refused_authority import approval
from support.story import OPERATOR, Story
from support.work import (
    DUE_AT,
    NO_CALL,
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
    naming,
    of_execution,
    open_with_worker,
    registration,
    running,
    start,
    tool_request,
    trigger,
    written,
)

WORK: list[Refusal] = []


def end(story: Story) -> None:
    """End the execution that is under way."""
    assert story.append(written(story, events.BehaviorCompleted, path="end", epoch=1)).valid


@case(WORK, "behavior_exists", takes_id=True)
def a_version_registered_again(story: Story) -> LogRecord:
    story.open()
    assert story.append(registration(story)).valid
    assert story.append(registration(story, version="2")).valid
    return registration(story, code_sha256="0" * 64)


@case(WORK, "epoch_conflict", takes_id=True)
def a_claim_of_the_epoch_that_is_held(story: Story) -> LogRecord:
    story.open()
    assert claim(story).valid
    return by_worker(story, events.WorkerClaimed, worker="worker-2", epoch=1)


@case(WORK, "epoch_conflict", takes_id=True)
def a_first_claim_of_the_second_epoch(story: Story) -> LogRecord:
    story.open()
    return by_worker(story, events.WorkerClaimed, worker=WORKER, epoch=2)


@case(WORK, "no_worker", takes_id=False)
def a_start_before_any_claim(story: Story) -> LogRecord:
    story.open()
    assert story.append(registration(story)).valid
    return start(story, trigger(story))


@case(WORK, "old_epoch", takes_id=False)
def a_start_under_a_lost_claim(story: Story) -> LogRecord:
    goal = open_with_worker(story)
    assert claim(story, 2, "worker-2").valid
    return start(story, goal)


@case(WORK, "old_epoch", takes_id=False)
def a_request_under_a_lost_claim(story: Story) -> LogRecord:
    running(story)
    assert claim(story, 2, "worker-2").valid
    return written(story, events.ModelRequested, **model_request())


@case(WORK, "old_epoch", takes_id=False)
def an_end_under_a_claim_yet_to_come(story: Story) -> LogRecord:
    running(story)
    return written(story, events.BehaviorFailed, epoch=2, error_type="ValueError", message="")


@case(WORK, "execution_missing", takes_id=False)
def a_request_without_its_execution(story: Story) -> LogRecord:
    running(story)
    return by_worker(story, events.ModelRequested, **model_request())


@case(WORK, "execution_mismatch", takes_id=False)
def an_answer_that_names_an_execution(story: Story) -> LogRecord:
    running(story)
    call = ask(story, events.ToolRequested)
    return written(story, events.ToolResponded, **answer(call))


@case(WORK, "execution_mismatch", takes_id=False)
def an_emission_in_another_handlers_name(story: Story) -> LogRecord:
    running(story)
    return written(story, events.GoalSet, execution(handler="on_case"), text="deeper")


@case(WORK, "execution_mismatch", takes_id=False)
def an_emission_for_another_match(story: Story) -> LogRecord:
    running(story)
    return written(story, events.GoalSet, execution(match=["claim-1"]), text="deeper")


@case(WORK, "execution_mismatch", takes_id=False)
def an_emission_by_a_person(story: Story) -> LogRecord:
    running(story)
    return story.record(naming(story.event(events.GoalSet, text="deeper")))


@case(WORK, "unknown_execution", takes_id=False)
def an_emission_of_no_execution(story: Story) -> LogRecord:
    running(story)
    return written(story, events.GoalSet, execution(2), text="deeper")


@case(WORK, "unknown_execution", takes_id=True)
def the_cancelling_of_no_execution(story: Story) -> LogRecord:
    running(story)
    return by_operator(story, events.ExecutionCancelled, execution_id=execution(2)["id"], reason="")


@case(WORK, "execution_ended", takes_id=True)
def an_emission_after_the_end(story: Story) -> LogRecord:
    running(story)
    end(story)
    return written(story, events.GoalSet, text="deeper")


@case(WORK, "execution_ended", takes_id=True)
def a_second_end(story: Story) -> LogRecord:
    running(story)
    end(story)
    return written(story, events.BehaviorFailed, epoch=1, error_type="ValueError", message="")


@case(WORK, "execution_ended", takes_id=True)
def an_answer_after_the_end(story: Story) -> LogRecord:
    running(story)
    call = ask(story, events.ModelRequested)
    assert story.append(by_operator(story, events.ExecutionCancelled, execution_id=execution()["id"], reason="")).valid
    return by_worker(story, events.ModelResponded, **answer(call))


@case(WORK, "execution_ended", takes_id=True)
def a_decision_after_the_end(story: Story) -> LogRecord:
    running(story)
    call = ask(story, events.ApprovalRequested)
    end(story)
    return by_operator(story, events.ApprovalDecided, **decision(call))


@case(WORK, "execution_ended", takes_id=True)
def the_cancelling_of_an_ended_execution(story: Story) -> LogRecord:
    running(story)
    end(story)
    return by_operator(story, events.ExecutionCancelled, execution_id=execution()["id"], reason="")


@case(WORK, "unknown_behavior", takes_id=True)
def a_start_of_a_version_that_is_not_registered(story: Story) -> LogRecord:
    return start(story, open_with_worker(story), execution(version="2"))


@case(WORK, "unknown_trigger", takes_id=True)
def a_start_without_its_trigger(story: Story) -> LogRecord:
    open_with_worker(story)
    return start(story, "00000000-0000-7000-8000-999999999999")


@case(WORK, "unknown_trigger", takes_id=True)
def a_start_by_an_event_that_was_refused(story: Story) -> LogRecord:
    open_with_worker(story)
    event = story.event(events.ReportFiled, test_id="nowhere", summary="")
    assert story.tell(event).reason == "unknown_test"
    return start(story, event.meta.event_id)


@case(WORK, "not_active", takes_id=True)
def a_start_by_what_came_before_the_registration(story: Story) -> LogRecord:
    story.open()
    goal = trigger(story)
    assert story.append(registration(story)).valid
    assert claim(story).valid
    return start(story, goal)


@case(WORK, "not_active", takes_id=True)
def a_start_by_the_registration_itself(story: Story) -> LogRecord:
    open_with_worker(story)
    return start(story, str(story.row("Event", 4)["id"]))


@case(WORK, "not_active", takes_id=True)
def a_start_of_a_version_that_was_replaced_before_the_trigger(story: Story) -> LogRecord:
    open_with_worker(story)
    assert story.append(registration(story, version="2")).valid
    goal = trigger(story)
    assert story.append(registration(story, version="3")).valid
    return start(story, goal)


@case(WORK, "execution_exists", takes_id=True)
def a_second_start(story: Story) -> LogRecord:
    running(story)
    return start(story, trigger(story))


@case(WORK, "already_fired", takes_id=True)
def a_match_that_fired(story: Story) -> LogRecord:
    goal = open_with_worker(story)
    assert story.append(start(story, goal, execution(match=["a", "b"]))).valid
    return start(story, trigger(story), execution(2, match=["a", "b"]))


@case(WORK, "already_fired", takes_id=True)
def a_match_that_an_earlier_version_fired_for(story: Story) -> LogRecord:
    goal = open_with_worker(story)
    assert story.append(start(story, goal, execution(match=["a", "b"]))).valid
    assert story.append(registration(story, version="2")).valid
    return start(story, trigger(story), execution(2, match=["a", "b"], version="2"))


@case(WORK, "request_mismatch", takes_id=False)
def a_request_under_another_digest(story: Story) -> LogRecord:
    running(story)
    return written(story, events.ModelRequested, **model_request(request_sha256="0" * 64))


@case(WORK, "budget_left", takes_id=True)
def a_budget_said_to_be_used_up_that_is_not(story: Story) -> LogRecord:
    running(story)
    assert story.budget("model-calls", 1).valid
    return by_worker(story, events.BudgetExhausted, name="model-calls", limit=1, used=1)


@case(WORK, "already_said", takes_id=True)
def a_budget_said_to_be_used_up_twice(story: Story) -> LogRecord:
    running(story)
    assert story.budget("model-calls", 0).valid
    assert story.append(by_worker(story, events.BudgetExhausted, name="model-calls", limit=0, used=0)).valid
    return by_worker(story, events.BudgetExhausted, name="model-calls", limit=0, used=0)


@case(WORK, "budget_exhausted", takes_id=True)
def a_model_call_past_the_budget(story: Story) -> LogRecord:
    running(story)
    ask(story, events.ModelRequested)
    assert story.budget("model-calls", 1).valid
    return written(story, events.ModelRequested, **model_request())


@case(WORK, "budget_exhausted", takes_id=True)
def a_tool_call_past_a_budget_that_was_set_before_any(story: Story) -> LogRecord:
    running(story)
    assert story.budget("tool-calls", 0).valid
    return written(story, events.ToolRequested, **tool_request())


@case(WORK, "unknown_request", takes_id=True)
def an_answer_to_nothing(story: Story) -> LogRecord:
    running(story)
    return by_worker(story, events.ToolResponded, **answer(NO_CALL))


@case(WORK, "unknown_request", takes_id=True)
def a_tools_answer_to_what_a_model_was_asked(story: Story) -> LogRecord:
    running(story)
    return by_worker(story, events.ToolResponded, **answer(ask(story, events.ModelRequested)))


@case(WORK, "unknown_request", takes_id=True)
def a_decision_on_nothing(story: Story) -> LogRecord:
    running(story)
    return by_operator(story, events.ApprovalDecided, **decision(NO_CALL))


@case(WORK, "unknown_request", takes_id=True)
def a_decision_on_a_tools_call(story: Story) -> LogRecord:
    running(story)
    return by_operator(story, events.ApprovalDecided, **decision(ask(story, events.ToolRequested)))


@case(WORK, "unknown_request", takes_id=True)
def the_resolution_of_nothing(story: Story) -> LogRecord:
    running(story)
    return by_operator(story, events.EffectResolved, call_id=NO_CALL, outcome="ok", reason="")


@case(WORK, "already_answered", takes_id=True)
def a_second_answer(story: Story) -> LogRecord:
    running(story)
    call = ask(story, events.ModelRequested)
    assert story.append(by_worker(story, events.ModelResponded, **answer(call))).valid
    return by_worker(story, events.ModelResponded, **answer(call, answer="[2]"))


@case(WORK, "already_answered", takes_id=True)
def an_answer_to_a_call_whose_outcome_is_unknown(story: Story) -> LogRecord:
    running(story)
    call = ask(story, events.ToolRequested)
    assert story.append(by_worker(story, events.ToolResponded, **answer(call, outcome="unknown", answer=None))).valid
    return by_worker(story, events.ToolResponded, **answer(call))


@case(WORK, "already_answered", takes_id=True)
def a_timer_that_fires_again(story: Story) -> LogRecord:
    running(story)
    call = ask(story, events.TimerSet, due_at=0)
    assert story.append(by_worker(story, events.TimerFired, call_id=call)).valid
    return by_worker(story, events.TimerFired, call_id=call)


@case(WORK, "not_due", takes_id=True)
def a_timer_that_fires_too_soon(story: Story) -> LogRecord:
    running(story)
    event = story.event(events.TimerFired, WORKER, "service", call_id=ask(story, events.TimerSet))
    early = event.meta.model_copy(update={"occurred_at": DUE_AT - 1})
    return story.record(event.model_copy(update={"meta": early}))


@case(WORK, "already_decided", takes_id=True)
def a_second_decision_on_a_request(story: Story) -> LogRecord:
    running(story)
    call = ask(story, events.ApprovalRequested)
    assert story.append(by_operator(story, events.ApprovalDecided, **decision(call))).valid
    return by_operator(story, events.ApprovalDecided, **decision(call, decision="deny"))


@case(WORK, "not_unknown", takes_id=True)
def the_resolution_of_a_call_that_waits(story: Story) -> LogRecord:
    running(story)
    call = ask(story, events.ToolRequested)
    return by_operator(story, events.EffectResolved, call_id=call, outcome="ok", reason="")


@case(WORK, "unsigned", takes_id=False)
def an_unsigned_claim_where_workers_sign(story: Story) -> LogRecord:
    story.open()
    assert story.add_key(WORKER_KEY, "worker", holder=WORKER, kind="service").valid
    return by_worker(story, events.WorkerClaimed, worker=WORKER, epoch=1)


@case(WORK, "unsigned", takes_id=False)
def an_unsigned_emission_where_workers_sign(story: Story) -> LogRecord:
    running(story)
    assert story.add_key(WORKER_KEY, "worker", holder=WORKER, kind="service").valid
    return written(story, events.GoalSet, text="deeper")


@case(WORK, "role_missing", takes_id=False)
def an_event_that_names_an_execution_signed_by_who_is_no_worker(story: Story) -> LogRecord:
    running(story)
    assert story.add_key(WORKER_KEY, "worker", holder=WORKER, kind="service").valid
    return story.record(naming(story.event(events.GoalSet, "olga", text="deeper")), OPERATOR)


@case(WORK, "actor_mismatch", takes_id=False)
def a_decision_in_another_persons_name_that_names_an_execution(story: Story) -> LogRecord:
    """Before any claim, when nobody checks the execution."""
    story.open()
    story.register("t")
    return story.record(naming(approval(story, story.report("t"), "ravi")), OPERATOR)


@case(WORK, "actor_mismatch", takes_id=False)
def an_emission_signed_by_a_key_of_no_worker(story: Story) -> LogRecord:
    running(story)
    return story.record(of_execution(story, events.GoalSet, text="deeper"), OPERATOR)


@case(WORK, "actor_mismatch", takes_id=False)
def a_claim_in_another_workers_name(story: Story) -> LogRecord:
    story.open()
    assert story.add_key(WORKER_KEY, "worker", holder="worker-2", kind="service").valid
    return story.record(story.event(events.WorkerClaimed, WORKER, "service", worker=WORKER, epoch=1), WORKER_KEY)
