"""The evidence story, played as separate operating-system processes on a real log.

Every step is a `forktrail` command in a process of its own, as a person or service would run it; what the story expects
of each is checked, and the demo ends with exit 1 where it doesn't come true.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from forktrail_lab.exchange.targets import TARGETS_FILE
from forktrail_lab.registry.file import shipped_registry_path
from forktrail_producers.keys import KeyStore
from forktrail_schemas.errors import ExitCode, ForktrailError
from forktrail_schemas.settings import Settings

ADMIN, OPERATOR, REVIEWER, RUNNER = "admin", "olga", "ravi", "runner"
ROLES = {OPERATOR: "operator", REVIEWER: "reviewer", RUNNER: "runner"}
LAB_WAIT_SECONDS = 20.0
GOAL = "find out how far a forged routing marker reaches"
COUNT_NODES = (
    "MATCH (n:Finding) WHERE n.revision = 'r1' RETURN 'Finding' AS label, count(*) AS nodes "
    "UNION ALL MATCH (n:Capability) RETURN 'Capability' AS label, count(*) AS nodes "
    "UNION ALL MATCH (n:TestCase) RETURN 'TestCase' AS label, count(*) AS nodes "
    "UNION ALL MATCH (n:Asset) RETURN 'Asset' AS label, count(*) AS nodes"
)


class StoryBroken(ForktrailError):
    """A step of the demo came out otherwise than the story says."""

    code = "story_broken"


class Stage:
    """Runs commands as processes and shows what they print."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.processes = 0

    def chapter(self, title: str) -> None:
        """Print a heading."""
        print(f"\n== {title}", flush=True)

    def tell(self, line: str) -> None:
        """Print what a step showed."""
        print(f"   => {line}", flush=True)

    def run(self, *words: str, expected_exit: int = ExitCode.OK) -> str:
        """Run a command in a process of its own, show it and its output, and return its stdout.

        Raises:
            StoryBroken: it ended with another exit code than expected.
        """
        print(f"   $ forktrail {' '.join(_quoted(word) for word in words)}", flush=True)
        self.processes += 1
        done = subprocess.run([*_FORKTRAIL, *words], capture_output=True, text=True, check=False)
        for line in (done.stdout + done.stderr).splitlines():
            print(f"     {line}", flush=True)
        if done.returncode != expected_exit:
            raise StoryBroken(f"`forktrail {words[0]}` ended with exit {done.returncode}, not {expected_exit}")
        return done.stdout

    @contextmanager
    def lab(self) -> Iterator[None]:
        """Keep `forktrail lab serve` running for the length of a `with` block."""
        targets = self.settings.lab_dir / TARGETS_FILE
        targets.unlink(missing_ok=True)
        log = self.settings.lab_dir / "lab.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        print("   $ forktrail lab serve &", flush=True)
        self.processes += 1
        with log.open("w") as output:
            process = subprocess.Popen([*_FORKTRAIL, "lab", "serve"], stdout=output, stderr=subprocess.STDOUT)
        try:
            _wait_for(targets, process, log)
            yield
        finally:
            process.terminate()
            process.wait(timeout=LAB_WAIT_SECONDS)


_FORKTRAIL = (sys.executable, "-m", "forktrail_lab")


def play(settings: Settings) -> None:
    """Play the whole story, and print where to go on from.

    Raises:
        StoryBroken: a step came out otherwise than the story says.
    """
    began = time.monotonic()
    stage = Stage(settings)
    stage.chapter("A log, keys and a run")
    if not settings.external_kafka:
        stage.run("broker", "start")
    run = _open_run(stage)
    with stage.lab():
        findings = _first_revision(stage, run)
        _packet(stage, run)
        _withdrawal(stage, run, findings[0])
        _second_revision(stage, run)
    _rebuild(stage, run)
    stage.chapter("Done")
    print(f"   {stage.processes} processes, {time.monotonic() - began:.0f} s. {run} is left to explore:")
    for line in _NEXT:
        print(f"     {line.format(run=run)}")


def _open_run(stage: Stage) -> str:
    known = KeyStore(stage.settings.keys_dir).names()
    for name in (ADMIN, *ROLES):
        if name not in known:
            stage.run("key", "new", name)
    opened = stage.run("run", "open", "--registry", str(shipped_registry_path()), "--goal", GOAL, "--key", ADMIN)
    run = opened.split()[0]
    for name, role in ROLES.items():
        stage.run("key", "register", run, name, "--role", role, "--key", ADMIN)
    return run


def _first_revision(stage: Stage, run: str) -> list[str]:
    """Play r1; returns the findings, in order."""
    stage.chapter("r1: a report opens a case; a person approves; the runner observes; another person reviews")
    finding = _settle(stage, run, _report(stage, run, "gateway-routing-context"), "401/200 -> reproduced")
    findings = [finding]
    stage.chapter("r1: a fresh investigator, with no history, reads the graph and proposes the next test")
    case = _investigate(stage, run, 3, "invoice-tenant-boundary", findings)
    findings.append(_settle(stage, run, case, "reproduced"))
    stage.chapter("r1: a second fresh one finds the chain, which rests on two findings")
    case = _investigate(stage, run, 3, "invoice-chain", findings)
    findings.append(_settle(stage, run, case, "reproduced"))
    stage.chapter("r1: what doesn't reproduce is said as such, and what failed is never read as a pass")
    case = _investigate(stage, run, 2, "export-scope", findings[:1])
    _settle(stage, run, case, "403 -> not_reproduced", finding=False)
    case = _investigate(stage, run, 1, "audit-trail-read", findings[:1])
    _settle(stage, run, case, "503 -> inconclusive", finding=False)
    stage.chapter("r1: nothing is left to propose")
    result = json.loads(stage.run("investigate", run))
    _expect("eligible tests", (result["status"], result["considered"]), ("no_candidates", 0))
    stage.tell("0 eligible")
    counts = json.loads(stage.run("query", run, COUNT_NODES, "--json"))
    nodes = sum(row["nodes"] for row in counts)
    _expect("finding, capability, test and asset nodes of r1", nodes, 15)
    stage.tell(f"{nodes} finding, capability, test and asset nodes")
    return findings


