"""What a due diligence knows: companies, questions, documents, claims with their evidence, and what follows from them.

A claim can't be without the question it addresses and the document it is derived from: both are references, so that the
rules of the log refuse a claim that lacks one.
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel

from forktrail_behaviors.types import Ref, relation_type_of

ASKED, RESEARCHED, REPORTED, REFUSED = "asked", "researched", "reported", "refused"
OPEN, ANSWERED, NO_FINDING, FAILED = "open", "answered", "no finding", "failed"
NEW, WEIGHED = "new", "weighed"


class Company(BaseModel):
    """What it is all about: created by whoever wants to know, with a name and nothing else."""

    name: str
    status: Literal["asked", "researched", "reported", "refused"] | None = None


class Question(BaseModel):
    """What is to be known of a company; `note` says why it has no answer."""

    text: str
    about: Ref[Company]
    status: Literal["open", "answered", "no finding", "failed"]
    note: str | None = None


class Document(BaseModel):
    """What was read, by its name and the digest of its text; once, whoever fetched it."""

    name: str
    title: str
    date: str
    text_sha256: str


class Claim(BaseModel):
    """Something that a document says about a company."""

    text: str
    addresses: Ref[Question]
    derived_from: Ref[Document]
    status: Literal["new", "weighed", "failed"]


class Evidence(BaseModel):
    """The words that a claim rests on, as they stand in its document."""

    quote: str
    supports: Ref[Claim]


class Risk(BaseModel):
    """What could go wrong for a company, by a claim."""

    text: str
    raised_by: Ref[Claim]


class Contradiction(BaseModel):
    """Two claims that can't both be right, in the order of their texts."""

    one: Ref[Claim]
    other: Ref[Claim]


class Memo(BaseModel):
    """What a company's claims come to."""

    text: str
    about: Ref[Company]


class Unsupported(BaseModel):
    """What a model said and nothing bears out; kept, and used for nothing."""

    text: str
    why: str
    about: Ref[Company]


OBJECTS = (Company, Question, Document, Claim, Evidence, Contradiction, Risk, Memo, Unsupported)
CONTRADICTS = relation_type_of("CONTRADICTS", [Claim], [Claim])
BASED_ON = relation_type_of("BASED_ON", [Memo], [Claim])
RELATIONS = (CONTRADICTS, BASED_ON)
