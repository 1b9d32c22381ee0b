"""`forktrail behaviors`, `executions`, `approvals`, `replay` and `trace` on a real broker."""

from __future__ import annotations

import base64
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from forktrail_behaviors.pack import Pack
from forktrail_producers.producer import Producer, meta
from forktrail_schemas.events import ObjectCreated
from forktrail_schemas.settings import Settings
from forktrail_schemas.wire import build
from support.command_line import CommandLine
from support.worked_pack import answer, worked_pack

PACK = worked_pack()
WITHOUT_TIMERS = Pack("answering", PACK.objects, PACK.relations, behaviors=[answer], tools=PACK.tools)
CHANGED = Pack("changed", PACK.objects, PACK.relations, behaviors=[replace(answer, code_sha256="0" * 64, version="2")])
NAME = f"{__name__}:WITHOUT_TIMERS"


@pytest.fixture(autouse=True)
def importable(monkeypatch: pytest.MonkeyPatch) -> None:
    """This module under its own name, as a pack's module."""
    monkeypatch.setitem(sys.modules, __name__, sys.modules[__name__])


@pytest.fixture
def opened(forktrail: CommandLine) -> str:
    """A run with a company that has a sector and an open question, and a key for olga."""
    run = forktrail.ok("run", "open", "--goal", "know our companies").out.strip()
    forktrail.ok("key", "new", "olga")
    forktrail.ok("key", "register", run, "olga", "--role", "operator")
    forktrail.ok("behaviors", "run", run, "--pack", NAME, "--until-idle")
    return run


def tell(settings: Settings, run: str, object_type: str, id: str, data: dict[str, object]) -> None:
    fields = {"object_type": object_type, "object_id": id, "data": json.dumps(data)}
    with Producer(settings.bootstrap_servers) as producer:
        producer.emit(build(ObjectCreated, {"meta": meta(run, "service", "crm"), **fields}))


def ask_something(settings: Settings, run: str) -> None:
    tell(settings, run, "Company", "company-00000001", {"name": "Acme", "sector": "anvils"})
    tell(settings, run, "Question", "question-00000001", {"text": "why?", "about": "company-00000001", "open": True})


