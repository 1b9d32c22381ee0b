"""The steps of a tale that are about declared types and about executions."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Protocol

from forktrail_projectors.record import Verdict
from forktrail_projectors.rules.log import BUDGETS
from forktrail_projectors.state import Row
from forktrail_schemas import events
from forktrail_schemas.events.base import Event
from forktrail_schemas.ids import derived_id
from support.draft import Draft, pick
from support.moves import Move
from support.objects import CLAIM, COMPANY, NO_OBJECT, SUPPORTS, creation, id_of
from support.people import Person
from support.work import BEHAVIOR, DUE_AT, NO_CALL, REQUESTS, WORKER, answer, decision, execution

Named = dict[str, Any]
TYPES = (COMPANY, CLAIM, SUPPORTS)
NUMBERS = 6  # of objects of each type
OUTCOMES = ("ok", "unknown", "error", "abstained")


class Teller(Protocol):
    """What the steps know of the tale they are part of."""

    verdicts: list[Verdict]

    def node(self, table: str, id: str) -> Row | None:
        """A row of the graph, if it is there."""
        ...

    def in_role(self, role: str) -> Person | None:
        """Somebody with a registered key of the role, if there is one."""
        ...


class WorkSteps:
    """Writes drafts about declared types and executions, and remembers what became of them."""

    def __init__(self, tale: Teller) -> None:
        self._tale = tale
        self._epoch = 0
        self._versions: list[str] = []
        self._types: list[str] = []
        self._objects: list[tuple[str, str]] = []
        self._joined: list[dict[str, Any]] = []
        self._executions: list[Named] = []
        self._calls: list[tuple[str, type[Event]]] = []
        self._patches: list[str] = []
        self._frames: list[str] = []
        self.steps: dict[str, Callable[[Move], Draft]] = {
            "type": self._type,
            "object": self._object,
            "patch": self._patch,
            "retire": self._retire,
            "relate": self._relate,
            "unrelate": self._unrelate,
            "govern": self._govern,
            "suggest": self._suggest,
            "rule_on": self._rule_on,
            "frame": self._frame,
            "hold": self._hold,
            "merge": self._merge,
            "exhaust": self._exhaust,
            "behavior": self._behavior,
            "claim": self._claim,
            "begin": self._begin,
            "emit": self._emit,
            "ask": self._ask,
            "answer": self._answer,
            "resolve": self._resolve,
            "end": self._end,
        }

    def learn(self, draft: Draft, verdict: Verdict) -> None:
        """Remember what a valid event made."""
        fields = draft.fields
        if draft.cls is events.TypeDeclared:
            self._types.append(fields["name"])
        elif draft.cls is events.ObjectCreated:
            self._objects.append((fields["object_type"], fields["object_id"]))
        elif draft.cls is events.RelationCreated:
            self._joined.append({name: value for name, value in fields.items() if name != "data"})
        elif draft.cls is events.BehaviorRegistered:
            self._versions.append(fields["version"])
        elif draft.cls is events.WorkerClaimed:
            self._epoch = fields["epoch"]
        elif draft.cls is events.BehaviorStarted:
            assert draft.execution is not None
            self._executions.append(draft.execution)
        elif draft.cls is events.PatchProposed:
            self._patches.append(derived_id("patch", verdict.event_id))
        elif draft.cls is events.FrameOpened:
            self._frames.append(derived_id("frame", verdict.event_id))
        elif draft.cls in REQUESTS:
            self._calls.append((derived_id("call", verdict.event_id), draft.cls))

    # Declared types.

    def _type(self, move: Move) -> Draft:
        """The next type; now and then one out of its turn, or one that is none."""
        fields = TYPES[move.c % 3 if move.a % 4 == 3 else len(self._types) % 3]
        if move.b % 8 == 7:
            fields = fields | {"json_schema": '{"type":"object","properties":{"id":{"type":"string"}}}'}
        return Draft(events.TypeDeclared, self._tale.in_role("admin"), dict(fields))

    def _object(self, move: Move) -> Draft:
        name = ("Company", "Claim")[move.a % 2] if move.a % 16 < 15 else "Thing"
        data: dict[str, Any] = {"name": "Acme"} if name == "Company" else {"text": "it grows"}
        if name == "Claim" and move.c % 2:
            data["about"] = id_of("Company", move.c % NUMBERS)
        if move.c % 16 == 15:
            data["weight"] = "much"
        return self._said(events.ObjectCreated, creation(name, move.b % NUMBERS, **data))

    def _patch(self, move: Move) -> Draft:
        name, id = self._an_object(move)
        data: dict[str, Any] = {"founded": move.c} if name == "Company" else {"text": f"{move.c} times"}
        if name == "Claim" and move.c % 2:
            data = {"about": id_of("Company", move.c % NUMBERS) if move.c % 4 == 1 else None}
        version = (None, None, 1, 2)[move.b % 4]
        fields = {"object_type": name, "object_id": id, "data": json.dumps(data), "expected_version": version}
        return self._said(events.ObjectPatched, fields)

    def _retire(self, move: Move) -> Draft:
        name, id = self._an_object(move)
        return self._said(events.ObjectRetired, {"object_type": name, "object_id": id, "reason": ""})

    def _relate(self, move: Move) -> Draft:
        claims = [id for name, id in self._objects if name == "Claim"]
        source, target = self._an_object(move), ("Claim", pick(claims, move.c) or NO_OBJECT)
        if move.b % 16 == 15:
            target = ("Company", target[1])
        relation = {14: "ABOUT", 13: "DOUBTS"}.get(move.b % 16, "SUPPORTS")
        return self._said(events.RelationCreated, {**_ends(relation, source, target), "data": '{"weight":0.5}'})

    def _unrelate(self, move: Move) -> Draft:
        joined = pick(self._joined[::-1], move.a) if move.b % 4 < 3 else None
        ends = joined or _ends("SUPPORTS", self._an_object(move), ("Claim", NO_OBJECT))
        return self._said(events.RelationRetired, {**ends, "reason": ""})

    def _an_object(self, move: Move) -> tuple[str, str]:
        return pick(self._objects[::-1], move.a) or ("Claim", NO_OBJECT)

    def _said(self, cls: type[Event], fields: dict[str, Any]) -> Draft:
        return Draft(cls, None, fields)

    # Policies, patches and frames.

    def _govern(self, move: Move) -> Draft:
        name = ("Claim", "Company", "SUPPORTS", "Finding")[move.a % 16 // 5]
        changes = [("create", "patch", "retire", "relate", "unrelate")[move.b % 5]] if move.c % 3 == 0 else []
        fields = {"type_name": name, "changes": changes, "reason": ""}
        return Draft(events.PolicySet, self._tale.in_role("admin"), fields)

    def _suggest(self, move: Move) -> Draft:
        """The change that another step would make, as a proposal; now and then one that lacks something."""
        step = (self._object, self._patch, self._retire, self._relate, self._unrelate)[move.c % 5]
        fields = step(move).fields
        op = ("create", "patch", "retire", "relate", "unrelate")[move.c % 5]
        told = {
            "op": op,
            "data": fields.get("data"),
            "decision": ("where_governed", "always")[move.b % 2],
            "reason": "",
        }
        if op in ("relate", "unrelate"):
            ends = {end: fields[end] for end in ("source_type", "source_id", "target_type", "target_id")}
            told |= {"type_name": fields["relation_type"], "ends": None if move.a % 16 == 15 else ends}
        else:
            version = fields.get("expected_version")
            told |= {"type_name": fields["object_type"], "object_id": fields["object_id"], "expected_version": version}
        reviewer = self._tale.in_role("reviewer")
        if move.a % 8 == 7 and reviewer is not None:
            return Draft(events.PatchProposed, None, told, (reviewer.name, reviewer.kind))
        return self._by_worker(events.PatchProposed, told)

    def _rule_on(self, move: Move) -> Draft:
        waiting = [id for id in self._patches if (self._tale.node("Patch", id) or {}).get("status") == "proposed"]
        id = pick(waiting if move.b % 8 < 7 else self._patches, move.a) or "patch-ffffffffffffffffffff"
        fields = {"patch_id": id, "decision": ("accept", "accept", "reject")[move.c % 3], "reason": ""}
        return Draft(events.PatchDecided, self._tale.in_role("reviewer"), fields)

    def _frame(self, move: Move) -> Draft:
        return self._by_worker(events.FrameOpened, {"title": "what if"})

    def _hold(self, move: Move) -> Draft:
        """The change that another step would make, in a frame, mostly the latest."""
        step = (self._object, self._patch, self._patch, self._retire, self._relate, self._unrelate)[move.b % 6]
        made = step(move)
        return Draft(made.cls, None, made.fields, frame=self._a_frame(move))

    def _merge(self, move: Move) -> Draft:
        fields = {"frame_id": self._a_frame(move), "outcome": ("merge", "merge", "drop")[move.b % 3], "reason": ""}
        return self._by_worker(events.FrameClosed, fields)

    def _a_frame(self, move: Move) -> str:
        return pick(self._frames[::-1], move.c // 32) or "frame-ffffffffffffffffffff"

    def _exhaust(self, move: Move) -> Draft:
        used_up = [name for name in BUDGETS if _is_used_up(self._tale.node("Budget", name))]
        name = pick(used_up if move.b % 4 < 3 else (*BUDGETS, "tea"), move.a) or "tea"
        row = self._tale.node("Budget", name) or {}
        limit, used = row.get("limit"), row.get("used")
        told = {"limit": limit if isinstance(limit, int) else 0, "used": used if isinstance(used, int) else 0}
        return self._by_worker(events.BudgetExhausted, {"name": name, **told})

    # Behaviors.

    def _behavior(self, move: Move) -> Draft:
        version = "1" if move.a % 8 == 7 else str(len(self._versions) + 1)
        fields = {"name": BEHAVIOR, "version": version, "code_sha256": "c" * 64, "subscriptions": "[]", "emits": []}
        return Draft(events.BehaviorRegistered, self._tale.in_role("admin"), fields)

    def _claim(self, move: Move) -> Draft:
        epoch = max(1, self._epoch if move.a % 8 == 7 else self._epoch + 1)
        return self._by_worker(events.WorkerClaimed, {"worker": WORKER, "epoch": epoch})

    def _begin(self, move: Move) -> Draft:
        """By the last event, or by one before it."""
        recent = [verdict.event_id for verdict in self._tale.verdicts if verdict.event_id][::-1]
        trigger = pick(recent, move.a // 8 if move.a % 8 == 7 else 0) or "00000000-0000-7000-8000-000000000000"
        version = "99" if move.b % 16 == 15 else (pick(self._versions[::-1], int(move.b % 16 == 14)) or "1")
        match = [f"claim-{move.c % 2}"] if move.b % 2 else []
        number = 1 if move.c % 16 == 15 else len(self._executions) + 1
        named = execution(number, version=version, match=match)
        return self._of(named, events.BehaviorStarted, {"trigger": trigger, "inputs": []}, move)

    def _emit(self, move: Move) -> Draft:
        if move.b % 2:
            return self._of(self._an_execution(move), events.GoalSet, {"text": "deeper"}, move)
        made = self._object(move)
        return self._of(self._an_execution(move), made.cls, made.fields, move)

    def _ask(self, move: Move) -> Draft:
        cls = tuple(REQUESTS)[move.c % len(REQUESTS)]
        fields = dict(REQUESTS[cls])
        if cls is events.TimerSet:
            fields["due_at"] = (0, DUE_AT)[move.b % 2]
        if "request_sha256" in fields and move.b % 16 == 15:
            fields["request_sha256"] = "0" * 64
        return self._of(self._an_execution(move), cls, fields, move)

    def _answer(self, move: Move) -> Draft:
        call, asked = pick(self._calls[::-1], move.a // 4) or (NO_CALL, events.ModelRequested)
        if move.a % 8 == 7:
            asked = tuple(REQUESTS)[move.c % len(REQUESTS)]
        if asked is events.ApprovalRequested:
            return Draft(events.ApprovalDecided, self._tale.in_role("operator"), decision(call))
        if asked is events.TimerSet:
            return self._by_worker(events.TimerFired, {"call_id": call})
        cls = events.ModelResponded if asked is events.ModelRequested else events.ToolResponded
        took: dict[str, Any] = {"duration_micros": 400_000 * move.c}
        if cls is events.ModelResponded:
            took |= {"input_tokens": move.a, "output_tokens": None}
        return self._by_worker(cls, answer(call, outcome=OUTCOMES[move.b % len(OUTCOMES)], **took))

    def _resolve(self, move: Move) -> Draft:
        unknown = [call for call, _ in self._calls if (self._tale.node("Call", call) or {}).get("status") == "unknown"]
        call = pick(unknown, move.a) or (pick(self._calls, move.a) or (NO_CALL, None))[0]
        fields = {"call_id": call, "outcome": ("ok", "error")[move.b % 2], "answer": None, "reason": "seen"}
        return Draft(events.EffectResolved, self._tale.in_role("operator"), fields)

    def _end(self, move: Move) -> Draft:
        named = self._an_execution(move)
        if move.c % 4 == 3:
            fields = {"execution_id": named["id"], "reason": "stuck"}
            return Draft(events.ExecutionCancelled, self._tale.in_role("operator"), fields)
        if move.c % 4 == 2:
            return self._of(named, events.BehaviorFailed, {"error_type": "ValueError", "message": ""}, move)
        return self._of(named, events.BehaviorCompleted, {}, move)

    def _an_execution(self, move: Move) -> Named:
        """One that goes on, the latest first; now and then any, or one that isn't there."""
        rows = [(named, self._tale.node("Execution", named["id"])) for named in self._executions[::-1]]
        going = [named for named, row in rows if row and row["status"] == "running"]
        found = pick(going if move.a % 4 < 3 else self._executions[::-1], move.a // 4)
        return found or execution(98)

    def _of(self, named: Named, cls: type[Event], fields: dict[str, Any], move: Move) -> Draft:
        """What an execution writes; now and then under a lost claim, or in another handler's name, or in none."""
        worker = self._tale.in_role("worker")
        if "epoch" in cls.model_fields:
            fields = {**fields, "epoch": max(1, self._epoch - int(move.a % 16 == 15))}
        if move.a % 16 == 14 and cls in REQUESTS:
            return Draft(cls, worker, fields, (WORKER, "service"))
        if move.a % 16 == 13 and cls is not events.BehaviorStarted:
            named = {**named, "handler": "other"}
        return Draft(cls, worker, fields, (named["behavior"], "behavior"), {**named, "path": str(move.c)})

    def _by_worker(self, cls: type[Event], fields: dict[str, Any]) -> Draft:
        return Draft(cls, self._tale.in_role("worker"), fields, (WORKER, "service"))


def _is_used_up(budget: Row | None) -> bool:
    limit, used = (budget["limit"], budget["used"]) if budget else (None, None)
    return isinstance(limit, int) and isinstance(used, int) and used >= limit


def _ends(relation: str, source: tuple[str, str], target: tuple[str, str]) -> dict[str, Any]:
    return {
        "relation_type": relation,
        "source_type": source[0],
        "source_id": source[1],
        "target_type": target[0],
        "target_id": target[1],
    }
