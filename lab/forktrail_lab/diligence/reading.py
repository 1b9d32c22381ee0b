"""What a model has read on its way to an answer, and whether what it says stands there."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from forktrail_lab.diligence.answers import Finding

FETCH = "fetch_document"
QUOTE_WORDS_MIN = 3
_ID_DIGITS = 20

Fetched = Mapping[str, str]


def fetched_in(transcript: Iterable[Mapping[str, Any]]) -> dict[str, Fetched]:
    """The documents that a model fetched, by name and in the order of their names; an error in place of one is none."""
    called: dict[str, str] = {}
    found: dict[str, Fetched] = {}
    for message in transcript:
        if message["role"] == "assistant":
            called |= {call["id"]: call["name"] for call in message.get("tool_calls", ())}
        elif message["role"] == "tool" and called.get(message["tool_call_id"]) == FETCH:
            try:
                document = json.loads(message["content"])
            except ValueError:
                continue
            found[document["name"]] = document
    return dict(sorted(found.items()))


def fault_of(finding: Finding, documents: Mapping[str, Fetched], taken: Sequence[Finding]) -> str | None:
    """Why a finding is no claim; None where its quote stands in a document that was read.

    Args:
        taken: the findings before it that are claims.
    """
    if finding.document not in documents:
        return f"{finding.document} wasn't read"
    words = finding.quote.split()
    if len(words) < QUOTE_WORDS_MIN:
        return f"a quote of less than {QUOTE_WORDS_MIN} words bears out nothing"
    if " ".join(words) not in " ".join(documents[finding.document]["text"].split()):
        return f"the quote doesn't stand in {finding.document}"
    if any((one.document, one.quote.split()) == (finding.document, words) for one in taken):
        return "it was said already"
    return None


def text_sha256(text: str) -> str:
    """The digest of a text, as hex."""
    return hashlib.sha256(text.encode()).hexdigest()


def id_of(kind: str, *parts: str) -> str:
    """An object's id that follows from what it is: whoever makes it a second time is refused by the log."""
    return f"{kind}-{text_sha256(json.dumps([kind, *parts]))[:_ID_DIGITS]}"
