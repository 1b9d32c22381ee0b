"""`forktrail case` and `forktrail evidence show` on a real broker. Expected values come from the northwind registry."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from forktrail_lab.registry.file import shipped_registry_path
from forktrail_producers.blobs import BlobStore
from forktrail_schemas.settings import Settings
from support.command_line import CommandLine
from support.staff import GATEWAY, INVOICE, observe, report
from support.workbench import Workbench

AUDIT, CHAIN = "audit-trail-read", "invoice-chain"


@dataclass(frozen=True)
class Told:
    """A run in r1: gateway and invoice found, audit inconclusive, the chain proposed; each test's case and finding."""

    bench: Workbench
    cases: dict[str, str]
    findings: dict[str, str]

    def show(self, test: str) -> Any:
        """What `case show` says of a test's case, as JSON."""
        return self.bench.ok("case", "show", self.bench.run, self.cases[test], "--format", "json").json()


@pytest.fixture(scope="module")
def told(shared_settings: Settings) -> Iterator[Told]:
    bench = Workbench(shared_settings, shipped_registry_path())
    bench.open()
    cases = {GATEWAY: bench.report(GATEWAY)}
    findings = {GATEWAY: bench.settle(cases[GATEWAY])}
    cases[INVOICE] = bench.propose()["case_id"]
    findings[INVOICE] = bench.settle(cases[INVOICE])
    cases[AUDIT] = bench.report(AUDIT)
    bench.settle(cases[AUDIT])
    cases[CHAIN] = bench.propose()["case_id"]
    yield Told(bench, cases, {test: finding for test, finding in findings.items() if finding})
    bench.close()


class TestList:
    def test_each_case_has_a_row_with_everyone_who_had_a_hand_in_it(self, told: Told) -> None:
        rows = told.bench.ok("case", "list", told.bench.run, "--format", "json").json()
        assert [tuple(row.values()) for row in rows] == [
            (
                told.cases[test],
                test,
                "r1",
                status,
                outcome,
                proposer,
                *(("olga", "runner", "ravi") if outcome else (None, None, None)),
                told.findings.get(test),
                None,
            )
            for test, status, outcome, proposer in (
                (GATEWAY, "accepted", "reproduced", "rita"),
                (INVOICE, "accepted", "reproduced", "investigator"),
                (AUDIT, "accepted", "inconclusive", "rita"),
                (CHAIN, "proposed", None, "investigator"),
            )
        ]

    def test_one_status_is_asked_for(self, told: Told) -> None:
        (row,) = told.bench.ok("case", "list", told.bench.run, "--status", "proposed", "--format", "json").json()
        assert row["case_id"] == told.cases[CHAIN]
        assert told.bench.ok("case", "list", told.bench.run, "--status", "denied", "--format", "json").json() == []

    def test_as_a_table_it_has_the_whole_ids(self, told: Told) -> None:
        lines = told.bench.ok("case", "list", told.bench.run).out.splitlines()
        assert lines[0].split() == [
            "case_id", "test", "revision", "status", "outcome", "proposer", "approver", "runner", "reviewer", "finding",
            "remark",
        ]  # fmt: skip
        assert lines[1].startswith(told.cases[GATEWAY])
        assert lines[1].split()[-2:] == [told.findings[GATEWAY], "-"]


