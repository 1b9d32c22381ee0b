"""The pack's tools: what is found first, and that nothing but the folder's documents can be fetched."""

from __future__ import annotations

from pathlib import Path

import pytest

from forktrail_lab.diligence.tools import (
    DOCUMENTS_VARIABLE,
    SHIPPED_DOCUMENTS,
    fetch_document,
    papers,
    search_documents,
)
from forktrail_schemas.errors import InvalidInput, NotFound

HEAD = "Title: T\nCompany: Acme\nDate: 2025-01-01\n\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of documents that the tools read."""
    monkeypatch.setenv(DOCUMENTS_VARIABLE, str(tmp_path))
    return tmp_path


def found(company: str, *words: str) -> list[str]:
    names = search_documents.call({"company": company, "words": list(words)}, None)
    assert isinstance(names, list)
    return [str(one["name"]) for one in names if isinstance(one, dict)]


def test_the_document_that_holds_the_words_most_often_comes_first_and_then_by_name(folder: Path) -> None:
    for name, body in {"c": "Debts. A debt.", "b": "One debt.", "a": "Loan.", "d": "None."}.items():
        (folder / f"{name}.txt").write_text(HEAD + body)
    (folder / "other.txt").write_text(HEAD.replace("Acme", "Another") + "debt debt debt")
    assert found("Acme", "debts") == ["c.txt", "b.txt", "a.txt", "d.txt"]
    assert found("Nobody", "debts") == []


def test_a_search_names_five_at_most(folder: Path) -> None:
    for number in range(9):
        (folder / f"{number}.txt").write_text(HEAD + "debt")
    assert len(found("Acme", "debt")) == 5


def test_a_fetched_document_has_one_line_a_paragraph(folder: Path) -> None:
    (folder / "a.txt").write_text(HEAD + "One\ntwo.\n\n\nThree\n four.\n")
    fetched = fetch_document.call({"name": "a.txt"}, None)
    assert fetched == {"name": "a.txt", "title": "T", "date": "2025-01-01", "text": "One two.\n\nThree four."}


@pytest.mark.parametrize("name", ["../secret.txt", "secret.md", "b.txt", "", "/etc/passwd"])
def test_nothing_but_a_document_of_the_folder_can_be_fetched(folder: Path, name: str) -> None:
    (folder / "documents").mkdir()
    (folder / "secret.md").write_text(HEAD)
    (folder / "a.txt").write_text(HEAD)
    with pytest.raises(NotFound):
        fetch_document.call({"name": name}, None)


def test_a_document_that_does_not_say_whose_it_is_is_refused(folder: Path) -> None:
    (folder / "a.txt").write_text("Title: T\nDate: 2025-01-01\n\nText.")
    with pytest.raises(InvalidInput, match=r"a\.txt doesn't say its Company"):
        list(papers(folder))


def test_a_folder_that_is_not_there_is_told(folder: Path) -> None:
    with pytest.raises(NotFound):
        list(papers(folder / "none"))


def test_the_shipped_documents_are_prose_of_a_page_each() -> None:
    shipped = list(papers(SHIPPED_DOCUMENTS))
    assert len(shipped) == 9
    for path in SHIPPED_DOCUMENTS.glob("*.txt"):
        assert 15 <= len(path.read_text().splitlines()) <= 40
