"""What a diligence run must come to, counted from the fixture files alone; it shares no code with the pack.

    python tests/support/diligence_counts.py PROMPTS DOCUMENTS

The rules, as the prompts and the documents' own form have them:

- each company that a document's `Company:` line names gets one question for each topic of questions.txt;
- a question is answered from that document of the company in which the words of its topic occur most often, by name
  where several tie;
- a finding is a sentence of it that holds a word of the topic and a digit; it is one claim with one piece of evidence;
- a claim is a risk where it holds a word of risk of weighing.txt;
- two claims of a company contradict each other where they share a measure and a year, and give different figures in a
  unit that both use: a figure is a number and what follows it, `million euros` or the next word; percent doesn't count;
- words are compared without regard to case and to an `s` at their end.

A company costs one model call for its questions and one for its memo, a question three and two tool calls (search,
fetch), a claim one.
"""

from __future__ import annotations

import sys
from collections import Counter
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

LETTERS = "abcdefghijklmnopqrstuvwxyz"
SMALL_WORDS = {"and"}


class Paper(NamedTuple):
    """A document as the counter reads it."""

    name: str
    company: str
    sentences: list[str]


def bullets(prompt: Path, heading: str) -> list[str]:
    """The lines that begin with a dash below a heading."""
    lines = prompt.read_text().split("\n")
    start = lines.index(f"{heading}:") + 1
    found = []
    for line in lines[start:]:
        if not line.startswith("- "):
            break
        found.append(line[2:].strip())
    return found


def paper(path: Path) -> Paper:
    """Read a document: a head of `Name: value` lines, an empty line, paragraphs."""
    head, _, body = path.read_text().partition("\n\n")
    company = next(line.split(":", 1)[1].strip() for line in head.split("\n") if line.startswith("Company:"))
    sentences = []
    for paragraph in body.split("\n\n"):
        current: list[str] = []
        for word in paragraph.split():
            current.append(word)
            if word[-1] in ".?!":
                sentences.append(" ".join(current))
                current = []
        if current:
            sentences.append(" ".join(current))
    return Paper(path.name, company, sentences)


def words(text: str) -> list[str]:
    """The words and numbers of a text, in lower case, each without an s at its end; 41,000 is one number."""
    kept = "".join(one if one in LETTERS or one in "0123456789,." else " " for one in text.lower())
    stripped = (word.strip(",.") for word in kept.split())
    return [word[:-1] if word.endswith("s") else word for word in stripped if word]


def has_digit(text: str) -> bool:
    return any(one in "0123456789" for one in text)


def answer_to(topic: str, papers: list[Paper]) -> list[str]:
    """The findings on a topic."""
    wanted = set(words(topic)) - SMALL_WORDS
    hits = {one.name: sum(word in wanted for text in one.sentences for word in words(text)) for one in papers}
    chosen = sorted(papers, key=lambda one: (-hits[one.name], one.name))[0]
    return [one for one in chosen.sentences if has_digit(one) and wanted & set(words(one))]


def fetched(topic: str, papers: list[Paper]) -> str:
    """The name of the document that is read on a topic."""
    wanted = set(words(topic)) - SMALL_WORDS
    return sorted((-sum(word in wanted for text in one.sentences for word in words(text)), one.name) for one in papers)[
        0
    ][1]


def years_and_figures(sentence: str) -> tuple[set[str], dict[str, set[str]]]:
    """The years that a sentence names, and its figures by their unit."""
    years: set[str] = set()
    figures: dict[str, set[str]] = {}
    parts = words(sentence)
    for at, part in enumerate(parts):
        if not has_digit(part):
            continue
        if len(part) == 4 and part.isdigit() and part[:2] in ("19", "20"):
            years.add(part)
            continue
        after = parts[at + 1 : at + 2]
        if after and after[0] in ("million", "billion", "thousand"):
            after = parts[at + 1 : at + 3]
        if after and after[0] != "percent":
            figures.setdefault(" ".join(after), set()).add(part)
    return years, figures


def contradict(one: str, other: str, measures: list[str]) -> bool:
    """Whether two claims give different figures for the same thing."""
    shared = {word for measure in measures for word in words(measure)} & set(words(one)) & set(words(other))
    (years, figures), (other_years, other_figures) = years_and_figures(one), years_and_figures(other)
    if not shared or not years & other_years:
        return False
    return any(not figures[unit] & other_figures[unit] for unit in figures.keys() & other_figures.keys())


def derived_counts(prompts: Path, documents: Path) -> dict[str, int]:
    """Counts by what is counted, as the demo's table names it."""
    papers = [paper(path) for path in sorted(documents.glob("*.txt"))]
    topics = bullets(prompts / "questions.txt", "Topics")
    risky = {word for line in bullets(prompts / "weighing.txt", "Words of risk") for word in words(line)}
    measures = bullets(prompts / "weighing.txt", "Measures")
    count: Counter[str] = Counter()
    for company in sorted({one.company for one in papers}):
        own = [one for one in papers if one.company == company]
        claims = [claim for topic in topics for claim in answer_to(topic, own)]
        count["company"] += 1
        count["question"] += len(topics)
        count["document"] += len({fetched(topic, own) for topic in topics})
        count["claim"] += len(claims)
        count["risk"] += sum(bool(risky & set(words(claim))) for claim in claims)
        count["contradiction"] += sum(contradict(*pair, measures) for pair in combinations(claims, 2))
        count["unanswered"] += sum(not answer_to(topic, own) for topic in topics)
    count["memo"] = count["company"]
    count["evidence"] = count["ADDRESSES"] = count["DERIVED_FROM"] = count["SUPPORTS"] = count["claim"]
    count["CONTRADICTS"] = count["contradiction"]
    count["model calls"] = 2 * count["company"] + 3 * count["question"] + count["claim"]
    count["tool calls"] = 2 * count["question"]
    return dict(count)


if __name__ == "__main__":
    for name, number in derived_counts(Path(sys.argv[1]), Path(sys.argv[2])).items():
        print(f"{name} {number}")
