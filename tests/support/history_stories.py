"""The stories whose logs are recorded in `tests/histories`. A log is told once; what stands here can't change it."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from forktrail_projectors.receipts import Statement, sign_receipt
from forktrail_projectors.record import UNREADABLE_HEADERS, LogRecord
from forktrail_schemas import events
from forktrail_schemas.catalog import schema_of
from forktrail_schemas.events import RunAnnounced
from forktrail_schemas.events.base import Event
from forktrail_schemas.signatures import SigningKey
from forktrail_schemas.wire import HEADER_BYTES, build, encode
from support.agent_stories import tell_changes, tell_objects, tell_work
from support.flaws import unchecked
from support.foreign import ForeignSchema, broken_goal, fields_of, later_goal, other_type
from support.refused_authority import with_header, with_signature
from support.refused_evidence import NO_CASE, NO_FINDING, altered, approval, proposed, review, start, written
from support.refused_log import by_admin, registration
from support.samples import BLOB, CASE_ID, meta
from support.story import ADMIN, EVIDENCE_SHA256, HOLDERS, OPERATOR, REVIEWER, RUNNER, STRANGER, Story


@dataclass(frozen=True)
class Telling:
    """A story to record: a line on what it is for, and how it goes."""

    about: str
    tell: Callable[[Story], None]


# The demo's tests: id, asset, what it requires, what it enables, impact.
DEMO_TESTS: tuple[tuple[str, str, tuple[str, ...], tuple[str, ...], int], ...] = (
    ("gateway-routing-context", "gateway", (), ("internal-route-access",), 70),
    ("invoice-tenant-boundary", "invoice-api", ("internal-route-access",), ("cross-tenant-invoice-read",), 90),
    (
        "invoice-chain",
        "invoice-api",
        ("internal-route-access", "cross-tenant-invoice-read"),
        ("invoice-takeover-path",),
        100,
    ),
    ("export-scope", "export", ("internal-route-access",), (), 60),
    ("audit-trail-read", "audit", ("internal-route-access",), (), 50),
)


def demo(story: Story) -> None:
    """What `forktrail demo` plays: in r1 a chain of three findings, a negative, an inconclusive; in r2 none."""
    story.open("find out how far a forged routing marker reaches")
    for test_id, asset, requires, enables, impact in DEMO_TESTS:
        assert story.register(test_id, asset=asset, requires=requires, enables=enables, impact=impact).valid
    gateway = story.settle(story.report("gateway-routing-context"))
    boundary = story.settle(story.propose("invoice-tenant-boundary", [gateway])[0])
    story.settle(story.propose("invoice-chain", [gateway, boundary])[0])
    story.settle(story.propose("export-scope", [gateway])[0], "not_reproduced")
    story.settle(story.propose("audit-trail-read", [gateway])[0], "inconclusive")
    assert story.advance("r2").valid
    story.settle(story.report("gateway-routing-context"), "not_reproduced")


def copies(story: Story) -> None:
    """The demo with every record delivered again, sooner or later, and rubbish between."""
    told = Story(story.run)
    demo(told)
    chance = random.Random(2024)
    late: list[LogRecord] = []
    for record in told.records:
        assert _put(story, record).valid
        late.append(record)
        while late and chance.random() < 0.45:
            _put(story, late.pop(chance.randrange(len(late))))
        if chance.random() < 0.3:
            _put(story, _garbage(chance, chance.choice(told.records)))
    for record in chance.sample(late, len(late)):
        _put(story, record)


def _put(story: Story, record: LogRecord) -> Any:
    return story.append(replace(record, offset=len(story.records)))


def _garbage(chance: random.Random, record: LogRecord) -> LogRecord:
    value = record.value or b""
    broken = chance.choice(
        [None, b"", chance.randbytes(40), value[: chance.randrange(len(value))], value + b"\x00", value[:10] + b"\xff"]
    )
    return replace(record, value=broken, key=chance.choice([None, b"\xff\xfe", record.key]))


def every_type(story: Story) -> None:
    """Each event type once or more, each valid, with every optional field filled at one place and empty at another."""
    full = meta(run=story.run)
    rich = {name: full[name] for name in ("execution", "frame")}

    def said(cls: type[Event], key: SigningKey | None, actor: str, kind: str, **fields: Any) -> str:
        event = story.event(cls, actor, kind, **fields)
        causes = (event.meta.event_id, str(story.row("Event", 0)["id"])) if story.records else ()
        filled = build(type(event.meta), {**event.meta.model_dump(), **rich, "causes": causes, "goal": full["goal"]})
        event = event.model_copy(update={"meta": filled})
        verdict = story.tell(event, key)
        assert verdict.valid, verdict
        return event.meta.event_id

    opening = {"goal": "see what breaks", "revision": "r1", "admin_public_key": ADMIN.public_key, "registry": BLOB}
    said(events.RunOpened, ADMIN, "ada", "human", **opening)
    for key, role in ((OPERATOR, "operator"), (REVIEWER, "reviewer"), (RUNNER, "runner")):
        assert story.add_key(key, role).valid
    assert story.add_key(STRANGER, "runner", "sealer", "worker", kind="agent").valid
    assert story.revoke(STRANGER).valid
    said(events.GoalSet, None, "rita", "human", text="süß, 世界 and 🙂")
    said(events.SettingChanged, ADMIN, "ada", "human", name="same-person-may-review", value="false")
    assert story.set("same-person-may-review", "true").valid
    said(events.BudgetSet, ADMIN, "ada", "human", name="http-requests", limit=100)
    assert story.budget("http-requests", None).valid
    assert story.budget("cases", 50).valid
    assert story.budget("finding-depth", 3).valid
    assert story.register("root", enables=["way", "second-way"], impact=100, requests_max=2).valid
    assert story.register("leaf", asset="api", requires=["way"], impact=0, requests_max=2).valid
    said(events.TestRegistered, ADMIN, "ada", "human", **registration(test_id="other", requires=["way", "second-way"]))
    finding = story.settle(story.report("root"))
    story.report("root")  # kept, with `case_exists`
    said(events.ReportFiled, None, "scanner-7", "service", test_id="leaf", summary="and here")
    case_id, verdict = story.propose("other", [finding], as_of=len(story.records))
    assert verdict.valid
    assert story.decide(case_id, "deny").valid
    leaf = next(str(row["id"]) for row in story.rows().values() if row.get("test") == "leaf" and "opened_by" in row)
    assert story.decide(leaf).valid
    assert story.start(leaf).valid
    cut_short = story.observation(leaf, "inconclusive").model_copy(update={"interrupted": True, "requests": 0})
    assert story.tell(cut_short, RUNNER).valid
    assert story.retry(leaf).valid
    again, verdict = story.propose("leaf", [finding])
    assert verdict.valid
    assert story.decide(again).valid
    assert story.start(again).valid
    assert story.tell(story.observation(again, "not_reproduced"), RUNNER).valid
    assert story.review(again, "reject")[1].valid
    assert story.withdraw(finding).valid
    assert story.advance("r2").valid
    story.settle(story.report("root"), "reproduced")
    assert story.close().valid


class _Refuser:
    """Tells of refusals: each record must be refused for the reason it is told for."""

    def __init__(self, story: Story) -> None:
        self.story = story

    def __call__(self, reason: str, record: LogRecord) -> None:
        verdict = _put(self.story, record)
        assert verdict.kind != "valid", (reason, verdict)
        assert verdict.reason == reason, (reason, verdict)

    def said(self, code: str, /, cls: type[Event], key: SigningKey | None = None, **fields: Any) -> None:
        actor = HOLDERS[key.key_id] if key else "rita"
        self(code, self.story.record(self.story.event(cls, actor, **fields), key))


def refusals(story: Story) -> None:
    """Every reason that a log can lead to, from before the opening to after the end."""
    refused = _Refuser(story)
    refused.said("run_not_open", events.GoalSet, text="early")
    opening: dict[str, Any] = {"goal": "", "revision": "r1", "admin_public_key": ADMIN.public_key}
    refused.said("unsigned", events.RunOpened, **opening)
    refused.said("unknown_key", events.RunOpened, STRANGER, **opening)
    story.open()
    _refuse_bytes(story, refused)
    _refuse_place(story, refused, opening)
    _refuse_log(story, refused)
    _refuse_attempts(story, refused)
    _refuse_observations(story, refused)
    _refuse_reviews(story, refused)
    _refuse_later(story, refused)
    assert story.close().valid
    refused.said("run_closed", events.GoalSet, text="late")


def _refuse_bytes(story: Story, refused: _Refuser) -> None:
    good = story.record(story.event(events.GoalSet, text="good"))
    value = good.value or b""
    refused("no_value", replace(good, value=None))
    refused("not_avro", replace(good, value=b"not Avro"))
    refused("unknown_schema", replace(good, value=b"\xc3\x01" + bytes(8) + value[HEADER_BYTES:]))
    refused("truncated", replace(good, value=value[:-2]))
    refused("trailing_bytes", replace(good, value=value + b"\x00"))
    refused("invalid_data", replace(good, value=unchecked(value, _no_run)))
    fields = {"run": "r", "topic": "t", "goal": "", "status": "open", "opened_at": 1}
    refused("no_rule", replace(good, value=encode(build(RunAnnounced, fields)), headers=()))


def _no_run(fields: dict[str, Any]) -> None:
    fields["meta"]["run"] = "No Run"


def _refuse_place(story: Story, refused: _Refuser, opening: dict[str, Any]) -> None:
    good = story.record(story.event(events.GoalSet, text="good"))
    refused("header_mismatch", with_header(good, {"ce_subject": b"elsewhere"}))
    refused("headers_unreadable", replace(good, headers=UNREADABLE_HEADERS))
    first = story.row("Event", 4)  # the first of the opening's keys
    refused.said("id_reused", events.GoalSet, event_id=str(first["id"]), text="under a taken id")
    refused.said("run_already_open", events.RunOpened, ADMIN, **opening)
    foreign = Story("elsewhere").event(events.GoalSet, event_id="0" * 8 + "-0000-7000-8000-" + "9" * 12, text="")
    refused("wrong_run", story.record(foreign))
    refused("bad_signature", with_signature(good, OPERATOR.sign(b"other bytes").to_json().encode()))
    in_anothers_name = story.event(events.GoalSet, HOLDERS[REVIEWER.key_id], text="")
    refused("actor_mismatch", story.record(in_anothers_name, OPERATOR))
    refused.said("unknown_key", events.KeyRevoked, STRANGER, key_id=OPERATOR.key_id, reason="")
    refused.said("role_missing", events.BudgetSet, OPERATOR, name="cases", limit=1)


def _refuse_log(story: Story, refused: _Refuser) -> None:
    holder = {"holder": "x", "holder_kind": "human", "roles": ["admin"]}
    key = {"key_id": OPERATOR.key_id, "public_key": STRANGER.public_key, **holder}
    refused("key_id_mismatch", by_admin(story, events.KeyRegistered, **key))
    key = {"key_id": OPERATOR.key_id, "public_key": OPERATOR.public_key, **holder}
    refused("key_exists", by_admin(story, events.KeyRegistered, **key))
    refused("own_key", by_admin(story, events.KeyRevoked, key_id=ADMIN.key_id, reason=""))
    refused("unknown_setting", by_admin(story, events.SettingChanged, name="colour", value="blue"))
    refused("bad_value", by_admin(story, events.SettingChanged, name="same-person-may-review", value="maybe"))
    refused("unknown_budget", by_admin(story, events.BudgetSet, name="coffee", limit=3))
    assert story.register("root", enables=["way"]).valid
    assert story.register("leaf", requires=["way"]).valid
    assert story.register("side").valid
    refused("test_exists", by_admin(story, events.TestRegistered, **registration(test_id="root", impact=99)))
    circular = registration(test_id="circle", requires=["a"], enables=["a"])
    refused("circular_test", by_admin(story, events.TestRegistered, **circular))


def _refuse_attempts(story: Story, refused: _Refuser) -> None:
    refused.said("unknown_test", events.ReportFiled, test_id="nowhere", summary="")
    refused("support_missing", proposed(story, "leaf"))
    refused("revision_not_active", proposed(story, "side", revision="r0"))
    as_of = len(story.records)
    root = story.report("root")
    refused("overtaken", proposed(story, "side", as_of=as_of))
    refused("case_exists", proposed(story, "root"))
    assert story.budget("cases", 1).valid
    refused("budget_exhausted", proposed(story, "side"))
    assert story.budget("cases", None).valid
    refused("unknown_case", approval(story, NO_CASE))
    refused("unknown_request", approval(story, root, of="request"))
    assert story.add_key(STRANGER, "operator", kind="agent").valid
    fields = {"subject": {"kind": "case", "id": root}, "decision": "approve", "reason": ""}
    refused("not_a_person", written(story, events.ApprovalDecided, STRANGER, "agent", **fields))
    assert story.revoke(STRANGER).valid
    refused("already_revoked", by_admin(story, events.KeyRevoked, key_id=STRANGER.key_id, reason=""))
    refused("key_revoked", written(story, events.ApprovalDecided, STRANGER, "agent", **fields))
    refused("not_approved", start(story, root))
    refused("not_started", altered(story, root))
    assert story.decide(root).valid
    refused("already_decided", approval(story, root, decision="deny"))
    refused("approval_mismatch", start(story, root, "approval-00000000000000000000"))
    assert story.start(root).valid
    refused("already_started", start(story, root))


def _refuse_observations(story: Story, refused: _Refuser) -> None:
    (root,) = (str(row["id"]) for row in story.rows().values() if row.get("status") == "running")
    other = SigningKey.from_private_bytes(bytes([9]) * 32)
    assert story.add_key(other, "runner", holder="runner-2").valid
    event = story.observation(root, "reproduced")
    theirs = event.model_copy(
        update={
            "meta": event.meta.model_copy(update={"actor": event.meta.actor.model_copy(update={"id": "runner-2"})}),
            "receipt": sign_receipt(Statement(EVIDENCE_SHA256, root, "root", "r1", "reproduced"), other),
        }
    )
    refused("wrong_runner", story.record(theirs, other))
    refused("case_mismatch", altered(story, root, test_id="leaf"))
    refused("receipt_mismatch", altered(story, root, outcome="inconclusive"))
    refused("interrupted_outcome", altered(story, root, interrupted=True))
    refused("bounds_exceeded", altered(story, root, requests=3))
    refused("no_observation", review(story, root))
    assert story.tell(story.observation(root, "reproduced"), RUNNER).valid
    refused("already_observed", altered(story, root))


def _refuse_reviews(story: Story, refused: _Refuser) -> None:
    (root,) = (str(row["id"]) for row in story.rows().values() if row.get("status") == "observed")
    refused("observation_mismatch", review(story, root, observation_id="observation-00000000000000000000"))
    both = SigningKey.from_private_bytes(bytes([8]) * 32)
    assert story.add_key(both, "reviewer", holder="olga").valid
    fields: dict[str, Any] = {"case_id": root, "decision": "accept", "note": ""}
    fields["observation_id"] = story.row("Case", root)["observation"]
    refused("same_person", story.record(story.event(events.ReviewDecided, "olga", **fields), both))
    finding, verdict = story.review(root)
    assert verdict.valid
    refused("already_reviewed", review(story, root))
    refused("support_mismatch", proposed(story, "side", [finding]))
    refused("not_inconclusive", written(story, events.RetryRequested, OPERATOR, case_id=root, reason=""))
    refused("unknown_finding", written(story, events.FindingWithdrawn, OPERATOR, finding_id=NO_FINDING, reason=""))
    assert story.withdraw(finding).valid
    refused("already_withdrawn", written(story, events.FindingWithdrawn, OPERATOR, finding_id=finding, reason=""))


def _refuse_later(story: Story, refused: _Refuser) -> None:
    side = story.report("side")
    story.settle(side, "inconclusive")
    assert story.retry(side).valid
    refused("already_retried", written(story, events.RetryRequested, OPERATOR, case_id=side, reason=""))
    back = {"from_revision": "r1", "to_revision": "r1", "reason": ""}
    refused("revision_exists", written(story, events.RevisionAdvanced, OPERATOR, **back))
    wrong = {"from_revision": "r7", "to_revision": "r8", "reason": ""}
    refused("revision_conflict", written(story, events.RevisionAdvanced, OPERATOR, **wrong))
    refused("unknown_case", written(story, events.RetryRequested, OPERATOR, case_id=CASE_ID, reason=""))


def declared(story: Story) -> None:
    """Records under schemas that the run declares, before and after it does; and what it may not declare."""
    story.open()
    refused = _Refuser(story)
    goal = story.event(events.GoalSet, text="by a later version")
    scanned = other_type("Scanned")
    under_later = replace(story.record(goal), value=later_goal().value(fields_of(goal, links=["a", "b"])))
    refused("unknown_schema", under_later)
    for schema in (later_goal(), scanned, broken_goal()):
        assert _put(story, _declaration(story, schema.text)).valid
    assert _put(story, under_later).valid
    refused("no_rule", replace(under_later, value=scanned.value({"percent": 40}), headers=()))
    refused("schema_incompatible", replace(under_later, value=broken_goal().value(fields_of(goal, text=7))))
    refused("schema_exists", _declaration(story, scanned.text))
    refused("fingerprint_taken", _declaration(story, other_type("Scanned", 1).text))
    refused("fingerprint_mismatch", _declaration(story, other_type("Other").text, scanned.fingerprint))
    refused("bad_schema", _declaration(story, "{", "0" * 16))
    refused("schema_built_in", _declaration(story, schema_of(events.ReportFiled).text))
    assert story.register("root").valid
    said = {"test_id": "root", "summary": "look here", "details": "line one\nline two"}
    assert story.tell(story.event(events.ReportFiled, **said)).valid


def objects(story: Story) -> None:
    """Declared types, their objects and relations, and what is refused of them."""
    tell_objects(story, _Refuser(story))


def work(story: Story) -> None:
    """A worker, executions and what they ask for, and what is refused of them."""
    tell_work(story, _Refuser(story))


def changes(story: Story) -> None:
    """Policies, proposals, frames and a budget that is used up, and what is refused of them."""
    tell_changes(story, _Refuser(story))


def _declaration(story: Story, text: str, fingerprint: str | None = None) -> LogRecord:
    own = fingerprint or ForeignSchema(text).fingerprint
    return by_admin(story, events.SchemaDeclared, fingerprint=own, text=text)


STORIES: dict[str, Telling] = {
    "changes": Telling("policies, proposals, frames and a used up budget, and what is refused of them", changes),
    "copies": Telling("the demo, each record delivered twice, with rubbish between", copies),
    "declared": Telling("records under declared schemas, and a report in version 2", declared),
    "demo": Telling("what `forktrail demo` plays", demo),
    "every-type": Telling("each event type, valid, as schemas of version 1 wrote it", every_type),
    "objects": Telling("declared types, their objects and relations, and what is refused of them", objects),
    "refusals": Telling("every reason that a log can lead to", refusals),
    "work": Telling("a worker, executions and what they ask for, and what is refused of them", work),
}
