"""What the pack does with a model that errs: nothing unsupported becomes a claim, and nothing is dropped silently."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pytest

from forktrail_behaviors.effects import EffectResult
from forktrail_behaviors.testing import Kit
from forktrail_behaviors.testing.kit import ADMIN
from forktrail_lab.diligence import PACK
from forktrail_lab.diligence.analyst import FixtureAnalyst
from forktrail_schemas.events import BehaviorFailed, PolicySet
from support.diligence import played, scenario, strictly

COMPANY = "Harrowmere Robotics"
SUED = "A former partner sued over one of them: the lawsuit asks for 6 million euros."
REVIEW = "harrowmere-technical-review.txt"

Answer = dict[str, Any]


@dataclass(frozen=True)
class Twisted:
    """An analyst whose answers of one kind are changed."""

    kind: str
    twist: Callable[[Answer, Mapping[str, Any]], Answer | EffectResult]
    name: str = "analyst"

    def answer(self, request: Mapping[str, Any]) -> EffectResult:
        result = FixtureAnalyst().answer(request)
        assert isinstance(result.answer, dict)
        if request["schema"]["title"] != self.kind or "tool_calls" in result.answer:
            return result
        twisted = self.twist(dict(result.answer), request)
        return twisted if isinstance(twisted, EffectResult) else EffectResult("ok", twisted)


def twisted(kind: str, twist: Callable[[Answer, Mapping[str, Any]], Answer | EffectResult]) -> Kit:
    return played(replace(PACK, models=(Twisted(kind, twist),)), names=[COMPANY])


def lawsuits(answer: Answer, request: Mapping[str, Any], findings: list[Answer]) -> Answer:
    """Other findings on the question of lawsuits alone."""
    return {"findings": findings} if "lawsuits" in request["messages"][1]["content"] else answer


@pytest.mark.parametrize(
    ("finding", "why"),
    [
        ({"quote": "The lawsuit asks for 7 million euros.", "document": REVIEW}, "the quote doesn't stand in"),
        ({"quote": SUED, "document": "harrowmere-lender-memo.txt"}, "harrowmere-lender-memo.txt wasn't read"),
        ({"quote": SUED, "document": ""}, " wasn't read"),
        ({"quote": "6 million", "document": REVIEW}, "less than 3 words"),
        ({"quote": " \n ", "document": REVIEW}, "less than 3 words"),
    ],
)
def test_a_claim_that_no_document_bears_out_is_kept_as_unsupported(finding: Answer, why: str) -> None:
    run = twisted(
        "Findings", lambda answer, request: lawsuits(answer, request, [{"claim": "They were sued", **finding}])
    )
    (kept,) = run.objects("Unsupported")
    assert why in str(kept["why"])
    assert "They were sued" in str(kept["text"])
    assert "They were sued" not in [row["text"] for row in run.objects("Claim")]
    (question,) = [row for row in run.objects("Question") if "lawsuits" in str(row["text"])]
    assert (question["status"], question["note"]) == ("no finding", f"nothing in {REVIEW}")
    assert len(run.objects("Memo")) == 1


def test_the_same_quote_twice_is_one_claim() -> None:
    said = [{"claim": claim, "quote": SUED, "document": REVIEW} for claim in ("first", "second")]
    run = twisted("Findings", lambda answer, request: lawsuits(answer, request, said))
    assert [row["why"] for row in run.objects("Unsupported")] == ["it was said already"]
    assert "first" in [row["text"] for row in run.objects("Claim")]


def test_a_quote_may_have_other_line_breaks_than_its_document() -> None:
    said = [{"claim": "sued", "quote": SUED.replace(" sued ", "\n  sued "), "document": REVIEW}]
    run = twisted("Findings", lambda answer, request: lawsuits(answer, request, said))
    assert run.objects("Unsupported") == []
    assert "sued" in [row["text"] for row in run.objects("Claim")]


def test_a_question_that_the_model_fails_on_is_said_to_have_failed_and_the_rest_goes_on() -> None:
    def failing(answer: Answer, request: Mapping[str, Any]) -> Answer | EffectResult:
        lost = "lawsuits" in request["messages"][1]["content"]
        return EffectResult("error", error="it is out of order") if lost else answer

    run = twisted("Findings", failing)
    failed = [row for row in run.objects("Question") if row["status"] == "failed"]
    assert [row["note"] for row in failed] == ["it is out of order"]
    (memo,) = run.objects("Memo")
    assert f"No answer to: {failed[0]['text']}" in str(memo["text"])


def test_a_claim_that_can_not_be_weighed_is_told_to_the_memo() -> None:
    def failing(answer: Answer, request: Mapping[str, Any]) -> Answer | EffectResult:
        lost = json.loads(request["messages"][1]["content"])["claim"] == SUED
        return EffectResult("abstained") if lost else answer

    run = twisted("Weighing", failing)
    assert [row["text"] for row in run.objects("Claim") if row["status"] == "failed"] == [SUED]
    assert run.objects("Risk") == []
    told = json.loads(json.loads(str(run.calls_of("model")[-1]["request"]))["messages"][1]["content"])
    assert [told["claims"][number - 1]["text"] for number in told["not_weighed"]] == [SUED]
    assert len(run.objects("Memo")) == 1


def test_a_contradiction_with_no_claim_is_kept_as_unsupported() -> None:
    def beyond(answer: Answer, request: Mapping[str, Any]) -> Answer:
        lost = json.loads(request["messages"][1]["content"])["claim"] == SUED
        return {**answer, "contradicts": [0, 9, -1]} if lost else answer

    run = twisted("Weighing", beyond)
    texts = [f"{SUED} contradicts number {number}" for number in (-1, 0, 9)]
    assert [row["text"] for row in run.objects("Unsupported")] == texts
    assert len(run.objects("Contradiction")) == 1


def test_a_contradiction_that_one_side_alone_finds_counts() -> None:
    def one_sided(answer: Answer, request: Mapping[str, Any]) -> Answer:
        own = json.loads(request["messages"][1]["content"])["claim"].startswith("The loan of 12")
        return answer if own else {**answer, "contradicts": []}

    run, calm = twisted("Weighing", one_sided), played(names=[COMPANY])
    for kit in (run, calm):
        texts = {row["id"]: str(row["text"]) for row in kit.objects("Claim")}
        (found,) = kit.objects("Contradiction")
        assert texts[found["one"]].startswith("Revenue in 2024")
        assert texts[found["other"]].startswith("The loan of 12")


def test_a_memo_rests_on_what_it_cites_too_and_unknown_numbers_are_told() -> None:
    text = "They were sued [1], and more [7]."
    run = twisted("MemoText", lambda answer, request: {"text": text, "rests_on": [2, 10]})
    assert [row["text"] for row in run.objects("Unsupported")] == ["the memo rests on number 10"]
    graph, _ = run.folded()
    assert len([key for key, _ in graph.rows() if key.table == "BASED_ON"]) == 3


def test_a_memo_that_names_no_claim_is_none() -> None:
    run = twisted("MemoText", lambda answer, request: {"text": "All is well.", "rests_on": []})
    assert run.objects("Memo") == []
    assert [row["text"] for row in run.objects("Unsupported")] == ["All is well."]
    assert [row["status"] for row in run.objects("Company")] == ["refused"]


def test_a_company_of_which_no_document_tells_gets_a_memo_that_says_so() -> None:
    run = played(names=["Nowhere & Sons"])
    assert {row["status"] for row in run.objects("Question")} == {"no finding"}
    assert {row["note"] for row in run.objects("Question")} == {"nothing in any document"}
    assert (run.objects("Document"), run.objects("Claim")) == ([], [])
    (memo,) = run.objects("Memo")
    assert "They say nothing that was asked for." in str(memo["text"])


@pytest.mark.parametrize("decision", ["accept", "reject"])
@pytest.mark.parametrize("changes", [["create"], ["create", "relate"]])
def test_where_a_policy_holds_memos_the_run_waits_for_a_reviewer(decision: str, changes: list[str]) -> None:
    run = Kit(PACK)
    run.tell(PolicySet, "ada", "human", ADMIN, type_name="Memo", changes=changes, reason="")
    scenario(run, [COMPANY])
    assert run.objects("Memo") == []
    while waiting := run.patches("proposed"):
        for patch in waiting:
            run.decide_patch(str(patch["id"]), decision)
        run.run()
    made = int(decision == "accept")
    assert len(run.objects("Memo")) == made
    graph, _ = run.folded()
    assert len([key for key, _ in graph.rows() if key.table == "BASED_ON"]) == 9 * made
    assert [row["status"] for row in run.objects("Company")] == ["reported" if made else "refused"]
    assert run.events(BehaviorFailed) == []
    assert strictly(run)[0].divergences == []