class TestShow:
    def test_of_a_proposed_case_it_says_what_it_would_send_and_rests_on(self, told: Told) -> None:
        shown = told.show(CHAIN)
        assert shown["case"]["status"] == "proposed"
        assert shown["test"] == {
            "id": CHAIN,
            "title": "A tenant takes over the payout of another tenant's invoice",
            "description": "One clerk of tenant-alpha, in one revision: finds an invoice of tenant-beta in the list of "
            "shared invoices, reads it, and points its payout at an account of its own.",
            "asset": "invoice-api",
            "impact": 100,
            "requires": ["cross-tenant-invoice-read", "internal-route-access"],
            "enables": ["invoice-takeover-path"],
        }
        sent = [f"{request['method']} {request['path']}" for request in shown["sends"]["requests"]]
        assert sent == [
            "GET /v1/invoices?counterparty=tenant-beta",
            "GET /v1/invoices/{invoice_id}",
            "PUT /v1/invoices/{invoice_id}/payout-account",
        ]
        assert shown["opened"]["by"] == "investigator"
        assert (shown["opened"]["how"], "highest impact (100)" in shown["opened"]["words"]) == ("proposal", True)
        support = {part["id"]: (part["test"], part["capabilities"], part["current"]) for part in shown["rests_on"]}
        assert support == {
            told.findings[GATEWAY]: (GATEWAY, ["internal-route-access"], True),
            told.findings[INVOICE]: (INVOICE, ["cross-tenant-invoice-read"], True),
        }
        assert [shown[part] for part in ("approval", "observation", "review", "finding")] == [None] * 4

    def test_of_a_settled_case_it_says_who_did_what(self, told: Told) -> None:
        shown = told.show(GATEWAY)
        assert (shown["opened"]["how"], shown["opened"]["by"], shown["opened"]["words"]) == (
            "report",
            "rita",
            "look here",
        )
        assert (shown["approval"]["decision"], shown["approval"]["by"], shown["approval"]["key_holder"]) == (
            "approve",
            "olga",
            "olga",
        )
        observation = shown["observation"]
        assert (observation["outcome"], observation["runner"], observation["requests"]) == ("reproduced", "runner", 2)
        assert (observation["receipt_valid"], observation["receipt_fault"]) == (True, None)
        assert observation["interrupted"] is False
        assert (shown["review"]["decision"], shown["review"]["by"]) == ("accept", "ravi")
        assert (shown["finding"]["id"], shown["finding"]["current"]) == (told.findings[GATEWAY], True)
        assert shown["finding"]["capabilities"] == ["internal-route-access"]
        offsets = [shown[part]["offset"] for part in ("opened", "approval", "observation", "review")]
        assert offsets == sorted(offsets)

    def test_evidence_is_named_by_the_digest_and_size_of_what_is_stored(self, told: Told) -> None:
        observation = told.show(GATEWAY)["observation"]
        data = BlobStore(str(told.bench.settings.blobs_dir)).get(observation["evidence_sha256"])
        assert len(data) == observation["evidence_bytes"]

    def test_the_text_says_the_same(self, told: Told) -> None:
        out = told.bench.ok("case", "show", told.bench.run, told.cases[INVOICE][:9]).out
        for line in (
            "title +A tenant reads another tenant's invoice",
            "read-beta-invoice +GET /v1/invoices/inv-beta-2001",
            " +as tenant-alpha-clerk: authorization",
            " +x-route-context: internal-mesh",
            "bounds +at most 1 HTTP request within 10 s; no redirect followed; up to 65536 bytes kept of each body",
            " +read-beta-invoice is answered with 200, 'tenant-beta' in the body",
            f"{told.findings[GATEWAY]} +{GATEWAY}, gives internal-route-access; current",
            "key holder +olga",
            "runner +runner",
            "receipt +valid",
            "standing +current",
            "capabilities +cross-tenant-invoice-read",
        ):
            assert re.search(rf"^ +{line}$", out, re.M), line
        assert "synthetic-tenant-alpha-clerk" not in out
        assert not re.search(r"runner +[0-9a-f]{64}", out)

    def test_of_an_inconclusive_case_there_is_no_finding(self, told: Told) -> None:
        shown = told.show(AUDIT)
        assert (shown["observation"]["outcome"], shown["review"]["decision"]) == ("inconclusive", "accept")
        assert shown["finding"] is None

    def test_without_its_registry_it_says_so_and_shows_the_rest(self, told: Told) -> None:
        (row,) = told.bench.query("MATCH (r:Run) RETURN r.registry_sha256 AS sha256")
        blob = told.bench.settings.blobs_dir / row["sha256"][:2] / row["sha256"]
        data = blob.read_bytes()
        blob.unlink()
        shown = told.show(GATEWAY)
        given = told.bench.ok(
            "case", "show", told.bench.run, told.cases[GATEWAY], "--registry", str(shipped_registry_path())
        )
        blob.write_bytes(data)
        assert shown["sends"]["fault"].startswith("evidence_missing: ")
        assert shown["sends"]["requests"] == []
        assert (shown["test"]["asset"], shown["test"]["description"]) == ("gateway", None)
        assert shown["finding"]["id"] == told.findings[GATEWAY]
        assert "GET /internal/routes" in given.out

    def test_a_registry_that_defines_the_test_otherwise_is_refused(self, told: Told, tmp_path: Path) -> None:
        registry = json.loads(shipped_registry_path().read_text())
        registry["tests"][0]["requests"][0]["path"] = "/other"
        file = tmp_path / "registry.json"
        file.write_text(json.dumps(registry))
        done = told.bench.command("case", "show", told.bench.run, told.cases[GATEWAY], "--registry", str(file))
        assert (done.exit, done.out) == (1, "")
        assert "graph_catalog_mismatch" in done.err
        assert told.bench.command("case", "show", told.bench.run, told.cases[GATEWAY], "--registry", "none").exit == 3


class TestShowOfWhatFell:
    def test_a_finding_is_told_as_history_or_withdrawn(
        self, forktrail: CommandLine, run: str, settings: Settings
    ) -> None:
        case = report(forktrail, run)
        forktrail.ok("approve", run, case, "--key", "olga", "--reason", "in scope")
        observe(settings, run, case, "reproduced")
        finding = forktrail.ok("review", run, case, "accept", "--key", "ravi", "--note", "seen").out.strip()
        rests = report(forktrail, run, INVOICE)
        forktrail.ok("revision", "advance", run, "r2", "--key", "olga")
        shown = forktrail.ok("case", "show", run, case, "--format", "json").json
        assert (shown["case"]["revision"], shown["case"]["revision_active"]) == ("r1", False)
        assert (shown["finding"]["current"], shown["finding"]["withdrawn"]) == (False, False)
        assert (shown["approval"]["reason"], shown["review"]["note"]) == ("in scope", "seen")
        assert shown["observation"]["runner"] == "runner-1"
        forktrail.ok("withdraw", run, finding, "--key", "olga", "--reason", "planted")
        out = forktrail.ok("case", "show", run, rests).out
        assert f"{finding}  {GATEWAY}, gives internal-route-access; withdrawn by olga: planted" in out

    def test_a_reports_details_are_shown_with_its_summary(self, forktrail: CommandLine, run: str) -> None:
        words = ("--summary", "the marker is trusted", "--details", "1. send it\n2. look at the routes")
        case = forktrail.ok("report", run, GATEWAY, "--as", "rita", *words).out.strip()
        opened = forktrail.ok("case", "show", run, case, "--format", "json").json["opened"]
        assert (opened["words"], opened["details"]) == ("the marker is trusted", "1. send it\n2. look at the routes")
        assert "1. send it\\n2. look at the routes" in forktrail.ok("case", "show", run, case).out

    def test_a_denied_case_says_who_denied_it_and_why(self, forktrail: CommandLine, run: str) -> None:
        case = report(forktrail, run)
        forktrail.ok("deny", run, case, "--key", "olga", "--reason", "out of scope")
        shown = forktrail.ok("case", "show", run, case, "--format", "json").json
        assert (shown["case"]["status"], shown["approval"]["decision"]) == ("denied", "deny")
        assert (shown["approval"]["by"], shown["approval"]["reason"]) == ("olga", "out of scope")
        assert shown["observation"] is None


class TestEvidenceShow:
    def test_it_prints_each_request_and_answer(self, told: Told) -> None:
        out = told.bench.ok("evidence", "show", told.bench.run, told.cases[GATEWAY]).out
        first, second = out.split("\nrequest ")[1:]
        assert first.startswith("no-credentials\n> GET http://127.0.0.1:")
        assert "\n< 401\n" in first
        assert '\n< {"error": "credentials required"}\n' in first
        assert second.startswith("routing-marker\n> GET http://127.0.0.1:")
        assert "\n> x-route-context: internal-mesh\n" in second
        assert "\n< 200\n" in second
        assert '{"prefix": "/v1/invoices", "service": "invoice-api"}' in second

    def test_an_identity_stands_by_its_name(self, told: Told) -> None:
        out = told.bench.ok("evidence", "show", told.bench.run, told.cases[INVOICE]).out
        assert "> authorization: <identity tenant-alpha-clerk>" in out
        assert "synthetic-tenant-alpha-clerk" not in out

    def test_as_json_it_prints_the_document_as_stored(self, told: Told) -> None:
        done = told.bench.ok("evidence", "show", told.bench.run, told.cases[GATEWAY], "--format", "json")
        digest = told.show(GATEWAY)["observation"]["evidence_sha256"]
        assert done.out.encode() == BlobStore(str(told.bench.settings.blobs_dir)).get(digest)
        assert digest in done.err

    def test_a_case_that_was_not_run_has_none(self, told: Told) -> None:
        done = told.bench.command("evidence", "show", told.bench.run, told.cases[CHAIN])
        assert (done.exit, done.out) == (2, "")
        assert "no_observation" in done.err

    @pytest.mark.parametrize(("damage", "code"), [("gone", "evidence_missing"), ("altered", "corruption")])
    def test_what_is_missing_or_altered_is_not_printed(self, damage: str, code: str, told: Told) -> None:
        digest = told.show(GATEWAY)["observation"]["evidence_sha256"]
        blob = told.bench.settings.blobs_dir / digest[:2] / digest
        data = blob.read_bytes()
        if damage == "gone":
            blob.unlink()
        else:
            blob.write_bytes(data.replace(b'"status":200', b'"status":401'))
        done = told.bench.command("evidence", "show", told.bench.run, told.cases[GATEWAY])
        blob.write_bytes(data)
        assert (done.exit, done.out) == (4, "")
        assert done.err.startswith(f"forktrail evidence: {code}: ")

    def test_the_evidence_of_another_case_is_told_as_such(self, told: Told) -> None:
        """A second run's runner names the first run's evidence as its own."""
        digest = told.show(GATEWAY)["observation"]["evidence_sha256"]
        other = told.bench.another()
        case = other.approved(GATEWAY)
        observe(other.settings, other.run, case, "reproduced", runner="runner", evidence_sha256=digest)
        done = other.command("evidence", "show", other.run, case)
        assert done.exit == 4
        assert f"what was stored for {case} is the evidence of {told.cases[GATEWAY]}" in done.err
