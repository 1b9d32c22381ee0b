"""`forktrail evidence verify`: recomputed from the stored bytes, and what it says where they don't hold."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from forktrail_lab.evidence import check_evidence
from forktrail_lab.registry.file import load_registry, shipped_registry_path
from forktrail_producers.blobs import BlobStore
from forktrail_projectors.graph.protocol import Queryable, Table
from forktrail_projectors.projection import open_projection
from forktrail_projectors.state import Value
from forktrail_schemas.settings import Settings
from support.staff import GATEWAY
from support.workbench import Workbench


@dataclass(frozen=True)
class Observed:
    """A run with two observations: gateway (a finding) and export (not reproduced)."""

    bench: Workbench
    ids: dict[str, str]
    files: dict[str, Path]


@pytest.fixture(scope="module")
def observed(shared_settings: Settings) -> Iterator[Observed]:
    bench = Workbench(shared_settings, shipped_registry_path())
    bench.open()
    bench.settle(bench.report(GATEWAY))
    bench.settle(bench.report("export-scope"))
    rows = bench.query("MATCH (o:Observation) RETURN o.id AS id, o.test AS test, o.evidence_sha256 AS sha256")
    blobs = bench.settings.blobs_dir
    yield Observed(
        bench,
        {row["test"]: row["id"] for row in rows},
        {row["test"]: blobs / row["sha256"][:2] / row["sha256"] for row in rows},
    )
    bench.close()


@pytest.fixture
def evidence(observed: Observed) -> Iterator[Path]:
    """The gateway's stored evidence, put back after the test."""
    file = observed.files[GATEWAY]
    data = file.read_bytes()
    yield file
    file.write_bytes(data)


def faults(observed: Observed, *words: str) -> dict[str, list[str]]:
    """What didn't hold, per observation; the command must end with exit 4 and name the first of them."""
    done = observed.bench.command("evidence", "verify", observed.bench.run, "--format", "json", *words)
    assert done.exit == 4, done
    checks = {check["observation_id"]: check["faults"] for check in done.json()}
    assert checks.keys() == set(observed.ids.values())
    first = next(id for id, found in checks.items() if found)
    assert done.err.startswith("forktrail evidence: evidence_invalid:")
    assert first in done.err
    return {id: found for id, found in checks.items() if found}


def test_a_good_run_holds(observed: Observed) -> None:
    done = observed.bench.ok("evidence", "verify", observed.bench.run, "--format", "json")
    assert [(check["test_id"], check["outcome"], check["faults"]) for check in done.json()] == [
        (GATEWAY, "reproduced", []),
        ("export-scope", "not_reproduced", []),
    ]
    assert "2 observations recomputed" in done.err
    assert "holds" in observed.bench.ok("evidence", "verify", observed.bench.run).out


def test_altered_evidence_is_named_and_the_rest_still_checked(observed: Observed, evidence: Path) -> None:
    evidence.write_bytes(evidence.read_bytes().replace(b'"status":200', b'"status":401'))
    (found,) = faults(observed).items()
    assert found[0] == observed.ids[GATEWAY]
    assert found[1][0].startswith("corruption: ")


def test_missing_evidence_is_named(observed: Observed, evidence: Path) -> None:
    evidence.unlink()
    (found,) = faults(observed).items()
    assert found[0] == observed.ids[GATEWAY]
    assert found[1][0].startswith("evidence_missing: ")


def test_a_changed_outcome_rule_is_told(observed: Observed, tmp_path: Path) -> None:
    """With the rules of outcomes turned round, what was recorded doesn't follow from the exchanges any more."""
    registry = json.loads(observed.bench.registry.read_text())
    for rule in registry["tests"][0]["outcomes"]:
        rule["outcome"] = {"reproduced": "not_reproduced", "not_reproduced": "reproduced"}[rule["outcome"]]
    path = tmp_path / "registry.json"
    path.write_text(json.dumps(registry))
    assert faults(observed, "--registry", str(path)) == {
        observed.ids[GATEWAY]: [
            "the test's definition in the registry is not the one it was run by",
            "its exchanges give not_reproduced, reproduced was recorded",
        ]
    }


def test_a_registry_without_the_test_is_told(observed: Observed) -> None:
    harbor = Path(__file__).parent / "registries" / "harbor.json"
    assert faults(observed, "--registry", str(harbor)).keys() == set(observed.ids.values())


@dataclass(frozen=True)
class Misled:
    """A graph that answers with other values in some columns, as a runner might have recorded them."""

    graph: Queryable
    other: dict[str, Value]

    def query(self, cypher: str, parameters: Mapping[str, Value] | None = None) -> Table:
        table = self.graph.query(cypher, parameters)
        rows = [dict(zip(table.columns, row, strict=True)) | self.other for row in table.rows]
        return Table(table.columns, [tuple(row[name] for name in table.columns) for row in rows])


@pytest.mark.parametrize(
    ("column", "value", "fault"),
    [
        ("size", 3, "3 were recorded"),
        ("case_id", "case-1", "receipt: it states something else"),
        ("requests", 99, "99 were recorded"),
        ("interrupted", True, "its interrupted is False, True was recorded"),
        ("outcome", "inconclusive", "inconclusive was recorded"),
        ("public_key", "00" * 32, "receipt: its signature is wrong"),
        ("definition", "0" * 64, "is not the one it was run by"),
    ],
)
def test_what_was_recorded_otherwise_is_told(observed: Observed, column: str, value: Value, fault: str) -> None:
    settings, registry = observed.bench.settings, load_registry(observed.bench.registry).registry
    with open_projection(settings, observed.bench.run) as projection:
        graph = Misled(projection.graph, {column: value})
        checks = check_evidence(graph, BlobStore(str(settings.blobs_dir)), registry)
    assert all(any(fault in found for found in check.faults) for check in checks), checks


def test_an_unknown_run_is_not_found(observed: Observed) -> None:
    assert observed.bench.command("evidence", "verify", "no-such-run").exit == 3
