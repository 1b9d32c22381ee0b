"""An analyst without a language model: it answers from what it is told and from the documents' text, by simple rules.

It stands in for a model where there is none, and it is honest: no answer is stored anywhere, so other companies and
other documents get answers of their own. What to ask, which words mean a risk and what may be compared it takes from
the lists in its prompts.

    topic     a question's topic is what stands in it between `about` and `at`
    finding   a sentence of the document that holds a word of the topic and a digit
    risk      a claim that holds a word of risk
    contradiction   two claims that share a measure and a year, and have no figure in common in a unit that both use

Words are compared without regard to case and to an `s` at their end.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from forktrail_behaviors.effects import EffectResult
from forktrail_lab.diligence.answers import Finding, Findings, MemoText, Questions, Weighing
from forktrail_schemas.errors import InvalidInput
from forktrail_schemas.json_text import Json

_BULLET = re.compile(r"^- (.+)$", re.MULTILINE)
_SENTENCE_END = re.compile(r"(?<=[.?!])\s+")
_TOKEN = re.compile(r"[a-z]+|\d+(?:[.,]\d+)*")
_YEAR = re.compile(r"(?:19|20)\d\d")
_JOINING = frozenset({"and", "or", "of", "the"})
_SCALES = frozenset({"thousand", "million", "billion"})
_SHARE = "percent"


@dataclass(frozen=True)
class FixtureAnalyst:
    """Implements `Model`."""

    name: str = "analyst"

    def answer(self, request: Mapping[str, Any]) -> EffectResult:
        """Answer any of the pack's four kinds of request; costs nothing."""
        kind = request["schema"]["title"]
        if kind not in _TASKS:
            raise InvalidInput(f"the fixture analyst gives no {kind}", hint=f"it gives {', '.join(_TASKS)}")
        prompt, question = (message["content"] for message in request["messages"][:2])
        return EffectResult("ok", _TASKS[kind](prompt, json.loads(question), request["messages"][2:]))


_Messages = Sequence[Mapping[str, Any]]


def _questions(prompt: str, asked: Mapping[str, Any], _: _Messages) -> Json:
    topics = _listed(prompt, "Topics")
    texts = [f"What do the documents say about {topic} at {asked['company']}?" for topic in topics]
    return Questions(questions=texts).model_dump()


def _research(prompt: str, asked: Mapping[str, Any], since: _Messages) -> Json:
    """Search, then fetch what was found first, then answer from that."""
    topic = asked["question"].partition(" about ")[2].rpartition(f" at {asked['company']}")[0]
    words = [word for word in _words(topic) if word not in _JOINING]
    said = [json.loads(message["content"]) for message in since if message["role"] == "tool"]
    if not said:
        return _call("t1", "search_documents", {"company": asked["company"], "words": words})
    if len(said) == 1 and said[0]:
        return _call("t2", "fetch_document", {"name": said[0][0]["name"]})
    document = said[1] if len(said) > 1 else {"name": "", "text": ""}
    found = [
        Finding(claim=sentence, quote=sentence, document=document["name"])
        for sentence in _sentences(document["text"])
        if any(map(str.isdigit, sentence)) and _stems(words) & _stems(_words(sentence))
    ]
    return Findings(findings=found).model_dump()


def _weighing(prompt: str, asked: Mapping[str, Any], _: _Messages) -> Json:
    claim, measures = asked["claim"], _stems(_listed(prompt, "Measures"))
    risky = _stems(_listed(prompt, "Words of risk")) & _stems(_words(claim))
    against = [other["number"] for other in asked["others"] if _contradict(claim, other["claim"], measures)]
    return Weighing(risk=claim if risky else None, contradicts=against).model_dump()


def _memo(prompt: str, asked: Mapping[str, Any], _: _Messages) -> Json:
    claims = asked["claims"]
    lines = [f"{asked['company']}: what its documents say."]
    lines += [f"{claim['text']} [{claim['number']}]" for claim in claims] or ["They say nothing that was asked for."]
    lines += [f"A risk: see [{number}]." for number, _ in asked["risks"]]
    lines += [f"[{one}] and [{other}] contradict each other." for one, other in asked["contradictions"]]
    lines += [f"No answer to: {one['question']}" for one in asked["unanswered"]]
    return MemoText(text="\n".join(lines), rests_on=[claim["number"] for claim in claims]).model_dump()


_TASKS: Mapping[str, Callable[[str, Mapping[str, Any], _Messages], Json]] = {
    "Questions": _questions,
    "Findings": _research,
    "Weighing": _weighing,
    "MemoText": _memo,
}


def _call(id: str, name: str, arguments: dict[str, Json]) -> Json:
    return {"tool_calls": [{"id": id, "name": name, "arguments": arguments}], "text": ""}


def _listed(prompt: str, heading: str) -> list[str]:
    """The list below a heading of a prompt."""
    return _BULLET.findall(prompt.partition(f"\n{heading}:\n")[2].partition("\n\n")[0])


def _sentences(text: str) -> list[str]:
    return [sentence for paragraph in text.split("\n\n") for sentence in _SENTENCE_END.split(paragraph) if sentence]


def _words(text: str) -> list[str]:
    """Its words and numbers, in lower case."""
    return _TOKEN.findall(text.lower())


def _stem(word: str) -> str:
    return word.lower().removesuffix("s")


def _stems(words: Iterable[str]) -> set[str]:
    return set(map(_stem, words))


def _contradict(one: str, other: str, measures: set[str]) -> bool:
    if not measures & _stems(_words(one)) & _stems(_words(other)) or not _years(one) & _years(other):
        return False
    mine, theirs = _figures(one), _figures(other)
    return any(not mine[unit] & theirs[unit] for unit in mine.keys() & theirs.keys())


def _years(sentence: str) -> set[str]:
    return {word for word in _words(sentence) if _YEAR.fullmatch(word)}


def _figures(sentence: str) -> dict[str, set[str]]:
    """The numbers that are no years, by unit: the word that follows, or two after a scale; shares are left out."""
    found: dict[str, set[str]] = {}
    words = [*_words(sentence), ""]
    for at, word in enumerate(words):
        unit = words[at + 1] if word[:1].isdigit() and not _YEAR.fullmatch(word) else ""
        if unit in _SCALES and at + 2 < len(words):
            unit = f"{unit} {words[at + 2]}"
        if unit and unit != _SHARE:
            found.setdefault(_stem(unit), set()).add(word)
    return found
