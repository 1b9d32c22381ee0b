"""The fixture analyst: hand-worked cases of its rules, and that no answer of it is stored anywhere."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import forktrail_lab.diligence as package
from forktrail_behaviors.effects import EffectResult
from forktrail_lab.diligence import prompts
from forktrail_lab.diligence.analyst import FixtureAnalyst
from forktrail_lab.diligence.opening import companies
from forktrail_schemas.errors import InvalidInput


def ask(kind: str, prompt: str, content: Mapping[str, Any], *since: Mapping[str, Any]) -> Any:
    messages = [{"role": "system", "content": prompt}, {"role": "user", "content": json.dumps(content)}, *since]
    result = FixtureAnalyst().answer({"messages": messages, "schema": {"title": kind}, "options": {}})
    assert isinstance(result, EffectResult)
    return result.answer


def said(content: object) -> dict[str, object]:
    return {"role": "tool", "tool_call_id": "any", "content": json.dumps(content)}


def test_it_asks_a_question_for_each_topic_of_its_prompt() -> None:
    answer = ask("Questions", "Do it.\n\nTopics:\n- tea and cake\n- rain\n\nOther:\n- snow\n", {"company": "Acme"})
    assert answer["questions"] == [
        "What do the documents say about tea and cake at Acme?",
        "What do the documents say about rain at Acme?",
    ]


def test_it_searches_then_fetches_then_answers_with_sentences_on_the_topic_that_give_a_figure() -> None:
    asked = {"company": "Tea at Acme", "question": "What do the documents say about tea and cake at Tea at Acme?"}
    first = ask("Findings", "", asked)
    assert first["tool_calls"][0]["arguments"] == {"company": "Tea at Acme", "words": ["tea", "cake"]}
    found = said([{"name": "b.txt", "title": "B"}, {"name": "a.txt", "title": "A"}])
    second = ask("Findings", "", asked, {"role": "assistant", **first}, found)
    assert second["tool_calls"][0]["arguments"] == {"name": "b.txt"}
    text = "Teas sell at 4.50 euros. Tea is fine! Coffee costs 3.\n\nIn 2024 it made 7 cakes."
    answer = ask("Findings", "", asked, found, said({"name": "b.txt", "text": text}))
    quotes = ["Teas sell at 4.50 euros.", "In 2024 it made 7 cakes."]
    assert answer["findings"] == [{"claim": one, "quote": one, "document": "b.txt"} for one in quotes]


def test_it_finds_nothing_where_a_search_does() -> None:
    asked = {"company": "Acme", "question": "What do the documents say about tea at Acme?"}
    assert ask("Findings", "", asked, said([])) == {"findings": []}


@pytest.mark.parametrize(
    ("one", "other", "contradict"),
    [
        ("Revenue in 2024 was 48 million euros.", "In 2024, revenues came to 41 million euros.", True),
        ("Revenue in 2024 was 48 million euros.", "In 2024, revenues came to 48 million euros.", False),
        ("Revenue in 2024 was 48 million euros.", "Revenue in 2023 was 41 million euros.", False),
        ("Revenue in 2024 was 48 million euros.", "Revenue was 41 million euros.", False),
        ("Revenue in 2024 was 48 million euros.", "Revenue in 2024 grew by 6 percent.", False),
        ("Revenue in 2024 grew by 5 percent.", "Revenue in 2024 grew by 6 percent.", False),
        ("Revenue in 2024 was 48 million euros.", "Debt in 2024 was 41 million euros.", False),
        ("Revenue in 2024 was 48 million euros.", "Revenue in 2024 was 48 billion euros.", False),
        ("It had 1,200 employees in 2024.", "In 2024, 1,300 employees left a mark.", True),
    ],
)
def test_two_claims_contradict_each_other_by_measure_year_unit_and_figure(
    one: str, other: str, contradict: bool
) -> None:
    for claim, against in ((one, other), (other, one)):
        content = {"company": "Acme", "claim": claim, "others": [{"number": 1, "claim": against}]}
        assert ask("Weighing", prompts.WEIGHING, content)["contradicts"] == [1] * contradict


@pytest.mark.parametrize(("claim", "risky"), [("A partner SUED us.", True), ("Pursued by bears.", False)])
def test_a_claim_is_a_risk_by_a_whole_word(claim: str, risky: bool) -> None:
    answer = ask("Weighing", prompts.WEIGHING, {"company": "Acme", "claim": claim, "others": []})
    assert answer["risk"] == (claim if risky else None)


def test_it_refuses_what_it_has_no_rule_for() -> None:
    with pytest.raises(InvalidInput, match="gives no Poem"):
        ask("Poem", "", {})


def test_no_company_and_no_document_is_named_in_code_or_prompts() -> None:
    folder = Path(str(package.__file__)).parent
    code = "".join(path.read_text() for path in [*folder.rglob("*.py"), *(folder / "prompts").glob("*.txt")])
    names = [word for name in companies() for word in name.split()] + [path.stem for path in folder.glob("documents/*")]
    assert len(names) == 6 + 9
    generic = {"Foods", "Robotics", "Energy"}
    assert [name for name in names if name not in generic and name.lower() in code.lower()] == []
