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
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar, overload

from pydantic import BaseModel

from forktrail_behaviors import drafting, ids
from forktrail_behaviors.asking import REPAIRS, TURNS_MAX, Message, ask, question
from forktrail_behaviors.changes import Frame, Maker, Proposals
from forktrail_behaviors.commands import Answer, Draft, Gather, Request, Yielded, settled
from forktrail_behaviors.drafting import plain
from forktrail_behaviors.given import Object, Row, Rows, frozen
from forktrail_behaviors.inputs import INLINE_BYTES_MAX, MEDIA_TYPE
from forktrail_behaviors.reads import canonical, check_query
from forktrail_behaviors.types import Types
from forktrail_projectors.state import Value
from forktrail_schemas.errors import InvalidInput
from forktrail_schemas.events import (
    ApprovalRequested,
    FrameOpened,
    ModelRequested,
    TimerSet,
    ToolRequested,
)
from forktrail_schemas.events.base import Event
from forktrail_schemas.ids import derived_id
from forktrail_schemas.json_text import Json

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

        A reference is given as an Object or an id. Several calls of one stretch may build on each other. What a policy
        holds is refused by the log (`approval_required`) without the behavior being told: propose it instead.

        Raises:
            InvalidInput: the type isn't declared, the data breaks it, or the behavior doesn't say that it emits it.
        """
        made, draft = self._maker.create(object_type, id, data)
        self.stretch.append(draft)
        return made

    def patch(self, target: Object, *, expected_version: int | None = None, **data: Any) -> None:
        """Change some of an object's data; None clears a property.

        Args:
            expected_version: void where the object has another version by then.

        Raises:
            InvalidInput: as `create`.
        """
        self.stretch.append(self._maker.patch(target, data, expected_version))

    def retire(self, target: Object, reason: str = "") -> None:
        """Take an object out of use: patterns no longer match it, and its relations end."""
        self.stretch.append(self._maker.retire(target, reason))

    def relate(self, relation_type: str, source: Object, target: Object, **data: Any) -> None:
        """Join two objects by a declared relation.

        Raises:
            InvalidInput: as `create`.
        """
        self.stretch.append(self._maker.relate(relation_type, source, target, data))

    def unrelate(self, relation_type: str, source: Object, target: Object, reason: str = "") -> None:
        """End a relation."""
        self.stretch.append(self._maker.unrelate(relation_type, source, target, reason))

    @property
    def propose(self) -> Proposals:
        """The same changes as proposals: what a policy holds waits for a reviewer, the rest is made at once."""
        return Proposals(self._maker)

    def frame(self, title: str) -> Frame:
        """Open a frame: what is changed in it is seen outside once it is merged."""
        path = self.branch.next_path()
        self.stretch.append(drafting.checked(FrameOpened, path, {"title": title}))
        return Frame(derived_id("frame", self.identity.output_id(path)), self._maker, self._append)

    def emit(self, event: type[Event], **fields: Any) -> None:
        """Write an event of any built-in type, in this behavior's name.

        Raises:
            InvalidInput: the behavior doesn't say that it emits it, or it needs a person's signature.
        """
        self._require(event.__name__)
        if event.ROLE is not None:
            raise InvalidInput(f"a behavior can't write {event.__name__}: it is for the role {event.ROLE}")
        self._put(event, self.branch.next_path(), fields)

    @overload
    async def model(
        self,
        name: str,
        *,
        messages: Iterable[Mapping[str, Any]],
        schema: type[M],
        tools: Iterable[str] = (),
        turns_max: int = TURNS_MAX,
        transcript: list[Message] | None = None,
        repairs: int = REPAIRS,
        abstain_below: float | None = None,
        **options: Any,
    ) -> M: ...

    @overload
    async def model(
        self,
        name: str,
        *,
        messages: Iterable[Mapping[str, Any]],
        schema: None = None,
        tools: Iterable[str] = (),
        turns_max: int = TURNS_MAX,
        transcript: list[Message] | None = None,
        **options: Any,
    ) -> Json: ...

    async def model(
        self,
        name: str,
        *,
        messages: Iterable[Mapping[str, Any]],
        schema: type[BaseModel] | None = None,
        tools: Iterable[str] = (),
        turns_max: int = TURNS_MAX,
        transcript: list[Message] | None = None,
        repairs: int = REPAIRS,
        abstain_below: float | None = None,
        **options: Any,
    ) -> object:
        """Ask a model; returns its answer, an instance of `schema` where one is given.

        Args:
            tools: names of the pack's tools that it may call; each call is made as by `tool`, and it is asked again.
            turns_max: so often it is asked in all, while it calls tools.
            transcript: takes every message that led to the answer, the given ones first.
            repairs: so often it is asked again, with what is wrong, after an answer that isn't of the schema.
            abstain_below: an answer whose field `confidence` is less counts as none.
            options: what the provider takes beside these, a temperature say.

        Raises:
            RequestRefused: the rules refused it, a budget say.
            Abstained: it can't tell.
            EffectFailed: it failed, or its answer isn't of the schema.
        """
        asked = question(
            name,
            messages,
            schema,
            tools=tools,
            turns_max=turns_max,
            repairs=repairs,
            abstain_below=abstain_below,
            options=options,
        )
        return await ask(asked, self.types, self, transcript)

    async def ask_model(self, name: str, request: Mapping[str, Json]) -> Answer:
        """One turn of a model, as `model` takes it; the request is a whole one (asking.py)."""
        text = canonical(request)
        fields: dict[str, object] = {"name": name, "request_sha256": hashlib.sha256(text).hexdigest()}
        if len(text) <= INLINE_BYTES_MAX:
            return await self._ask(ModelRequested, fields | {"request": text.decode(), "blob": None})
        blob = {"sha256": fields["request_sha256"], "size": len(text), "media_type": MEDIA_TYPE}
        return await self._ask(ModelRequested, fields | {"request": None, "blob": blob}, text)

    async def tool(self, name: str, /, *, idempotency_key: str | None = None, **arguments: Any) -> Json:
        """Call a tool; returns its answer.

        Args:
            idempotency_key: what a tool that writes recognizes a second sending by.

        Raises:
            InvalidInput: the arguments aren't as the tool declares them; nothing is called.
            RequestRefused: the rules refused it.
            EffectFailed: it failed.
        """
        tool, given = self.types.tool(name), plain(arguments)
        tool.check(given)
        if idempotency_key is not None and not tool.takes_key:
            raise InvalidInput(
                f"{name} takes no idempotency key, so it couldn't tell a second sending",
                hint="give its function a parameter idempotency_key",
            )
        fields = {
            "name": name,
            "side_effects": tool.side_effects,
            "idempotency_key": idempotency_key,
            **_request({"tool": name, "arguments": given}),
        }
        return frozen(json.loads(settled(await self._ask(ToolRequested, fields)).value))

    async def query(self, cypher: str, /, **parameters: Value) -> Rows:
        """Ask the graph as of now, which the log then remembers; see `reads.py` for what a query may be.

        Raises:
            InvalidInput: the query isn't one.
            RequestRefused: the rules refused it.
            EffectFailed: the graph refused it.
        """
        check_query(cypher)
        request = {"tool": GRAPH_QUERY, "arguments": {"cypher": cypher, "parameters": plain(parameters)}}
        fields = {"name": GRAPH_QUERY, "side_effects": "read", "idempotency_key": None, **_request(request)}
        answer = settled(await self._ask(ToolRequested, fields))
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

    async def _ask(self, event: type[Event], fields: Mapping[str, object], large: bytes | None = None) -> Answer:
        draft = drafting.checked(event, self.branch.next_path(), fields)
        answer: Answer = await Yielded(Request(replace(draft, large=large)))
        return answer

    def _put(self, event: type[Event], path: str, fields: Mapping[str, object]) -> None:
        self.stretch.append(drafting.checked(event, path, fields))

    @property
    def _maker(self) -> Maker:
        return Maker(self.types, self.identity.id, lambda: self.branch.next_path(), self._require)

    def _append(self, draft: Draft) -> None:
        self.stretch.append(draft)

    def _require(self, name: str) -> None:
        if name not in self.emits:
            raise InvalidInput(
                f"{self.identity.behavior} doesn't say that it emits {name}", hint=f"add {name!r} to its emits=[…]"
            )


def _request(request: Mapping[str, Json]) -> dict[str, object]:
    """The canonical request and its digest; no event id is in it, so that a fork finds its parent's answer."""
    text = canonical(request)
    return {"request": text.decode(), "request_sha256": hashlib.sha256(text).hexdigest()}
