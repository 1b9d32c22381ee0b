"""What a behavior sees of the world: `ctx`. All of it follows from the log, so that a replay gives the same.

Changes (`create`, `patch`, `retire`, `relate`, `unrelate`, `emit`) are not waited for. Those of one stretch, up to the
next await or the end, go on the log together; a stretch that raises leaves none. What is awaited (`model`, `tool`,
`approval`, `query`, `sleep`, `gather`) may be answered a day later and in another process.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Coroutine, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar, overload

from pydantic import BaseModel, ValidationError

from forktrail_behaviors import ids
from forktrail_behaviors.commands import Abstained, Answer, Draft, EffectFailed, Gather, Request, Yielded
from forktrail_behaviors.given import Object, Row, Rows, frozen
from forktrail_behaviors.reads import canonical, check_query
from forktrail_behaviors.types import Types
from forktrail_projectors.state import Value
from forktrail_schemas.errors import InvalidInput
from forktrail_schemas.events import (
    ApprovalRequested,
    ModelRequested,
    ObjectCreated,
    ObjectPatched,
    ObjectRetired,
    RelationCreated,
    RelationRetired,
    TimerSet,
    ToolRequested,
)
from forktrail_schemas.events.base import Event
from forktrail_schemas.json_text import Json
from forktrail_schemas.wire import build

M = TypeVar("M", bound=BaseModel)
GRAPH_QUERY = "graph.query"
_MICROS = 1_000_000


@dataclass(frozen=True)
class Identity:
    """Which execution it is.

    Attributes:
        trigger: event id of what fired it.
        match: bound ids in pattern order; empty but for a pattern.
    """

    trigger: str
    behavior: str
    version: str
    handler: str
    match: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        """The execution's id."""
        return ids.execution_id(self.trigger, self.behavior, self.version, self.handler, self.match)

    def output_id(self, path: str) -> str:
        """The id of the event that it makes at a path."""
        return ids.output_id(self.trigger, self.behavior, self.version, self.handler, self.match, path)


@dataclass
class Branch:
    """Where in an execution one line of it stands; each branch of a `gather` counts for itself."""

    prefix: str = ""
    count: int = 0
    random: random.Random | None = None

    def next_path(self) -> str:
        """The path of the next thing that it makes or asks for."""
        self.count += 1
        return f"{self.prefix}{self.count}"


@dataclass(frozen=True)
class Decision:
    """A person's answer to what was put to them.

    Attributes:
        approved: whether they said yes.
        by: who they are.
        reason: why, in their words; may be empty.
    """

    approved: bool
    by: str
    reason: str


