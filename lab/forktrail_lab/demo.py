"""The evidence story, played as separate operating-system processes on a real log.

Every step is a `forktrail` command in a process of its own, as a person or service would run it; what the story expects
of each is checked, and the demo ends with exit 1 where it doesn't come true.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
import time
from pathlib import Path
from typing import Any

from forktrail_lab.console.output import counted
from forktrail_lab.registry.file import shipped_registry_path
from forktrail_lab.stage import Stage, StoryBroken, pasteable
from forktrail_producers.keys import KeyStore
from forktrail_schemas.settings import Settings

ADMIN, OPERATOR, REVIEWER, RUNNER = "admin", "olga", "ravi", "runner"
ROLES = {OPERATOR: "operator", REVIEWER: "reviewer", RUNNER: "runner"}
GOAL = "find out how far a forged routing marker reaches"
# In double quotes, which a shell line shows as they are.
COUNT_NODES = (
    'MATCH (n:Finding) WHERE n.revision = "r1" RETURN "Finding" AS label, count(*) AS nodes '
    'UNION ALL MATCH (n:Capability) RETURN "Capability" AS label, count(*) AS nodes '
    'UNION ALL MATCH (n:TestCase) RETURN "TestCase" AS label, count(*) AS nodes '
    'UNION ALL MATCH (n:Asset) RETURN "Asset" AS label, count(*) AS nodes'
)
SUPPORTS = "MATCH (f:Finding)-[:ENABLES]->(c:Capability)<-[:REQUIRES]-(t:TestCase) RETURN f.id, c.id, t.id"
_ID = r"\b{}-[0-9a-f]{{20}}\b"


def play(settings: Settings) -> None:
    """Play the whole story, and print where to go on from.

    Raises:
        StoryBroken: a step came out otherwise than the story says.
    """
    began = time.monotonic()
    stage = Stage(settings)
    print("Each line with a `$` may be pasted into a shell in this folder; each command is a process of its own.")
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
    for words in _next_steps(settings, run):
        print(f"     {pasteable(words)}")


def _open_run(stage: Stage) -> str:
    known = KeyStore(stage.settings.keys_dir).names()
    for name in (ADMIN, *ROLES):
        if name not in known:
            stage.run("key", "new", name)
    opened = stage.run("run", "open", "--registry", str(shipped_registry_path()), "--goal", GOAL, "--key", ADMIN)
    run = _found(r"\brun-[0-9a-f]+\b", opened, "run was opened")
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
    result = _parsed(stage.run("investigate", run, "--format", "json"))
    _expect("eligible tests", (result["status"], result["considered"]), ("no_candidates", 0))
    stage.tell("0 eligible")
    nodes = sum(int(count) for count in re.findall(r"^\w+ +(\d+)$", stage.run("query", run, COUNT_NODES), re.M))
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
        raise _otherwise("what the runner saw", observed.strip(), shown)
    reviewed = stage.run("review", run, case, "accept", "--key", REVIEWER)
    if not finding:
        _expect("findings made", re.findall(_ID.format("finding"), reviewed), [])
        return ""
    return _id("finding", reviewed)


def _investigate(stage: Stage, run: str, considered: int, test: str, findings: list[str]) -> str:
    """A fresh investigator's proposal, checked; returns the case."""
    result = _parsed(stage.run("investigate", run, "--format", "json"))
    _expect("status", result["status"], "proposed")
    _expect("candidates considered", result["considered"], considered)
    _expect("test chosen", result["selection"]["test_id"], test)
    _expect("findings it rests on", sorted(result["selection"]["finding_ids"]), sorted(findings))
    stage.tell(f"{counted(considered, 'candidate')}, {test} chosen, on {counted(len(findings), 'finding')}")
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
    lost = _missing(stage.run("withdraw", run, finding, "--dry-run"))
    _expect("what would be missing, test by test", lost, ["internal-route-access"] * 4)
    stage.tell(f"{counted(len(lost), 'test')} would lose support")


def _second_revision(stage: Stage, run: str) -> None:
    stage.chapter("r2: earlier findings are history, so the gateway is reported and run again")
    stage.run("revision", "advance", run, "r2", "--key", OPERATOR, "--reason", "a new build is deployed")
    _settle(stage, run, _report(stage, run, "gateway-routing-context"), "401/401 -> not_reproduced", finding=False)
    stage.chapter("r2: the chain is blocked, and says by what")
    missing = _missing(stage.run("why-not", run, "invoice-chain"))
    _expect("missing capabilities", missing, ["cross-tenant-invoice-read", "internal-route-access"])
    stage.tell(f"support missing: {', '.join(missing)}")


def _rebuild(stage: Stage, run: str) -> None:
    stage.chapter("The log is the truth: the graph is deleted and rebuilt from it, to the same digest")
    before = _state_digest(stage, run)
    files = _graph_files(stage.settings, run)
    if not files:
        raise StoryBroken(f"there is no graph of {run} to delete")
    stage.delete(files)
    _expect("state digest", _state_digest(stage, run), before)
    stage.tell("the same state digest from the graph that grew step by step, and from the log alone")


def _state_digest(stage: Stage, run: str) -> str:
    said = stage.run("project", run, hidden=r"^(run|end|log_root|fold_version|rebuilt) ")
    return _found(r"(?m)(?<=^state_digest) +[0-9a-f]{64}$", said, "state digest was told").strip()


def _graph_files(settings: Settings, run: str) -> list[Path]:
    """The files of a run's graph, whatever the engine; neither its lock nor graphs that were set aside."""
    files = sorted(settings.graphs_dir.glob(f"{run}.*"))
    return [path for path in files if path.suffix != ".lock" and not path.name.startswith(f"{run}.aside-")]


def _next_steps(settings: Settings, run: str) -> list[list[str]]:
    """Commands to go on with, after the one that makes `forktrail` known to the shell if it isn't."""
    activate = Path(sys.executable).with_name("activate")
    unknown = shutil.which("forktrail") is None and activate.exists()
    asking = [["run", "show", run], ["tail", run], ["query", run, SUPPORTS], ["why-not", run, "export-scope"]]
    stopping = [] if settings.external_kafka else [["broker", "stop"]]
    steps = [["forktrail", *words] for words in (*asking, *stopping)]
    return [[".", str(activate)], *steps] if unknown else steps


def _missing(said: str) -> list[str]:
    """The capabilities that a command named as missing, in its order."""
    return re.findall(r"(?m)^ .*\bsupport missing: (\S+)", said)


def _id(kind: str, text: str) -> str:
    return _found(_ID.format(kind), text, f"{kind} was made")


def _found(pattern: str, text: str, what: str) -> str:
    found = re.search(pattern, text)
    if not found:
        raise StoryBroken(f"no {what}")
    return found[0]


def _parsed(said: str) -> dict[str, Any]:
    """The JSON object that a command printed on a line."""
    try:
        result: dict[str, Any] = json.loads(_found(r"(?m)^\{.*\}$", said, "JSON object was told"))
    except ValueError as error:
        raise StoryBroken(f"the JSON that was told doesn't parse: {error}") from None
    return result


def _expect(what: str, seen: object, expected: object) -> None:
    if seen != expected:
        raise _otherwise(what, seen, expected)


def _otherwise(what: str, seen: object, expected: object) -> StoryBroken:
    hint = "the commands before this line led to it; each call plays a new run"
    return StoryBroken(f"{what}: {seen!r}, and the story says {expected!r}", hint=hint)
