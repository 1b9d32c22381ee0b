"""Stored bytes changed behind a run's back: whatever rests on them fails closed, as corruption, and sends nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from forktrail_lab.registry.file import shipped_registry_path
from forktrail_schemas.settings import Settings
from support.staff import GATEWAY, observe
from support.workbench import Workbench


def with_one_bit_turned(data: bytes) -> bytes:
    middle = len(data) // 2
    return data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]


DAMAGE: dict[str, tuple[Callable[[Path], object], str]] = {
    "altered": (lambda file: file.write_bytes(with_one_bit_turned(file.read_bytes())), "corruption"),
    "emptied": (lambda file: file.write_bytes(b""), "corruption"),
    "gone": (lambda file: file.unlink(), "evidence_missing"),
}


@dataclass(frozen=True)
class Told:
    """A run with a case that was accepted, one that is observed and waits for its review, and one that is approved."""

    bench: Workbench
    accepted: str
    observed: str
    approved: str

    def blob(self, sha256: str) -> Path:
        return self.bench.settings.blobs_dir / sha256[:2] / sha256

    def evidence(self, case: str) -> Path:
        (row,) = self.bench.query(f"MATCH (o:Observation {{case_id: '{case}'}}) RETURN o.evidence_sha256 AS sha256")
        return self.blob(row["sha256"])

    def registry(self) -> Path:
        (row,) = self.bench.query("MATCH (r:Run) RETURN r.registry_sha256 AS sha256")
        return self.blob(row["sha256"])

    def refused(self, code: str, *words: str) -> str:
        """What a command says that must end as corruption, in one line, having sent nothing to log or service."""
        end, asked = self.bench.end(), self.bench.asked()
        done = self.bench.command(*words)
        assert done.exit == 4, done
        assert done.err.startswith(f"forktrail {words[0]}: {code}: "), done.err
        assert done.err.count("\n") == 1
        assert (self.bench.end(), self.bench.asked()) == (end, asked)
        return done.err


@pytest.fixture(scope="module")
def told(shared_settings: Settings) -> Iterator[Told]:
    bench = Workbench(shared_settings, shipped_registry_path())
    bench.open()
    accepted = bench.report(GATEWAY)
    assert bench.settle(accepted)
    observed = bench.approved("export-scope")
    bench.ok("runner", bench.run, "--once")
    approved = bench.approved("audit-trail-read")
    yield Told(bench, accepted, observed, approved)
    bench.close()


@pytest.fixture(params=DAMAGE)
def damage(request: pytest.FixtureRequest) -> Iterator[Callable[[Path], str]]:
    """Damages a file, which is whole again when the test ends; returns the code that must be said."""
    kept: list[tuple[Path, bytes]] = []

    def do(file: Path) -> str:
        kept.append((file, file.read_bytes()))
        change, code = DAMAGE[request.param]
        change(file)
        return code

    yield do
    for file, data in kept:
        file.write_bytes(data)


def test_a_review_accepts_no_evidence_but_what_the_runner_signed_for(told: Told, damage: Callable[[Path], str]) -> None:
    code = damage(told.evidence(told.observed))
    told.refused(code, "review", told.bench.run, told.observed, "accept", "--key", "ravi")
    assert told.bench.status(told.observed) == "observed"


def test_evidence_show_prints_none_of_it(told: Told, damage: Callable[[Path], str]) -> None:
    code = damage(told.evidence(told.accepted))
    told.refused(code, "evidence", "show", told.bench.run, told.accepted)


def test_evidence_verify_names_the_observation(told: Told, damage: Callable[[Path], str]) -> None:
    code = damage(told.evidence(told.accepted))
    done = told.bench.command("evidence", "verify", told.bench.run)
    assert done.exit == 4
    assert "1 of 2 observations failed" in done.err
    assert f"{code}: " in done.out


def test_a_packet_says_it_and_does_not_verify(told: Told, damage: Callable[[Path], str], tmp_path: Path) -> None:
    packet = tmp_path / "packet.json"
    assert told.bench.ok("handoff", told.bench.run, "--output", str(packet))
    assert told.bench.ok("handoff", "verify", str(packet), "--with-log")
    damage(told.evidence(told.accepted))
    done = told.bench.command("handoff", told.bench.run, "--output", str(packet))
    assert (done.exit, "NOT all valid" in done.err) == (4, True)
    for words in ((), ("--with-log",)):
        assert "$.audit" in told.refused("packet_invalid", "handoff", "verify", str(packet), *words)


@pytest.mark.parametrize(
    "words",
    [("investigate",), ("runner", "--once"), ("evidence", "verify")],
    ids=lambda words: " ".join(words),
)
def test_a_registry_other_than_the_one_the_run_was_opened_with_decides_nothing(
    told: Told, damage: Callable[[Path], str], words: tuple[str, ...]
) -> None:
    code = damage(told.registry())
    name, *rest = words
    options = [word for word in rest if word.startswith("--")]
    action = [word for word in rest if not word.startswith("--")]
    told.refused(code, name, *action, told.bench.run, *options)
    assert told.bench.status(told.approved) == "approved"


def test_all_is_well_again_once_the_bytes_are_back(told: Told) -> None:
    bench = told.bench.another()
    finding = bench.settle(bench.report(GATEWAY))
    assert finding
    assert "1 observation recomputed" in bench.ok("evidence", "verify", bench.run).err


def test_the_evidence_of_another_case_is_not_accepted_and_can_be_rejected(told: Told) -> None:
    """A second run's runner names the first run's evidence as its own."""
    digest = told.evidence(told.accepted).name
    other = told.bench.another()
    case = other.approved(GATEWAY)
    observe(other.settings, other.run, case, "reproduced", runner="runner", evidence_sha256=digest)
    done = other.command("review", other.run, case, "accept", "--key", "ravi")
    assert (done.exit, done.out) == (4, "")
    assert done.err.startswith("forktrail review: evidence_invalid: ")
    assert f"is the evidence of {told.accepted}" in done.err
    other.ok("review", other.run, case, "reject", "--key", "ravi", "--note", "the evidence is another's")
    assert other.status(case) == "rejected"