def test_a_pack_reacts_waits_for_a_person_and_goes_on(
    forktrail: CommandLine, settings: Settings, opened: str, tmp_path: Path
) -> None:
    ask_something(settings, opened)
    said = forktrail.ok("behaviors", "run", opened, "--pack", NAME, "--until-idle")
    assert "1 execution open" in said.err
    (waiting,) = forktrail.ok("approvals", "list", opened, "--format", "json").json
    assert (waiting["kind"], waiting["asked_by"], waiting["title"]) == ("request", "answer", "answer why?")
    (execution,) = forktrail.ok("executions", "list", opened, "--status", "running", "--format", "json").json
    assert (execution["behavior"], execution["calls"], execution["waiting"]) == ("answer", 1, 1)

    said = forktrail.ok("approve", opened, waiting["id"], "--key", "olga", "--format", "json")
    assert said.json["title"] == "answer why?"
    again = forktrail("approve", opened, waiting["id"], "--key", "olga")
    assert (again.code, "already_decided" in again.err) == (1, True)
    forktrail.ok("behaviors", "run", opened, "--pack", NAME, "--until-idle")
    answers = "MATCH (a:Answer)-[:TO]->(q:Question) RETURN a.text, q.open"
    rows = forktrail.ok("query", opened, answers, "--format", "json")
    assert rows.json == [{"a.text": "Acme why? olga", "q.open": False}]

    shown = forktrail.ok("executions", "show", opened, execution["id"][:8], "--format", "json").json
    assert shown["status"] == "completed"
    assert [(call["kind"], call["outcome"]) for call in shown["calls"]] == [("approval", "approve")]
    listed = forktrail.ok("behaviors", "list", opened, "--format", "json").json
    assert [(row["name"], row["completed"]) for row in listed] == [("answer", 1)]
    lines = forktrail.ok("trace", opened).out.splitlines()
    depths = {line.split()[1]: (len(line) - len(line.lstrip())) // 2 for line in lines if "(void" not in line}
    chain = ("BehaviorStarted", "ApprovalRequested", "ApprovalDecided", "BehaviorCompleted")
    assert [depths[name] for name in chain] == sorted({depths[name] for name in chain})

    _replays(forktrail, opened, tmp_path)


def _replays(forktrail: CommandLine, run: str, folder: Path) -> None:
    """Strict replay, its certificate, and what makes each of them fail."""
    certificate = folder / "replay.json"
    words = ("replay", run, "--pack", NAME, "--strict", "--certificate", str(certificate), "--key", "admin")
    said = forktrail.ok(*words, "--format", "json").json
    assert (said["executions"], said["divergences"], said["changed"]) == (1, 0, {})
    assert said["events"] == 5  # its start, the request, the answer, the patch, its end
    assert forktrail.ok("replay", run, "--check", str(certificate), "--format", "json").json["events"] == 5

    envelope = json.loads(certificate.read_text())
    told = json.loads(base64.b64decode(envelope["payload"]))
    altered = base64.b64encode(json.dumps({**told, "events": 6}).encode()).decode()
    certificate.write_text(json.dumps({**envelope, "payload": altered}))
    said_of_altered = forktrail("replay", run, "--check", str(certificate))
    assert (said_of_altered.code, "bad_signature" in said_of_altered.err) == (4, True)

    changed = forktrail("replay", run, "--pack", f"{__name__}:CHANGED", "--strict")
    assert (changed.code, "changed: answer" in changed.err) == (6, True)
    nothing = forktrail("replay", run, "--strict")
    assert (nothing.code, "--pack" in nothing.err) == (2, True)


def test_an_execution_is_cancelled_by_a_person(forktrail: CommandLine, settings: Settings, opened: str) -> None:
    ask_something(settings, opened)
    forktrail.ok("behaviors", "run", opened, "--pack", NAME, "--until-idle")
    (execution,) = forktrail.ok("executions", "list", opened, "--format", "json").json
    forktrail.ok("executions", "cancel", opened, execution["id"], "--reason", "asked twice", "--key", "olga")
    again = forktrail("executions", "cancel", opened, execution["id"], "--reason", "asked twice", "--key", "olga")
    assert (again.code, "execution_ended" in again.err) == (1, True)
    assert forktrail.ok("approvals", "list", opened, "--format", "json").json == []
    settled = forktrail("executions", "resolve", opened, "call-0", "ok", "--reason", "so", "--key", "olga")
    assert settled.code in (1, 3)


def test_changed_code_under_a_version_that_stays_is_refused(forktrail: CommandLine, opened: str) -> None:
    said = forktrail("behaviors", "run", opened, "--pack", f"{__name__}:SAME_VERSION", "--until-idle")
    assert (said.code, "version_unchanged" in said.err) == (2, True)
    missing = forktrail("behaviors", "run", opened, "--pack", "no_such_module_at_all", "--until-idle")
    assert missing.code == 3


SAME_VERSION = Pack("same", PACK.objects, PACK.relations, behaviors=[replace(answer, code_sha256="0" * 64)])


def test_a_worker_ends_cleanly_on_sigterm_and_an_older_one_when_another_claims(
    forktrail: CommandLine, settings: Settings, opened: str
) -> None:
    words = [sys.executable, "-m", "forktrail_lab", "behaviors", "run", opened, "--pack", "support.worked_pack"]
    home = {"FORKTRAIL_HOME": str(settings.home), "FORKTRAIL_BOOTSTRAP_SERVERS": settings.bootstrap_servers}
    env = os.environ | home
    tests = Path(__file__).parents[2]
    older = subprocess.Popen(words, cwd=tests, env=env, stderr=subprocess.PIPE, text=True)
    _wait_for(lambda: "reacting" in _line(older))
    newer = subprocess.Popen(words, cwd=tests, env=env, stderr=subprocess.PIPE, text=True)
    _wait_for(lambda: "reacting" in _line(newer))
    assert older.wait(timeout=30) == 1
    assert "superseded" in older.communicate()[1]
    newer.send_signal(signal.SIGTERM)
    assert newer.wait(timeout=30) == 0
    assert "stopped at offset" in newer.communicate()[1]


def _line(process: subprocess.Popen[str]) -> str:
    assert process.stderr is not None
    return process.stderr.readline()


def _wait_for(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline
