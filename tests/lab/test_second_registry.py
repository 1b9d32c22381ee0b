"""A registry that Forktrail wasn't made for gives what was worked out by hand beforehand.

`registries/harbor.json` was worked out on paper before this test was written:

    test                    requires                                   enables         impact  r1
    berth-debug-token       -                                          portal-session  35      reproduced
    pilot-guest-session     -                                          portal-session  45      reproduced
    manifest-cross-carrier  portal-session                             manifest-read   80      reproduced
    berth-reassign          portal-session                             berth-write     80      reproduced
    crane-remote-hold       portal-session, manifest-read, berth-write crane-hold      95      inconclusive
    customs-archive-read    manifest-read                              archive-export  65      not_reproduced
    customs-seal-bypass     archive-export, berth-write                -               90      (support never met)

With both root tests confirmed: berth-reassign and manifest-cross-carrier are eligible (a tie at 80, settled by id);
then manifest-cross-carrier alone; then crane-remote-hold before customs-archive-read; then customs-archive-read; then
nothing. portal-session is provided twice, so neither root finding can take it away alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from forktrail_schemas.settings import Settings
from support.workbench import Workbench

HARBOR = Path(__file__).parent / "registries" / "harbor.json"


@pytest.fixture
def harbor(settings: Settings) -> Iterator[Workbench]:
    bench = Workbench(settings, HARBOR)
    bench.open()
    yield bench
    bench.close()


def test_the_second_registry_gives_what_was_worked_out_by_hand(harbor: Workbench, tmp_path: Path) -> None:
    debug_token = harbor.settle(harbor.report("berth-debug-token"))
    guest_session = harbor.settle(harbor.report("pilot-guest-session"))
    assert debug_token
    assert guest_session

    steps = []
    findings: dict[str, str | None] = {}
    while (proposal := harbor.propose())["status"] == "proposed":
        chosen = proposal["selection"]["test_id"]
        steps.append((proposal["candidates"], chosen, len(proposal["selection"]["finding_ids"])))
        findings[chosen] = harbor.settle(proposal["case_id"])

    assert steps == [
        (["berth-reassign", "manifest-cross-carrier"], "berth-reassign", 2),
        (["manifest-cross-carrier"], "manifest-cross-carrier", 2),
        (["crane-remote-hold", "customs-archive-read"], "crane-remote-hold", 4),
        (["customs-archive-read"], "customs-archive-read", 1),
    ]
    assert proposal["status"] == "no_candidates"
    assert {test for test, finding in findings.items() if finding} == {"berth-reassign", "manifest-cross-carrier"}
    assert harbor.ok("why-not", harbor.run, "customs-seal-bypass").out.count("support missing") == 1

    file = tmp_path / "packet.json"
    harbor.ok("handoff", harbor.run, "--output", str(file))
    packet = json.loads(file.read_bytes())
    assert packet["summary"] == {
        "confirmed_current": 4,
        "negative_current": 1,
        "inconclusive_current": 1,
        "eligible_followups": 0,
    }
    depths = {finding["test_id"]: finding["depth"] for finding in packet["findings"]}
    assert depths == {
        "berth-debug-token": 0,
        "pilot-guest-session": 0,
        "berth-reassign": 1,
        "manifest-cross-carrier": 1,
    }
    assert [blocked["test_id"] for blocked in packet["blocked"]] == ["customs-seal-bypass"]
    assert packet["blocked"][0]["missing"] == ["archive-export"]
    harbor.ok("handoff", "verify", str(file))
    _check_withdrawals(harbor, debug_token, guest_session, findings)
    _check_retry_and_next_revision(harbor)


def _check_withdrawals(
    harbor: Workbench, debug_token: str, guest_session: str, findings: dict[str, str | None]
) -> None:
    def lost(finding: str | None) -> list[str]:
        assert finding
        done = harbor.ok("withdraw", harbor.run, finding, "--dry-run", "--format", "json")
        return [test for test, _ in done.json()["tests"]]

    assert lost(debug_token) == []
    assert lost(guest_session) == []
    assert lost(findings["manifest-cross-carrier"]) == ["crane-remote-hold", "customs-archive-read"]
    assert lost(findings["berth-reassign"]) == ["crane-remote-hold"]
    harbor.ok("withdraw", harbor.run, debug_token, "--key", "olga", "--reason", "planted")
    assert lost(guest_session) == ["berth-reassign", "crane-remote-hold", "manifest-cross-carrier"]


def _check_retry_and_next_revision(harbor: Workbench) -> None:
    cases = harbor.ok(
        "query", harbor.run, "MATCH (c:`Case`) WHERE c.test = 'crane-remote-hold' RETURN c.id AS id", "--json"
    ).json()
    harbor.ok("retry", harbor.run, cases[0]["id"], "--key", "olga")
    assert harbor.propose()["candidates"] == ["crane-remote-hold"]
    harbor.ok("revision", "advance", harbor.run, "r2", "--key", "olga")
    assert harbor.propose()["considered"] == 0
    gaps = harbor.ok("why-not", harbor.run, "crane-remote-hold", "--format", "json").json()["gaps"]
    assert [gap["capability"] for gap in gaps] == ["berth-write", "manifest-read", "portal-session"]
