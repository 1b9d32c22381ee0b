"""Judging: which transcripts are a pass, which a fail, and that everything else is inconclusive."""

from __future__ import annotations

import pytest

from forktrail_lab.exchange.outcome import judge
from forktrail_lab.exchange.transcript import (
    Exchange,
    ExchangeError,
    ExchangeErrorCode,
    Hop,
    ReceivedResponse,
    SentRequest,
    Transcript,
    evidence_bytes,
    parse_evidence,
)
from forktrail_lab.registry.file import find_test, load_registry, shipped_registry_path
from forktrail_lab.registry.model import Condition, OutcomeRule, RegisteredTest

REGISTRY = load_registry(shipped_registry_path()).registry
GATEWAY = find_test(REGISTRY, "gateway-routing-context")
EXPORT = find_test(REGISTRY, "export-scope")
SENT = SentRequest(method="GET", url="http://127.0.0.1:1/", headers=(), body=b"")


def answered(
    request_id: str, status: int, body: bytes = b"", *, truncated: bool = False, revision: str = "r1"
) -> Exchange:
    response = ReceivedResponse(
        status=status, headers=(("X-Service-Revision", revision),), body=body, truncated=truncated
    )
    return Exchange(request_id=request_id, hops=(Hop(sent=SENT, received=response),), error=None)


def failed(request_id: str, code: ExchangeErrorCode) -> Exchange:
    return Exchange(request_id=request_id, hops=(), error=ExchangeError(code=code, message="told"))


def transcript(test: RegisteredTest, *exchanges: Exchange, interrupted: bool = False) -> Transcript:
    return Transcript(
        case_id="case-1",
        test_id=test.id,
        revision="r1",
        definition_sha256="0" * 64,
        target="http://127.0.0.1:1",
        exchanges=exchanges,
        interrupted=interrupted,
    )


def export_judged_by(condition: Condition) -> RegisteredTest:
    """The export test with one reproduced rule of that condition, and not_reproduced for any other 200."""
    rules = (
        OutcomeRule(outcome="reproduced", when={"export-all-tenants": condition}),
        OutcomeRule(outcome="not_reproduced", when={"export-all-tenants": Condition(status=(200,))}),
    )
    return EXPORT.model_copy(update={"outcomes": rules})


@pytest.mark.parametrize(
    ("no_credentials", "marker", "body", "outcome"),
    [
        (401, 200, b"invoice-api", "reproduced"),
        (401, 401, b"", "not_reproduced"),
        (401, 200, b"<html>welcome</html>", "inconclusive"),
        (200, 200, b"invoice-api", "inconclusive"),
        (200, 401, b"", "inconclusive"),
        (401, 401, b"invoice-api", "inconclusive"),
        (401, 404, b"", "inconclusive"),
        (401, 500, b"invoice-api", "inconclusive"),
        (503, 503, b"", "inconclusive"),
    ],
)
def test_the_gateway_is_judged_by_both_its_answers(no_credentials: int, marker: int, body: bytes, outcome: str) -> None:
    said = transcript(GATEWAY, answered("no-credentials", no_credentials), answered("routing-marker", marker, body))
    assert judge(GATEWAY, said).outcome == outcome


@pytest.mark.parametrize(("status", "outcome"), [(403, "not_reproduced"), (401, "inconclusive"), (404, "inconclusive")])
def test_only_a_refusal_that_fits_is_a_pass(status: int, outcome: str) -> None:
    assert judge(EXPORT, transcript(EXPORT, answered("export-all-tenants", status))).outcome == outcome


@pytest.mark.parametrize("code", list(ExchangeErrorCode))
def test_any_error_is_inconclusive_whatever_the_other_answers_are(code: ExchangeErrorCode) -> None:
    judgement = judge(GATEWAY, transcript(GATEWAY, answered("no-credentials", 401), failed("routing-marker", code)))
    assert judgement.outcome == "inconclusive"
    assert judgement.reason == f"{code}: routing-marker: told"