@dataclass
class Context:
    """One execution's view of the world. Whoever drives it sets `now_micros` and `branch` before each stretch."""

    identity: Identity
    types: Types = field(repr=False)
    emits: frozenset[str] = field(repr=False)
    now_micros: int = 0
    branch: Branch = field(default_factory=Branch, repr=False)
    stretch: list[Draft] = field(default_factory=list, repr=False)

    @property
    def now(self) -> datetime:
        """When the event happened that started this stretch; UTC."""
        return datetime.fromtimestamp(0, UTC) + timedelta(microseconds=self.now_micros)

    @property
    def random(self) -> random.Random:
        """Random numbers that are the same in every replay of this execution."""
        if self.branch.random is None:
            self.branch.random = random.Random(ids.seed(self.identity.id, self.branch.prefix))
        return self.branch.random

    def new_id(self, kind: str) -> str:
        """A fresh id, the same in every replay: `kind` in lower case and 20 hex digits."""
        return ids.object_id(kind, self.identity.id, self.branch.next_path())

    def create(self, object_type: str, *, id: str | None = None, **data: Any) -> Object:
        """Make an object of a declared type; returns it by type and id.

        A reference is given as an Object or an id. Several calls of one stretch may build on each other.

        Raises:
            InvalidInput: the type isn't declared, the data breaks it, or the behavior doesn't say that it emits it.
        """
        self._require(object_type)
        path = self.branch.next_path()
        made = Object(object_type, id or ids.object_id(object_type, self.identity.id, path))
        fields = {"object_type": object_type, "object_id": made.id, "data": self._data(object_type, data)}
        self._put(ObjectCreated, path, fields)
        return made

    def patch(self, target: Object, *, expected_version: int | None = None, **data: Any) -> None:
        """Change some of an object's data; None clears a property.

        Args:
            expected_version: void where the object has another version by then.

        Raises:
            InvalidInput: as `create`.
        """
        self._require(target.type)
        fields = {
            "object_type": target.type,
            "object_id": target.id,
            "data": self._data(target.type, data, whole=False),
            "expected_version": expected_version,
        }
        self._put(ObjectPatched, self.branch.next_path(), fields)

    def retire(self, target: Object, reason: str = "") -> None:
        """Take an object out of use: patterns no longer match it, and its relations end."""
        self._require(target.type)
        fields = {"object_type": target.type, "object_id": target.id, "reason": reason}
        self._put(ObjectRetired, self.branch.next_path(), fields)

    def relate(self, relation_type: str, source: Object, target: Object, **data: Any) -> None:
        """Join two objects by a declared relation.

        Raises:
            InvalidInput: as `create`.
        """
        self._require(relation_type)
        text = canonical(self.types.checked_relation(relation_type, source.type, target.type, _plain(data))).decode()
        self._put(RelationCreated, self.branch.next_path(), _ends(relation_type, source, target) | {"data": text})

    def unrelate(self, relation_type: str, source: Object, target: Object, reason: str = "") -> None:
        """End a relation."""
        self._require(relation_type)
        fields = _ends(relation_type, source, target) | {"reason": reason}
        self._put(RelationRetired, self.branch.next_path(), fields)

    def emit(self, event: type[Event], **fields: Any) -> None:
        """Write an event of any built-in type, in this behavior's name.

        Raises:
            InvalidInput: the behavior doesn't say that it emits it.
        """
        self._require(event.__name__)
        self._put(event, self.branch.next_path(), fields)

    @overload
    async def model(
        self, name: str, *, messages: Iterable[Mapping[str, Any]], schema: type[M], **options: Any
    ) -> M: ...

    @overload
    async def model(
        self, name: str, *, messages: Iterable[Mapping[str, Any]], schema: None = None, **options: Any
    ) -> Json: ...

    async def model(
        self,
        name: str,
        *,
        messages: Iterable[Mapping[str, Any]],
        schema: type[BaseModel] | None = None,
        **options: Any,
    ) -> object:
        """Ask a model; returns its answer, an instance of `schema` where one is given.

        Raises:
            RequestRefused: the rules refused it, a budget say.
            Abstained: it can't tell.
            EffectFailed: it failed, or its answer isn't of the schema.
        """
        request: dict[str, Json] = {
            "model": name,
            "messages": [_plain(message) for message in messages],
            "schema": schema.model_json_schema() if schema is not None else None,
            "options": _plain(options),
        }
        answer = _settled(await self._ask(ModelRequested, {"name": name, **_request(request)}))
        if schema is None:
            return frozen(json.loads(answer.value))
        try:
            return schema.model_validate_json(answer.value)
        except ValidationError as error:
            faults = error.errors(include_url=False, include_input=False)
            where = ".".join(map(str, faults[0]["loc"]))
            raise EffectFailed(f"the answer is no {schema.__name__}: {where}: {faults[0]['msg']}") from None

    async def tool(self, name: str, /, *, idempotency_key: str | None = None, **arguments: Any) -> Json:
        """Call a tool; returns its answer.

        Args:
            idempotency_key: what a tool that writes recognizes a second sending by.

        Raises:
            RequestRefused: the rules refused it.
            EffectFailed: it failed.
        """
        fields = {
            "name": name,
            "side_effects": self.types.side_effects(name),
            "idempotency_key": idempotency_key,
            **_request({"tool": name, "arguments": _plain(arguments)}),
        }
        return frozen(json.loads(_settled(await self._ask(ToolRequested, fields)).value))

    async def query(self, cypher: str, /, **parameters: Value) -> Rows:
        """Ask the graph as of now, which the log then remembers; see `reads.py` for what a query may be.

        Raises:
            InvalidInput: the query isn't one.
            RequestRefused: the rules refused it.
            EffectFailed: the graph refused it.
        """
        check_query(cypher)
        request = {"tool": GRAPH_QUERY, "arguments": {"cypher": cypher, "parameters": _plain(parameters)}}
        fields = {"name": GRAPH_QUERY, "side_effects": "read", "idempotency_key": None, **_request(request)}
        answer = _settled(await self._ask(ToolRequested, fields))
        return tuple(Row(row) for row in json.loads(answer.value))

    async def approval(self, title: str, details: str = "") -> Decision:
        """Put something to a person, and wait for as long as it takes.

        Raises:
            RequestRefused: the rules refused it.
        """
        answer = await self._ask(ApprovalRequested, {"title": title, "details": details})
        return Decision(answer.value == "approve", answer.person, answer.reason)

    async def sleep(self, seconds: float | timedelta) -> None:
        """Wait, by the log's clock and across restarts; a time that has passed meanwhile is over at once."""
        duration = seconds if isinstance(seconds, timedelta) else timedelta(seconds=seconds)
        due = self.now_micros + max(0, duration // timedelta(microseconds=1))
        await self._ask(TimerSet, {"due_at": due})

    async def gather(self, *branches: Coroutine[Any, Any, Any]) -> list[Any]:
        """Go on with several coroutines side by side; returns what each returned, in their order.

        Waits for all of them; where some raise, the first in their order is then raised.
        """
        results: list[Any] = await Yielded(Gather(self.branch.next_path(), branches))
        return results

    async def _ask(self, event: type[Event], fields: Mapping[str, object]) -> Answer:
        answer: Answer = await Yielded(Request(_checked(Draft(event, self.branch.next_path(), fields))))
        return answer

    def _put(self, event: type[Event], path: str, fields: Mapping[str, object]) -> None:
        self.stretch.append(_checked(Draft(event, path, fields)))

    def _data(self, object_type: str, data: Mapping[str, Any], *, whole: bool = True) -> str:
        return canonical(self.types.checked_object(object_type, _plain(data), whole=whole)).decode()

    def _require(self, name: str) -> None:
        if name not in self.emits:
            raise InvalidInput(
                f"{self.identity.behavior} doesn't say that it emits {name}", hint=f"add {name!r} to its emits=[…]"
            )


def _checked(draft: Draft) -> Draft:
    """The draft, whose fields fit its event: what doesn't fails the behavior, and not whoever writes the event."""
    told = {"epoch": 1} if "epoch" in draft.event.model_fields else {}
    build(draft.event, {"meta": _ANY_META, **told, **draft.fields})
    return draft


_ANY_META = {
    "event_id": "00000000-0000-8000-8000-000000000000",
    "run": "run",
    "occurred_at": 0,
    "actor": {"kind": "behavior", "id": "any"},
    "causes": [],
    "goal": None,
}


def _settled(answer: Answer) -> Answer:
    """The answer, where it is one."""
    if answer.outcome == "abstained":
        raise Abstained(answer.error or "the model can't tell")
    if answer.outcome != "ok":
        raise EffectFailed(answer.error or f"the outcome is {answer.outcome}")
    return answer


def _request(request: Mapping[str, Json]) -> dict[str, object]:
    """The canonical request and its digest; no event id is in it, so that a fork finds its parent's answer."""
    text = canonical(request)
    return {"request": text.decode(), "request_sha256": hashlib.sha256(text).hexdigest()}


def _ends(relation_type: str, source: Object, target: Object) -> dict[str, object]:
    return {
        "relation_type": relation_type,
        "source_type": source.type,
        "source_id": source.id,
        "target_type": target.type,
        "target_id": target.id,
    }


def _plain(value: Any) -> Any:
    """A value as JSON: objects by their ids, models by their fields."""
    if isinstance(value, Object):
        return value.id
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    if isinstance(value, Mapping):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if value is None or isinstance(value, str | bool | int | float):
        return value
    raise InvalidInput(f"a {type(value).__name__} is no JSON value", hint="give text, numbers, lists or mappings")
