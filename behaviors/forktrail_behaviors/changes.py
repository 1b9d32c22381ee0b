"""Changes of the graph that a behavior asks for: at once, in a frame, or as proposals that it waits for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from forktrail_behaviors import drafting, ids
from forktrail_behaviors.commands import Answer, Draft, Request, Yielded
from forktrail_behaviors.given import Object
from forktrail_behaviors.types import Types
from forktrail_schemas.events import FrameClosed, PatchProposed
from forktrail_schemas.events.work import FrameOutcome

_RELATIONS = {"RelationCreated": "relate", "RelationRetired": "unrelate"}
_OBJECTS = {"ObjectCreated": "create", "ObjectPatched": "patch", "ObjectRetired": "retire"}


@dataclass(frozen=True)
class Maker:
    """What an execution makes changes with.

    Attributes:
        types: of its pack.
        execution: its id.
        next_path: counts what it makes.
        require: refuses a type that the behavior doesn't say it emits.
    """

    types: Types
    execution: str
    next_path: Callable[[], str]
    require: Callable[[str], None]

    def create(self, object_type: str, id: str | None, data: Mapping[str, Any]) -> tuple[Object, Draft]:
        """An object, and the draft that makes it."""
        self.require(object_type)
        path = self.next_path()
        made = Object(object_type, id or ids.object_id(object_type, self.execution, path))
        return made, drafting.creation(self.types, path, made, data)

    def patch(self, target: Object, data: Mapping[str, Any], expected_version: int | None) -> Draft:
        """The draft of a patch."""
        self.require(target.type)
        return drafting.patch(self.types, self.next_path(), target, data, expected_version)

    def retire(self, target: Object, reason: str) -> Draft:
        """The draft of a retirement."""
        self.require(target.type)
        return drafting.retirement(self.next_path(), target, reason)

    def relate(self, name: str, source: Object, target: Object, data: Mapping[str, Any]) -> Draft:
        """The draft of a relation."""
        self.require(name)
        return drafting.relation(self.types, self.next_path(), name, source, target, data)

    def unrelate(self, name: str, source: Object, target: Object, reason: str) -> Draft:
        """The draft of a relation's end."""
        self.require(name)
        return drafting.parting(self.next_path(), name, source, target, reason)


@dataclass(frozen=True)
class Outcome:
    """What became of a proposal.

    Attributes:
        approved: whether the change is made.
        by: who decided; empty where no policy held it, and it was made at once.
        reason: why, in their words; may be empty.
        object: that was proposed to be made, patched or retired; None of a relation.
    """

    approved: bool
    by: str
    reason: str
    object: Object | None = None


@dataclass(frozen=True)
class Proposals:
    """Changes that a reviewer decides on where a policy says so; each call waits until it is made or refused.

    Each raises RequestRefused where the change couldn't be made when it was proposed, and InvalidInput as the plain
    call does.
    """

    _maker: Maker = field(repr=False)

    async def create(self, object_type: str, *, id: str | None = None, reason: str = "", **data: Any) -> Outcome:
        """Propose an object."""
        made, draft = self._maker.create(object_type, id, data)
        return await _proposed(draft, reason, made)

    async def patch(
        self, target: Object, *, expected_version: int | None = None, reason: str = "", **data: Any
    ) -> Outcome:
        """Propose to change some of an object's data."""
        return await _proposed(self._maker.patch(target, data, expected_version), reason, target)

    async def retire(self, target: Object, reason: str = "") -> Outcome:
        """Propose to take an object out of use."""
        return await _proposed(self._maker.retire(target, ""), reason, target)

    async def relate(
        self, relation_type: str, source: Object, target: Object, *, reason: str = "", **data: Any
    ) -> Outcome:
        """Propose to join two objects."""
        return await _proposed(self._maker.relate(relation_type, source, target, data), reason)

    async def unrelate(self, relation_type: str, source: Object, target: Object, reason: str = "") -> Outcome:
        """Propose to end a relation."""
        return await _proposed(self._maker.unrelate(relation_type, source, target, ""), reason)


@dataclass(frozen=True)
class Frame:
    """A sub-context: what is changed in it is seen outside once it is merged.

    Frames that change the same properties come together by the rules of their types, whichever is merged first.
    """

    id: str
    _maker: Maker = field(repr=False)
    _put: Callable[[Draft], None] = field(repr=False)

    def create(self, object_type: str, *, id: str | None = None, **data: Any) -> Object:
        """Make an object in the frame."""
        made, draft = self._maker.create(object_type, id, data)
        self._hold(draft)
        return made

    def patch(self, target: Object, *, expected_version: int | None = None, **data: Any) -> None:
        """Change some of an object's data in the frame."""
        self._hold(self._maker.patch(target, data, expected_version))

    def retire(self, target: Object, reason: str = "") -> None:
        """Take an object out of use in the frame."""
        self._hold(self._maker.retire(target, reason))

    def relate(self, relation_type: str, source: Object, target: Object, **data: Any) -> None:
        """Join two objects in the frame."""
        self._hold(self._maker.relate(relation_type, source, target, data))

    def unrelate(self, relation_type: str, source: Object, target: Object, reason: str = "") -> None:
        """End a relation in the frame."""
        self._hold(self._maker.unrelate(relation_type, source, target, reason))

    def merge(self, reason: str = "") -> None:
        """Make all its changes."""
        self._close("merge", reason)

    def drop(self, reason: str = "") -> None:
        """Make none of its changes."""
        self._close("drop", reason)

    def _hold(self, draft: Draft) -> None:
        self._put(replace(draft, frame=self.id))

    def _close(self, outcome: FrameOutcome, reason: str) -> None:
        fields = {"frame_id": self.id, "outcome": outcome, "reason": reason}
        self._put(drafting.checked(FrameClosed, self._maker.next_path(), fields))


async def _proposed(draft: Draft, reason: str, made: Object | None = None) -> Outcome:
    """Propose a change, and wait for what becomes of it."""
    request = drafting.checked(PatchProposed, draft.path, _proposal(draft) | {"reason": reason})
    answer: Answer = await Yielded(Request(request))
    return Outcome(answer.value == "accept", answer.person, answer.reason, made)


def _proposal(draft: Draft) -> dict[str, object]:
    """The fields of the proposal of a change."""
    fields, name = draft.fields, draft.event.__name__
    told: dict[str, object] = {"decision": "where_governed", "data": fields.get("data")}
    if name in _RELATIONS:
        ends = {end: fields[end] for end in ("source_type", "source_id", "target_type", "target_id")}
        return told | {"op": _RELATIONS[name], "type_name": fields["relation_type"], "ends": ends}
    return told | {
        "op": _OBJECTS[name],
        "type_name": fields["object_type"],
        "object_id": fields["object_id"],
        "expected_version": fields.get("expected_version"),
    }
