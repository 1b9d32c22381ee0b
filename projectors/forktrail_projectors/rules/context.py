"""What a rule may do: read rows by key, stage changes, refuse."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Generic, NamedTuple, TypeVar

from forktrail_projectors.graph.declared_tables import Tables
from forktrail_projectors.state import EdgeKey, End, NodeId, NodeKey, Overlay, Row, Value
from forktrail_schemas.events.base import Event

E = TypeVar("E", bound=Event, covariant=True)

RUN = NodeKey("Run", "run")
WORKER = NodeKey("Worker", "worker")


class Refused(Exception):
    """The rules refuse the event: it becomes void.

    Attributes:
        reason: stable reason code.
        detail: what it is about, an id say.
        takes_id: False where it is refused for what it is, so that a right event may still come under its id.
    """

    def __init__(self, reason: str, detail: str = "", *, takes_id: bool = True) -> None:
        super().__init__(reason)
        self.reason = reason
        self.detail = detail
        self.takes_id = takes_id


class Signer(NamedTuple):
    """The key that signed the event, checked."""

    key_id: str
    public_key: str


@dataclass(slots=True)
class Context(Generic[E]):
    """One event in front of its rule.

    Changes are staged and take effect only when the rule ends without refusing. A rule reads first, then stages: it
    doesn't see its own staged changes.

    Attributes:
        opened: the run's row as it was before this event; None before RunOpened.
        causes: offsets of the events that led to this one, as far as this log has taken their ids.
        depth: one more than the deepest of its causes; 0 without any.
        declared: the tables that there are from this event on, where it declares a type.
        accepted: whether a reviewer has accepted the changes, so that no policy stands against them.
    """

    event: E
    offset: int
    signer: Signer | None
    overlay: Overlay
    opened: Row | None = None
    causes: tuple[int, ...] = ()
    depth: int = 0
    new_nodes: dict[NodeKey, dict[str, Value]] = field(default_factory=dict)
    changed_nodes: dict[NodeKey, dict[str, Value]] = field(default_factory=dict)
    new_edges: list[tuple[str, NodeKey, NodeKey, Row]] = field(default_factory=list)
    old_edges: dict[EdgeKey, Row] = field(default_factory=dict)
    declared: Tables | None = None
    accepted: bool = False

    @property
    def run(self) -> Row:
        """The run's row; there is one, since every rule but RunOpened's comes after it."""
        assert self.opened is not None
        return self.opened

    @property
    def revision(self) -> str:
        """The active revision."""
        return text(self.run, "active_revision")

    def node(self, table: str, id: NodeId) -> Row | None:
        """A row by key, None where there is none."""
        return self.overlay.node(table, id)

    def existing(self, table: str, id: NodeId, reason: str) -> Row:
        """A row by key; refuses the event where there is none."""
        row = self.node(table, id)
        if row is None:
            raise Refused(reason, str(id))
        return row

    def neighbours(self, table: str, end: End, node: NodeKey) -> tuple[NodeKey, ...]:
        """The nodes at the other end of a node's relations, in a fixed order."""
        return self.overlay.neighbours(table, end, node)

    def create(self, table: str, id: str, /, **values: Value) -> NodeKey:
        """Stage a new node; refuses the event where its id is taken."""
        key = NodeKey(table, id)
        if key in self.new_nodes or self.overlay.node(table, id) is not None:
            raise Refused("id_collision", f"{table} {id}")
        self.new_nodes[key] = values
        return key

    def ensure(self, table: str, id: str) -> NodeKey:
        """Stage a node that only has an id, unless it is there already."""
        key = NodeKey(table, id)
        if key not in self.new_nodes and self.node(table, id) is None:
            self.new_nodes[key] = {}
        return key

    def update(self, table: str, id: str, /, **values: Value) -> None:
        """Stage new values for some columns of a node that is there."""
        self.changed_nodes.setdefault(NodeKey(table, id), {}).update(values)

    def relate(self, table: str, source: NodeKey, target: NodeKey, /, **data: Value) -> None:
        """Stage a relation, with its own data where its type has any."""
        self.new_edges.append((table, source, target, data))

    def edge(self, table: str, source: NodeKey, target: NodeKey) -> Row | None:
        """The row of a relation, None where there is none."""
        return self.overlay.edge(EdgeKey(table, source, target))

    def trial(self) -> Context[E]:
        """The same event with nothing staged, to see what a rule would stage."""
        return replace(self, new_nodes={}, changed_nodes={}, new_edges=[], old_edges={})

    def adopt(self, trial: Context[Event]) -> None:
        """Stage what was staged on trial."""
        self.new_nodes.update(trial.new_nodes)
        for key, values in trial.changed_nodes.items():
            self.changed_nodes.setdefault(key, {}).update(values)
        self.new_edges += trial.new_edges
        self.old_edges.update(trial.old_edges)

    def unrelate(self, table: str, source: NodeKey, target: NodeKey) -> None:
        """Stage the end of a relation that is there."""
        key = EdgeKey(table, source, target)
        row = self.overlay.edge(key)
        assert row is not None, f"a rule ends {key}, which isn't there"
        self.old_edges[key] = row


def text(row: Row, column: str) -> str:
    """A column that is never null, as text."""
    value = row[column]
    assert isinstance(value, str), column
    return value


def number(row: Row, column: str) -> int:
    """A column that is never null, as a number."""
    value = row[column]
    assert isinstance(value, int), column
    return value
