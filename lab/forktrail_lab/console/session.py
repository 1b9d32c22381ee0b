"""A run as a command meets it: its graph, folded to the log's end, and events written to it with their verdict."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

from forktrail_lab.console.output import note
from forktrail_lab.console.signing import key_fault
from forktrail_producers.keys import KeyStore
from forktrail_producers.producer import Producer, meta
from forktrail_projectors.graph.protocol import Table
from forktrail_projectors.projection import open_projection
from forktrail_projectors.rules.context import text
from forktrail_projectors.rules.reasons import in_words
from forktrail_projectors.state import NodeId, NodeKey, Row, Value
from forktrail_projectors.submit import Submission
from forktrail_projectors.view import GraphView, RunView
from forktrail_schemas.errors import EventVoid, InvalidInput, NotFound
from forktrail_schemas.events.base import Event
from forktrail_schemas.settings import Settings
from forktrail_schemas.signatures import SigningKey
from forktrail_schemas.wire import build

E = TypeVar("E", bound=Event)

# What to do about a refusal that the caller can do something about; see `_hint`.
_HINTS = {
    "unknown_key": "the admin registers a key with `forktrail key register {run} NAME --role {role}`",
    "role_missing": "sign with a key that has the role; `forktrail key list {run}` shows them",
    "key_revoked": "sign with another key; `forktrail key list {run}` shows them",
    "same_person": "let another person review, or `forktrail set {run} same-person-may-review=true`",
    "support_missing": "`forktrail why-not {run} TEST` names what is missing",
    "budget_exhausted": "`forktrail budget {run}` shows the limits",
    "run_closed": "open another run",
}


@dataclass(frozen=True)
class Speaker:
    """Whose name an event is written in, and the key that vouches for it, if one does."""

    kind: str
    id: str
    key: SigningKey | None = None


@dataclass(frozen=True)
class Written:
    """A valid event on the log."""

    event: Event
    offset: int

    @property
    def event_id(self) -> str:
        """Its id, from which those of what it made are derived."""
        return self.event.meta.event_id

    def facts(self) -> dict[str, object]:
        """What a command prints of it as JSON."""
        return {
            "run": self.event.meta.run,
            "type": self.event.TYPE,
            "event_id": self.event_id,
            "offset": self.offset,
            "verdict": "valid",
        }


class RunSession:
    """A run's graph and log, inside the `with` block of `open_session`."""

    def __init__(self, settings: Settings, projection: RunView) -> None:
        self._settings = settings
        self.projection = projection
        self._producer: Producer | None = None

    def require_open(self) -> None:
        """Raise NotFound where the log doesn't hold a valid RunOpened (yet)."""
        if self.row("Run", "run") is None:
            name = self.projection.run
            raise NotFound(
                f"{name} is not open yet", hint=f"complete it with `forktrail run open --run {name} …`", run=name
            )

    @property
    def run(self) -> Row:
        """The run's row as it is now."""
        return self.existing("Run", "run")

    def existing(self, table: str, id: NodeId) -> Row:
        """A row that another row of the graph names, so that it must be there."""
        row = self.row(table, id)
        assert row is not None, f"the graph names {table} {id}"
        return row

    def row(self, table: str, id: NodeId) -> Row | None:
        """A row of the graph by its key, or None where there is none."""
        key = NodeKey(table, id)
        return self.projection.graph.nodes([key]).get(key)

    def query(self, cypher: str, **parameters: Value) -> Table:
        """Ask the graph."""
        return self.projection.graph.query(cypher, parameters)

    def person(self, key_name: str) -> Speaker:
        """The person whom a local key speaks for: the holder it is registered for, or else the key's own name.

        Raises:
            NotFound: there is no key of that name.
            InvalidInput: others may read its file.
        """
        key = KeyStore(self._settings.keys_dir).load(key_name)
        row = self.row("Key", key.key_id)
        if row is None:
            return Speaker("human", key_name, key)
        return Speaker(text(row, "holder_kind"), text(row, "holder"), key)

    def write(self, cls: type[E], speaker: Speaker, *, causes: Iterable[str] = (), **fields: object) -> Written:
        """Write an event under the run's current goal, and fold past it.

        Raises:
            InvalidEvent: a field breaks the schema; nothing was sent.
            InvalidInput: the speaker's key may not say this, as the graph stands; `code` is the reason code that the
                rules would give, and nothing was sent.
            EventVoid: it is on the log, and the rules refused it.
            LogUnavailable: Kafka doesn't answer; it may or may not be on the log.
        """
        head = meta(self.projection.run, speaker.kind, speaker.id, causes=causes, goal=text(self.run, "goal"))
        event = build(cls, {"meta": head, **fields})
        if speaker.key is not None:
            require_fit(self.projection.graph, self.projection.run, speaker.key, cls, (speaker.kind, speaker.id))
        if self._producer is None:
            self._producer = Producer(self._settings.bootstrap_servers)
        offset = self._producer.emit(event, speaker.key)
        self.projection.catch_up(offset + 1)
        require_valid(Submission(offset, self.projection.verdict(offset)), event.meta.run)
        return Written(event, offset)

    def close(self) -> None:
        """Let go of the connection that events were written on."""
        if self._producer is not None:
            self._producer.close()


def require_fit(graph: GraphView, run: str, key: SigningKey, cls: type[Event], actor: tuple[str, str]) -> None:
    """Refuse, before anything is sent, what a key may not sign as the graph stands; the log decides all the same.

    Raises:
        InvalidInput: it lacks the role, was revoked, isn't registered, or speaks for another; `code` says which.
    """
    fault = key_fault(graph, key.key_id, cls.ROLE, actor)
    if fault is not None:
        raise InvalidInput(
            f"{in_words(fault.reason, fault.detail)}; nothing was sent",
            code=fault.reason,
            hint=_hint(fault.reason, run, cls.ROLE),
            run=run,
        )


def _hint(reason: str, run: str, role: str | None = None) -> str:
    """What to do about a refusal; empty where there is nothing to say."""
    return _HINTS.get(reason, "").format(run=run, role=role or "ROLE")


def require_valid(submission: Submission, run: str) -> Submission:
    """The submission, where its event counts.

    Raises:
        EventVoid: it doesn't, with a hint where the caller can do something about it.
    """
    try:
        return submission.require_valid()
    except EventVoid as error:
        error.run = run
        error.hint = error.hint or _hint(error.code, run)
        raise


@contextmanager
def open_session(settings: Settings, run: str) -> Iterator[RunSession]:
    """Own a run's graph for the length of a `with` block, folded to the end the log has at its start.

    What the opening has to say (a graph set aside and rebuilt) goes to stderr.

    Raises:
        NotFound: there is no such run, or it isn't open yet.
        GraphError: the graph can't be opened or folded.
        LogUnavailable: Kafka doesn't answer.
    """
    with open_projection(settings, run, say=note) as projection:
        session = RunSession(settings, projection)
        try:
            session.require_open()
            yield session
        finally:
            session.close()