def _report(stage: Stage, run: str, test: str) -> str:
    summary = "the gateway trusts a routing marker from outside"
    return _id("case", stage.run("report", run, test, "--summary", summary, "--as", "rita"))


def _settle(stage: Stage, run: str, case: str, shown: str, *, finding: bool = True) -> str:
    """Approve, run and accept a case; returns the finding it made, or "" where it should make none."""
    stage.run("approve", run, case, "--key", OPERATOR)
    observed = stage.run("runner", run, "--key", RUNNER, "--once")
    if shown not in observed:
        raise StoryBroken(f"the runner should have seen {shown}")
    reviewed = stage.run("review", run, case, "accept", "--key", REVIEWER)
    if not finding:
        _expect("findings made", re.findall(_ID.format("finding"), reviewed), [])
        return ""
    return _id("finding", reviewed)


def _investigate(stage: Stage, run: str, considered: int, test: str, findings: list[str]) -> str:
    """A fresh investigator's proposal, checked; returns the case."""
    result: dict[str, Any] = json.loads(stage.run("investigate", run))
    _expect("status", result["status"], "proposed")
    _expect("candidates considered", result["considered"], considered)
    _expect("test chosen", result["selection"]["test_id"], test)
    _expect("findings it rests on", sorted(result["selection"]["finding_ids"]), sorted(findings))
    stage.tell(f"{considered} candidates, {test} chosen, on {len(findings)} findings")
    return str(result["case_id"])


def _packet(stage: Stage, run: str) -> None:
    stage.chapter("Evidence recomputed from stored bytes, and handed on in a packet that verifies by itself")
    stage.run("evidence", "verify", run)
    path = stage.settings.home / "packets" / f"{run}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    stage.run("handoff", run, "--output", str(path))
    stage.run("handoff", "verify", str(path))
    packet = json.loads(path.read_bytes())
    summary = {"confirmed_current": 3, "negative_current": 1, "inconclusive_current": 1, "eligible_followups": 0}
    _expect("packet", packet["summary"], summary)
    _expect("audit", packet["audit"]["valid"], True)
    stage.tell(f"3 confirmed, 1 negative, 1 inconclusive, 0 eligible; packet_sha256 {packet['packet_sha256']}")


def _withdrawal(stage: Stage, run: str, finding: str) -> None:
    stage.chapter("What if the gateway finding fell? (nothing is changed)")
    loss = json.loads(stage.run("withdraw", run, finding, "--dry-run", "--format", "json"))
    _expect("tests that would lose support", len(loss["tests"]), 4)
    stage.tell("4 tests would lose support")


def _second_revision(stage: Stage, run: str) -> None:
    stage.chapter("r2: earlier findings are history, so the gateway is reported and run again")
    stage.run("revision", "advance", run, "r2", "--key", OPERATOR, "--reason", "a new build is deployed")
    _settle(stage, run, _report(stage, run, "gateway-routing-context"), "401/401 -> not_reproduced", finding=False)
    stage.chapter("r2: the chain is blocked, and says by what")
    blocked = json.loads(stage.run("why-not", run, "invoice-chain", "--format", "json"))
    missing = [gap["capability"] for gap in blocked["gaps"]]
    _expect("missing capabilities", missing, ["cross-tenant-invoice-read", "internal-route-access"])
    stage.tell(f"support missing: {', '.join(missing)}")


def _rebuild(stage: Stage, run: str) -> None:
    stage.chapter("The log is the truth: the graph is deleted and rebuilt from it, to the same digest")
    before = json.loads(stage.run("project", run, "--format", "json"))
    for path in stage.settings.graphs_dir.glob(f"{run}.graph*"):
        path.unlink()
    after = json.loads(stage.run("project", run, "--format", "json"))
    _expect("state digest", after["state_digest"], before["state_digest"])
    stage.tell(f"state digest {after['state_digest']}")


_ID = r"\b{}-[0-9a-f]{{20}}\b"
_NEXT = (
    "forktrail run show {run}",
    "forktrail tail {run}",
    "forktrail query {run} 'MATCH (f:Finding)-[:ENABLES]->(c:Capability)<-[:REQUIRES]-(t:TestCase) "
    "RETURN f.id, c.id, t.id'",
    "forktrail why-not {run} export-scope",
    "forktrail broker stop",
)


def _id(kind: str, text: str) -> str:
    found = re.findall(_ID.format(kind), text)
    if not found:
        raise StoryBroken(f"no {kind} was made")
    return str(found[0])


def _expect(what: str, seen: object, expected: object) -> None:
    if seen != expected:
        raise StoryBroken(f"{what}: {seen!r}, and the story says {expected!r}")


def _quoted(word: str) -> str:
    shown = Path(word).name if word.startswith("/") else word
    return f"'{shown}'" if re.search(r"[\s()']", shown) else shown


def _wait_for(path: Path, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + LAB_WAIT_SECONDS
    while not path.exists():
        if process.poll() is not None or time.monotonic() > deadline:
            last = log.read_text().strip().splitlines()[-1:] or ["it said nothing"]
            raise StoryBroken(f"the lab doesn't come up: {last[0]}")
        time.sleep(0.05)
