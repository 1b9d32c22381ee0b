"""`forktrail policy` and `patches`, and a run that waits for what another process decides, on a real broker."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from pydantic import BaseModel

from forktrail_behaviors.behavior import behavior
from forktrail_behaviors.context import Context
from forktrail_behaviors.pack import Pack
from forktrail_producers.producer import Producer, meta
from forktrail_schemas.events import GoalSet, ObjectCreated
from forktrail_schemas.settings import Settings
from forktrail_schemas.wire import build
from support.command_line import CommandLine


class Memo(BaseModel):
    """What is to be decided on."""

    text: str


class Done(BaseModel):
    """What came of it."""

    text: str


@behavior(on=GoalSet, emits=["Memo", "Done"])
async def write_memo(ctx: Context, event: GoalSet) -> None:
    outcome = await ctx.propose.create("Memo", text=event.text, reason="it was asked for")
    ctx.create("Done", text=f"{outcome.approved} {outcome.by} {outcome.reason}")
    ctx.create("Memo", text="round the policy")


PACK = Pack("memos", [Memo, Done], behaviors=[write_memo])
NAME = f"{__name__}:PACK"


@pytest.fixture(autouse=True)
def importable(monkeypatch: pytest.MonkeyPatch) -> None:
    """This module under its own name, as a pack's module."""
    monkeypatch.setitem(sys.modules, __name__, sys.modules[__name__])


@pytest.fixture
def waiting(forktrail: CommandLine, settings: Settings) -> str:
    """A run that holds Memo, with a proposed one."""
    run = forktrail.ok("run", "open", "--goal", "write").out.strip()
    forktrail.ok("key", "new", "ravi")
    forktrail.ok("key", "register", run, "ravi", "--role", "reviewer")
    forktrail.ok("policy", "set", run, "Memo", "--changes", "all", "--reason", "memos go to clients")
    forktrail.ok("behaviors", "run", run, "--pack", NAME, "--until-idle")
    with Producer(settings.bootstrap_servers) as producer:
        producer.emit(build(GoalSet, {"meta": meta(run, "human", "rita"), "text": "buy"}))
        fields = {"object_type": "Memo", "object_id": "memo-00000001", "data": '{"text":"a raw producer"}'}
        producer.emit(build(ObjectCreated, {"meta": meta(run, "service", "crm"), **fields}))
    said = forktrail.ok("behaviors", "run", run, "--pack", NAME, "--until-idle")
    assert "1 execution open" in said.err
    return run


def memos(forktrail: CommandLine, run: str) -> list[str]:
    return [
        row["m.text"] for row in forktrail.ok("query", run, "MATCH (m:Memo) RETURN m.text", "--format", "json").json
    ]


def test_a_run_waits_for_a_decision_signed_in_another_process_and_goes_on(
    forktrail: CommandLine, settings: Settings, waiting: str
) -> None:
    assert memos(forktrail, waiting) == []
    (listed,) = forktrail.ok("patches", "list", waiting, "--format", "json").json
    assert (listed["status"], listed["change"], listed["reason"]) == ("proposed", "create", "it was asked for")
    (approval,) = forktrail.ok("approvals", "list", waiting, "--format", "json").json
    assert (approval["id"], approval["kind"], approval["title"]) == (listed["id"], "patch", "create of Memo")
    shown = forktrail.ok("patches", "show", waiting, listed["id"][:12], "--format", "json").json
    assert (shown["text (new)"], shown["proposed_by"]) == ("buy", "behavior write_memo")

    words = [sys.executable, "-m", "forktrail_lab", "patches", "accept", waiting, listed["id"], "--key", "ravi"]
    environ = {**os.environ, "FORKTRAIL_HOME": str(settings.home)}
    environ |= {"FORKTRAIL_BOOTSTRAP_SERVERS": settings.bootstrap_servers}
    said = subprocess.run([*words, "--reason", "seen"], env=environ, capture_output=True, text=True, timeout=120)
    assert said.returncode == 0, said.stderr
    assert memos(forktrail, waiting) == ["buy"]
    forktrail.ok("behaviors", "run", waiting, "--pack", NAME, "--until-idle")
    done = forktrail.ok("query", waiting, "MATCH (d:Done) RETURN d.text AS text", "--format", "json").json
    assert done == [{"text": "True ravi seen"}]
    assert memos(forktrail, waiting) == ["buy"]
    void = "MATCH (e:Event) WHERE e.reason = 'approval_required' RETURN e.detail AS detail"
    rows = forktrail.ok("query", waiting, void, "--format", "json").json
    assert rows == [{"detail": "create of Memo"}] * 2  # the raw producer's, and the behavior's plain creation
    replayed = forktrail.ok("replay", waiting, "--pack", NAME, "--strict", "--format", "json").json
    assert replayed["divergences"] == 0

    again = forktrail("patches", "reject", waiting, listed["id"], "--key", "ravi")
    assert (again.code, "already_decided" in again.err) == (1, True)
    assert [row["status"] for row in forktrail.ok("patches", "list", waiting, "--all", "--format", "json").json] == [
        "applied"
    ]


def test_a_rejection_goes_on_too_and_only_reviewers_decide(forktrail: CommandLine, waiting: str) -> None:
    (listed,) = forktrail.ok("patches", "list", waiting, "--format", "json").json
    refused = forktrail("patches", "accept", waiting, listed["id"], "--key", "admin")
    assert (refused.code, "role_missing" in refused.err) == (2, True)
    forktrail.ok("patches", "reject", waiting, listed["id"], "--key", "ravi", "--reason", "not now")
    forktrail.ok("behaviors", "run", waiting, "--pack", NAME, "--until-idle")
    done = forktrail.ok("query", waiting, "MATCH (d:Done) RETURN d.text AS text", "--format", "json").json
    assert done == [{"text": "False ravi not now"}]
    assert memos(forktrail, waiting) == []


def test_policies_are_listed_and_lifted(forktrail: CommandLine, run: str) -> None:
    forktrail.ok("policy", "set", run, "Memo", "--changes", "create,retire", "--reason", "why")
    (held,) = forktrail.ok("policy", "list", run, "--format", "json").json
    assert (held["type"], held["changes"], held["reason"]) == ("Memo", "create, retire", "why")
    said = forktrail.ok("policy", "set", run, "Memo", "--changes", "none")
    assert "needs nobody's yes" in said.out
    assert forktrail.ok("policy", "list", run, "--format", "json").json[0]["changes"] == "none"
    unknown = forktrail("policy", "set", run, "Memo", "--changes", "creation")
    assert (unknown.code, "'creation' is no change" in unknown.err) == (2, True)
    reserved = forktrail("policy", "set", run, "Finding", "--changes", "all")
    assert (reserved.code, "type_reserved" in reserved.err) == (1, True)


def test_an_unknown_proposal_is_told(forktrail: CommandLine, run: str) -> None:
    said = forktrail("patches", "show", run, "patch-ffff")
    assert (said.code, "patches list" in said.err) == (3, True)
    assert json.loads(forktrail.ok("patches", "list", run, "--format", "json").out) == []
