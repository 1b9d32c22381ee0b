"""The shipped registry's r1 played to its end on a real log: what is handed over, and what a withdrawal would do."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import rfc8785

from forktrail_lab.broker.probe import free_port
from forktrail_lab.registry.file import shipped_registry_path
from forktrail_schemas.settings import Settings
from support.staff import GATEWAY
from support.workbench import Workbench, play_r1

COUNTS = {"confirmed_current": 3, "negative_current": 1, "inconclusive_current": 1, "eligible_followups": 0}


@dataclass(frozen=True)
class Played:
    """A run whose r1 is over, and each test's finding."""

    bench: Workbench
    findings: dict[str, str | None]


@pytest.fixture(scope="module")
def played(shared_settings: Settings) -> Iterator[Played]:
    bench = Workbench(shared_settings, shipped_registry_path())
    bench.open()
    yield Played(bench, play_r1(bench))
    bench.close()


@pytest.fixture(scope="module")
def packet(played: Played, tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("packets") / "packet.json"
    done = played.bench.ok("handoff", played.bench.run, "--output", str(file))
    assert "audit: " in done.err
    assert "5 receipts and 5 evidence digests recomputed, all valid" in done.err
    return file


def verified(file: Path, home: Path) -> subprocess.CompletedProcess[str]:
    """`handoff verify` in a process with an empty home, and no Kafka where it is told to look for one."""
    return subprocess.run(
        [sys.executable, "-m", "forktrail_lab", "handoff", "verify", str(file)],
        env={
            **os.environ,
            "FORKTRAIL_HOME": str(home),
            "FORKTRAIL_BOOTSTRAP_SERVERS": f"127.0.0.1:{free_port()}",
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


class TestHandoff:
    def test_the_packet_says_what_r1_came_to(self, played: Played, packet: Path) -> None:
        said = json.loads(packet.read_bytes())
        assert said["summary"] == COUNTS
        assert said["active_revision"] == "r1"
        assert {finding["test_id"]: finding["id"] for finding in said["findings"]} == {
            test: finding for test, finding in played.findings.items() if finding
        }
        assert {found["test_id"]: (found["depth"], found["impact"]) for found in said["findings"]} == {
            GATEWAY: (0, 70),
            "invoice-tenant-boundary": (1, 90),
            "invoice-chain": (2, 100),
        }
        assert {found["researcher"] for found in said["findings"]} == {"rita", "investigator"}
        assert [row["test_id"] for row in said["negative_observations"]] == ["export-scope"]
        assert [row["test_id"] for row in said["inconclusive_observations"]] == ["audit-trail-read"]
        assert said["audit"]["valid"] is True
        assert said["audit"]["receipts"] == {"checked": 5, "valid": 5}
        project = played.bench.ok("project", played.bench.run, "--format", "json").json()
        assert said["state_digest"] == project["state_digest"]
        assert said["log"]["next_offset"] == played.bench.end()

    def test_it_is_canonical_and_its_digest_can_be_made_again(self, packet: Path) -> None:
        data = packet.read_bytes()
        said = json.loads(data)
        assert rfc8785.dumps(said) + b"\n" == data
        digest = said.pop("packet_sha256")
        assert hashlib.sha256(rfc8785.dumps(said)).hexdigest() == digest

    def test_it_verifies_from_the_file_alone(self, packet: Path, tmp_path: Path) -> None:
        done = verified(packet, tmp_path / "empty")
        assert done.returncode == 0, done
        said = json.loads(packet.read_bytes())
        assert f"packet_sha256 {said['packet_sha256']}" in done.stdout
        assert "5 receipts verified from the file alone" in done.stdout
        assert "3 confirmed current, 1 negative current, 1 inconclusive current, 0 eligible followups" in done.stdout
        assert not (tmp_path / "empty").exists()

    def test_an_altered_one_ends_in_one_line_and_exit_4(self, packet: Path, tmp_path: Path) -> None:
        altered = tmp_path / "altered.json"
        altered.write_bytes(packet.read_bytes().replace(b'"reviewer":"ravi"', b'"reviewer":"olga"', 1))
        done = verified(altered, tmp_path)
        assert done.returncode == 4
        assert done.stdout == ""
        assert done.stderr.startswith("forktrail handoff: packet_invalid:")
        assert done.stderr.count("\n") == 1

    @pytest.mark.parametrize("data", [b"", b"[]", b"packet", b"[" * 50_000_000])
    def test_what_is_no_packet_ends_in_one_line_and_exit_2(self, data: bytes, tmp_path: Path, played: Played) -> None:
        file = tmp_path / "file"
        file.write_bytes(data)
        done = played.bench.command("handoff", "verify", str(file))
        assert (done.exit, done.out) == (2, "")
        assert done.err.startswith("forktrail handoff: invalid_input: not a")
        assert done.err.count("\n") == 1

    def test_a_file_that_is_not_there_or_no_file_or_not_writable_is_told(self, played: Played, tmp_path: Path) -> None:
        assert played.bench.command("handoff", "verify", str(tmp_path / "none")).exit == 3
        assert played.bench.command("handoff", "verify", str(tmp_path)).exit == 2
        assert played.bench.command("handoff", "verify").exit == 2
        done = played.bench.command("handoff", played.bench.run, "--output", str(tmp_path / "no" / "folder"))
        assert done.exit == 2
        assert done.err.count("\n") == 1

    def test_evidence_that_is_gone_is_told_in_the_packet_which_then_does_not_hold(
        self, played: Played, packet: Path, tmp_path: Path
    ) -> None:
        sha256 = json.loads(packet.read_bytes())["negative_observations"][0]["evidence"]["sha256"]
        blob = played.bench.settings.blobs_dir / sha256[:2] / sha256
        data = blob.read_bytes()
        blob.unlink()
        done = played.bench.command("handoff", played.bench.run, "--output", str(tmp_path / "packet.json"))
        blob.write_bytes(data)
        assert done.exit == 4
        assert "NOT all valid" in done.err
        said = json.loads((tmp_path / "packet.json").read_bytes())
        assert said["negative_observations"][0]["evidence_check"] == {"valid": False, "fault": "evidence_missing"}
        assert said["audit"]["evidence_digests"] == {"checked": 5, "valid": 4}
        assert played.bench.command("handoff", "verify", str(tmp_path / "packet.json")).exit == 4


class TestWithdrawal:
    def lost(self, played: Played, test: str) -> list[tuple[str, list[str]]]:
        finding = played.findings[test]
        assert finding
        done = played.bench.ok("withdraw", played.bench.run, finding, "--dry-run", "--format", "json")
        return [(test, capabilities) for test, capabilities in done.json()["tests"]]

    def test_a_dry_run_lists_what_would_lose_support_and_changes_nothing(self, played: Played) -> None:
        end = played.bench.end()
        assert self.lost(played, GATEWAY) == [
            (test, ["internal-route-access"])
            for test in ("audit-trail-read", "export-scope", "invoice-chain", "invoice-tenant-boundary")
        ]
        assert self.lost(played, "invoice-tenant-boundary") == [("invoice-chain", ["cross-tenant-invoice-read"])]
        assert self.lost(played, "invoice-chain") == []
        assert played.bench.end() == end

    def test_an_unknown_finding_is_not_found(self, played: Played) -> None:
        end = played.bench.end()
        assert played.bench.command("withdraw", played.bench.run, "finding-zz", "--key", "olga").exit == 3
        assert played.bench.end() == end

    def test_of_an_unknown_test_it_says_what_lists_them(self, played: Played) -> None:
        said = played.bench.command("why-not", played.bench.run, "no-such-test")
        assert said.exit == 3
        assert f"`forktrail run show {played.bench.run}` lists the tests" in said.err

    def test_for_real_it_takes_the_candidates_away(self, played: Played) -> None:
        bench = played.bench.another()
        finding = bench.settle(bench.report(GATEWAY))
        assert finding
        bench.ok("withdraw", bench.run, finding, "--key", "olga", "--reason", "planted")
        said = bench.propose()
        assert (said["status"], said["considered"]) == ("no_candidates", 0)
        why = bench.ok("why-not", bench.run, "export-scope").out
        assert "withdrawn: " + finding in why
        fallen = f"the finding of {GATEWAY} was withdrawn by olga; it can be tested again in the next revision"
        assert fallen in why
        assert "its finding was withdrawn by olga" in bench.ok("why-not", bench.run, GATEWAY).out
        reasons = bench.ok("why-not", bench.run, "export-scope", "--format", "json").json()["reasons"]
        assert reasons[-1].strip() == fallen
        again = bench.command("withdraw", bench.run, finding, "--key", "olga")
        assert again.exit == 1
        assert "already_withdrawn" in again.err
        packet = bench.ok("handoff", bench.run)
        assert json.loads(packet.out)["findings"] == []

    def test_an_old_packet_dressed_up_as_new_holds_by_itself_and_not_with_the_log(
        self, played: Played, tmp_path: Path
    ) -> None:
        bench, file = played.bench.another(), tmp_path / "packet.json"
        finding = bench.settle(bench.report(GATEWAY))
        assert finding
        old = json.loads(bench.ok("handoff", bench.run).out)
        file.write_bytes(rfc8785.dumps(old))
        assert "0 records came since" in bench.ok("handoff", "verify", str(file), "--with-log").out
        bench.ok("withdraw", bench.run, finding, "--key", "olga", "--reason", "planted")
        assert "1 record came since" in bench.ok("handoff", "verify", str(file), "--with-log").out
        new = json.loads(bench.ok("handoff", bench.run).out)
        for mixed in (
            {**old, "log": new["log"], "state_digest": new["state_digest"]},
            {**old, "log": {**old["log"], "root": "0" * 64}},
            {**old, "state_digest": "0" * 64},
            {**old, "log": {**old["log"], "next_offset": 99_999}},
        ):
            del mixed["packet_sha256"]
            sealed = {**mixed, "packet_sha256": hashlib.sha256(rfc8785.dumps(mixed)).hexdigest()}
            file.write_bytes(rfc8785.dumps(sealed))
            alone = bench.ok("handoff", "verify", str(file))
            assert "check that, and whether the log went on, with --with-log" in alone.out
            done = bench.command("handoff", "verify", str(file), "--with-log")
            assert (done.exit, "packet_invalid" in done.err) == (4, True), done
