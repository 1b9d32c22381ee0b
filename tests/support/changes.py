"""Policies, patches and frames for stories of companies and claims."""

from __future__ import annotations

import json
from typing import Any

from forktrail_projectors.record import LogRecord, Verdict
from forktrail_schemas import events
from forktrail_schemas.events.base import Event
from forktrail_schemas.ids import derived_id
from forktrail_schemas.wire import build
from support.objects import id_of, said
from support.refused_log import by_admin
from support.story import REVIEWER, Story


def policy(story: Story, type_name: str, *changes: str) -> LogRecord:
    """A PolicySet signed by the admin."""
    return by_admin(story, events.PolicySet, type_name=type_name, changes=list(changes), reason="they matter")


def govern(story: Story, type_name: str, *changes: str) -> None:
    """Set a policy."""
    assert story.append(policy(story, type_name, *changes)).valid


def proposal(op: str, type_name: str, number: int | None = None, /, **changes: Any) -> dict[str, Any]:
    """The fields of a PatchProposed about an object, of a change that a policy may hold."""
    data = changes.pop("data", None)
    return {
        "op": op,
        "type_name": type_name,
        "object_id": None if number is None else id_of(type_name, number),
        "ends": None,
        "data": None if data is None else json.dumps(data),
        "expected_version": None,
        "decision": "where_governed",
        "reason": "it follows",
        **changes,
    }


def relation(op: str, source: tuple[str, int], target: tuple[str, int], **changes: Any) -> dict[str, Any]:
    """The fields of a PatchProposed about SUPPORTS."""
    ends = {
        "source_type": source[0],
        "source_id": id_of(*source),
        "target_type": target[0],
        "target_id": id_of(*target),
    }
    data: dict[str, Any] = {"data": {}} if op == "relate" else {}
    return proposal(op, "SUPPORTS", ends=ends, **data, **changes)


def propose(story: Story, fields: dict[str, Any]) -> str:
    """A valid PatchProposed; returns the id of its patch."""
    event = story.event(events.PatchProposed, "scanner-7", "service", **fields)
    verdict = story.append(story.record(event))
    assert verdict.valid, verdict
    return derived_id("patch", event.meta.event_id)


def decide(story: Story, patch_id: str, decision: str = "accept") -> Verdict:
    """A PatchDecided signed by the reviewer."""
    return story.signed(events.PatchDecided, REVIEWER, patch_id=patch_id, decision=decision, reason="fine")[1]


def open_frame(story: Story, title: str = "what if") -> str:
    """A valid FrameOpened; returns the frame's id."""
    event = story.event(events.FrameOpened, "scanner-7", "service", title=title)
    assert story.append(story.record(event)).valid
    return derived_id("frame", event.meta.event_id)


def in_frame(story: Story, frame: str, cls: type[Event], fields: dict[str, Any]) -> LogRecord:
    """An unsigned record of a change in a frame."""
    event = story.event(cls, "scanner-7", "service", **fields)
    meta = build(type(event.meta), {**event.meta.model_dump(), "frame": frame})
    return story.record(event.model_copy(update={"meta": meta}))


def hold(story: Story, frame: str, cls: type[Event], fields: dict[str, Any]) -> None:
    """A valid change in a frame."""
    verdict = story.append(in_frame(story, frame, cls, fields))
    assert verdict.valid, verdict


def close(story: Story, frame: str, outcome: str = "merge") -> Verdict:
    """A FrameClosed."""
    return story.append(said(story, events.FrameClosed, {"frame_id": frame, "outcome": outcome, "reason": ""}))
