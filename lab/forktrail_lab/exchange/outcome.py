"""From a transcript to an outcome: a pure function, the same for a live one and one read back from its bytes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from forktrail_lab.exchange.transcript import ReceivedResponse, Transcript, foreign_revision
from forktrail_lab.registry.model import Condition, OutcomeRule, RegisteredTest

Outcome = Literal["reproduced", "not_reproduced", "inconclusive"]


@dataclass(frozen=True)
class Judgement:
    """An outcome and, in one sentence, why."""

    outcome: Outcome
    reason: str


def judge(test: RegisteredTest, transcript: Transcript) -> Judgement:
    """Decide what a transcript shows.

    The first rule of the test whose conditions all hold gives the outcome. Anything short of a complete answer to
    every request (an error, a request not sent, another revision, another test's exchanges) is inconclusive, and so
    is a rule that can't be decided because the body was cut before what it looks for: an earlier rule that may have
    held is never skipped.
    """
    obstacle = _obstacle(test, transcript)
    if obstacle is not None:
        return Judgement("inconclusive", obstacle)
    responses = {
        exchange.request_id: exchange.response for exchange in transcript.exchanges if exchange.response is not None
    }
    seen = ", ".join(f"{name} {response.status}" for name, response in responses.items())
    for number, rule in enumerate(test.outcomes, start=1):
        holds = _rule_holds(rule, responses)
        if holds is None:
            return Judgement("inconclusive", f"a body was cut before rule {number} could be decided: {seen}")
        if holds:
            return Judgement(rule.outcome, f"rule {number} holds: {seen}")
    return Judgement("inconclusive", f"no rule holds: {seen}")


def _obstacle(test: RegisteredTest, transcript: Transcript) -> str | None:
    """What keeps the rules from being asked at all."""
    if transcript.interrupted:
        return "interrupted: the runner ended before the test did"
    if transcript.test_id != test.id:
        return f"the transcript is of test {transcript.test_id}"
    for exchange in transcript.exchanges:
        if exchange.error is not None:
            return f"{exchange.error.code}: {exchange.request_id}: {exchange.error.message}"
        if foreign_revision(exchange, transcript.revision) is not None:
            return f"revision_mismatch: {exchange.request_id}: the service says it is another revision"
        if exchange.response is None:
            return f"no_response: {exchange.request_id}: no answer was kept"
    if [exchange.request_id for exchange in transcript.exchanges] != [request.id for request in test.requests]:
        return "the exchanges are not the requests of the test, in its order"
    return None


def _rule_holds(rule: OutcomeRule, responses: dict[str, ReceivedResponse]) -> bool | None:
    """True, False, or None where a cut body leaves it open."""
    if not rule.when:
        return False
    verdicts = [_condition_holds(condition, responses[name]) for name, condition in rule.when.items()]
    if False in verdicts:
        return False
    return None if None in verdicts else True


def _condition_holds(condition: Condition, response: ReceivedResponse) -> bool | None:
    if response.status not in condition.status:
        return False
    open_question = False
    if condition.body_contains is not None and condition.body_contains.encode() not in response.body:
        if not response.truncated:
            return False
        open_question = True
    if condition.body_not_contains is not None:
        if condition.body_not_contains.encode() in response.body:
            return False
        open_question = open_question or response.truncated
    return None if open_question else True