def test_an_interrupted_run_is_inconclusive() -> None:
    judgement = judge(GATEWAY, transcript(GATEWAY, interrupted=True))
    assert judgement.outcome == "inconclusive"
    assert judgement.reason.startswith("interrupted")


def test_an_answer_of_another_revision_is_inconclusive() -> None:
    said = transcript(
        GATEWAY, answered("no-credentials", 401), answered("routing-marker", 200, b"invoice-api", revision="r2")
    )
    assert judge(GATEWAY, said).outcome == "inconclusive"
    assert judge(GATEWAY, said).reason == "revision_mismatch: routing-marker: the service says it is another revision"


@pytest.mark.parametrize(
    "exchanges",
    [
        (),
        (answered("no-credentials", 401),),
        (answered("routing-marker", 200, b"invoice-api"), answered("no-credentials", 401)),
        (
            answered("no-credentials", 401),
            answered("routing-marker", 200, b"invoice-api"),
            answered("routing-marker", 401),
        ),
    ],
)
def test_missing_swapped_or_surplus_exchanges_are_inconclusive(exchanges: tuple[Exchange, ...]) -> None:
    assert judge(GATEWAY, transcript(GATEWAY, *exchanges)).outcome == "inconclusive"


def test_an_exchange_without_an_answer_or_an_error_is_inconclusive() -> None:
    silent = Exchange(request_id="export-all-tenants", hops=(Hop(sent=SENT, received=None),), error=None)
    assert judge(EXPORT, transcript(EXPORT, silent)).outcome == "inconclusive"


def test_the_transcript_of_another_test_is_inconclusive() -> None:
    other = transcript(EXPORT, answered("no-credentials", 401), answered("routing-marker", 401))
    assert judge(GATEWAY, other).outcome == "inconclusive"


def test_a_rule_without_conditions_never_holds() -> None:
    test = EXPORT.model_copy(update={"outcomes": (OutcomeRule(outcome="reproduced", when={}),)})
    assert judge(test, transcript(test, answered("export-all-tenants", 200))).outcome == "inconclusive"


@pytest.mark.parametrize(
    ("condition", "body", "truncated", "outcome"),
    [
        (Condition(status=(200,), body_contains="beta"), b"..beta..", False, "reproduced"),
        (Condition(status=(200,), body_contains="beta"), b"..beta..", True, "reproduced"),
        (Condition(status=(200,), body_contains="beta"), b"..bet", False, "not_reproduced"),
        (Condition(status=(200,), body_contains="beta"), b"..bet", True, "inconclusive"),
        (Condition(status=(200,), body_not_contains="beta"), b"..", False, "reproduced"),
        (Condition(status=(200,), body_not_contains="beta"), b"..", True, "inconclusive"),
        (Condition(status=(200,), body_not_contains="beta"), b"beta", True, "not_reproduced"),
        (Condition(status=(200,), body_contains="x", body_not_contains="beta"), b"beta", True, "not_reproduced"),
        (Condition(status=(201,), body_contains="beta"), b"..", True, "not_reproduced"),
        (Condition(status=(200,), body_contains="bêta"), "bêta".encode(), False, "reproduced"),
    ],
)
def test_a_body_cut_before_what_a_rule_looks_for_leaves_it_open_and_later_rules_unasked(
    condition: Condition, body: bytes, truncated: bool, outcome: str
) -> None:
    test = export_judged_by(condition)
    said = transcript(test, answered("export-all-tenants", 200, body, truncated=truncated))
    assert judge(test, said).outcome == outcome


def test_a_transcript_read_back_from_its_bytes_is_judged_the_same() -> None:
    said = transcript(
        GATEWAY, answered("no-credentials", 401, b"\xff"), answered("routing-marker", 200, b"invoice-api")
    )
    assert judge(GATEWAY, parse_evidence(evidence_bytes(said))) == judge(GATEWAY, said)
    assert judge(GATEWAY, said).reason == "rule 1 holds: no-credentials 401, routing-marker 200"
