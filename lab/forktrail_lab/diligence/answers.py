"""What the analyst is asked to answer with."""

from __future__ import annotations

from pydantic import BaseModel


class Questions(BaseModel):
    """What to ask about a company."""

    questions: list[str]


class Finding(BaseModel):
    """A claim, with the sentence it rests on as it stands in the document of that name."""

    claim: str
    quote: str
    document: str


class Findings(BaseModel):
    """What answers a question; empty where nothing does."""

    findings: list[Finding]


class Weighing(BaseModel):
    """What a claim means: the risk that it tells of, if any, and the numbers of the claims that it contradicts."""

    risk: str | None
    contradicts: list[int]


class MemoText(BaseModel):
    """A memo, and the numbers of the claims that it rests on."""

    text: str
    rests_on: list[int]
