"""The documents that a diligence may read, in a folder: the pack's own, or the one that `FORKTRAIL_DOCUMENTS` names.

A document is a text file: a head of `Title:`, `Company:` and `Date:`, an empty line, then paragraphs. It is fetched by
its file's name, and no other file of the machine is.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from forktrail_behaviors.tools import tool
from forktrail_schemas.errors import InvalidInput, NotFound

DOCUMENTS_VARIABLE = "FORKTRAIL_DOCUMENTS"
SHIPPED_DOCUMENTS = Path(__file__).parent / "documents"
FOUND_MAX = 5
_WORD = re.compile(r"[a-z0-9]+")


@dataclass(frozen=True)
class Paper:
    """A document as it is read.

    Attributes:
        name: of its file.
        text: paragraphs, each in one line, with an empty line between them.
    """

    name: str
    title: str
    company: str
    date: str
    text: str


def documents_folder() -> Path:
    """The folder of documents."""
    return Path(os.environ.get(DOCUMENTS_VARIABLE) or SHIPPED_DOCUMENTS)


def papers(folder: Path) -> Iterator[Paper]:
    """The documents of a folder, by name.

    Raises:
        NotFound: there is no such folder.
        InvalidInput: a document's head isn't as it should be.
    """
    if not folder.is_dir():
        raise NotFound(f"there is no folder {folder.name!r} of documents", hint=f"set {DOCUMENTS_VARIABLE}")
    for path in sorted(folder.glob("*.txt")):
        yield _read(path)


@tool(side_effects="read")
def search_documents(company: str, words: list[str]) -> list[dict[str, str]]:
    """Search the documents about a company for words; those that hold them most often come first, five at most."""
    wanted = {_stem(word) for word in words}
    own = [paper for paper in papers(documents_folder()) if paper.company.casefold() == company.casefold()]
    own.sort(key=lambda paper: (-sum(_stem(word) in wanted for word in words_of(paper.text)), paper.name))
    return [{"name": paper.name, "title": paper.title} for paper in own[:FOUND_MAX]]


@tool(side_effects="read")
def fetch_document(name: str) -> dict[str, str]:
    """Fetch a document by the name that a search gave; returns its title, date and text."""
    for paper in papers(documents_folder()):
        if paper.name == name:
            return {"name": paper.name, "title": paper.title, "date": paper.date, "text": paper.text}
    raise NotFound(f"there is no document {name!r}", hint="fetch what a search has named")


def words_of(text: str) -> list[str]:
    """The words and numbers of a text, in lower case."""
    return _WORD.findall(text.lower())


def _stem(word: str) -> str:
    """A word without a plural's s: what is searched for in one number is found in the other."""
    return word.lower().removesuffix("s")


def _read(path: Path) -> Paper:
    head, _, body = path.read_text(encoding="utf-8").partition("\n\n")
    named = dict(line.partition(": ")[::2] for line in head.splitlines())
    missing = [name for name in ("Title", "Company", "Date") if not named.get(name)]
    if missing:
        raise InvalidInput(f"{path.name} doesn't say its {missing[0]}", hint="begin it with Title:, Company: and Date:")
    text = "\n\n".join(" ".join(paragraph.split()) for paragraph in body.split("\n\n") if paragraph.strip())
    return Paper(path.name, named["Title"], named["Company"], named["Date"], text)
