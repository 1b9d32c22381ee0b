"""Documents that the pack has never seen: a run comes to what its files alone say, by another program's reading.

The second set was written once the pack was done, and matched at its first run. The drawn sets hold sentences of both
sets in other documents of other companies, and some that contradict each other.
"""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest

from forktrail_lab.diligence.opening import companies
from forktrail_lab.diligence.tools import DOCUMENTS_VARIABLE, SHIPPED_DOCUMENTS
from support.diligence import counted, derived, played, strictly
from support.diligence_counts import paper
from support.rows import SEED

SECOND = Path(__file__).parent / "second"


def test_two_companies_that_the_pack_has_never_seen_come_to_their_derived_counts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(DOCUMENTS_VARIABLE, str(SECOND))
    expected = derived(SECOND)
    run = played(names=companies())
    assert counted(run) == expected
    assert (expected["company"], expected["question"], expected["memo"]) == (2, 16, 2)
    assert expected["claim"] > 16
    assert strictly(run)[0].divergences == []


@pytest.mark.parametrize("round", range(4))
def test_drawn_documents_come_to_their_derived_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, round: int
) -> None:
    seed = SEED + round
    _draw(tmp_path, random.Random(seed))
    monkeypatch.setenv(DOCUMENTS_VARIABLE, str(tmp_path))
    assert counted(played(names=companies())) == derived(tmp_path), f"seed {seed}"


def test_drawn_documents_hold_contradictions_and_risks(tmp_path: Path) -> None:
    found: Counter[str] = Counter()
    for seed in range(20):
        folder = tmp_path / str(seed)
        folder.mkdir()
        _draw(folder, random.Random(seed))
        found.update(derived(folder))
    assert min(found[name] for name in ("claim", "contradiction", "risk")) > 20


def _draw(folder: Path, dice: random.Random) -> None:
    """Write documents of one to three companies into a folder."""
    known = [one for path in [*SHIPPED_DOCUMENTS.glob("*.txt"), *SECOND.glob("*.txt")] for one in paper(path).sentences]
    known.sort()
    for number in range(dice.randint(1, 3)):
        for place in range(dice.randint(1, 4)):
            sentences = [*dice.sample(known, dice.randint(5, 40)), *(_drawn(dice) for _ in range(dice.randint(0, 12)))]
            sentences = list(dict.fromkeys(sentences))
            dice.shuffle(sentences)
            cut = dice.randint(1, len(sentences))
            body = "\n\n".join("\n".join(part) for part in (sentences[:cut], sentences[cut:]) if part)
            head = f"Title: Paper {place}\nCompany: Company {number}\nDate: 2025-01-0{place + 1}\n\n"
            (folder / f"{number}-{place}.txt").write_text(head + body + "\n")


def _drawn(dice: random.Random) -> str:
    measure = dice.choice(["Revenue", "Debts", "The number of employees"])
    unit = dice.choice(["million euros", "thousand euros", "employees", "percent"])
    return f"{measure} in {dice.choice([2022, 2023])} came to {dice.randint(1, 3)} {unit}."
