"""What the owner answers one client: the questions by name, each answered from the graph as it stands.

    catch_up  end, fold, hold, wait_ms    next_offset
    verdict   offset, wait_ms             row
    position                              next_offset, end, state_digest, log_root
    nodes     keys                        items: key and row
    edges     keys                        items: the other ends of each key's relations
    query     cypher, parameters, timeout_ms    columns; items: rows
    check                                 sound
    rebuild                               next_offset
    let_go                                nothing; an owner that doesn't mean to stay then ends

A question with `as_of` is answered from the graph at that offset, or not at all.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from itertools import chain, islice

from forktrail_projectors import digest
from forktrail_projectors.owner.frames import Frame, answer_bytes, chunks
from forktrail_projectors.owner.gate import Hold
from forktrail_projectors.owner.messages import edges_keys, error_json, node_keys, values_of
from forktrail_projectors.owner.owned import Owned
from forktrail_projectors.projection import Projection
from forktrail_projectors.state import EdgeKey, EdgesKey, NodeId, NodeKey
from forktrail_schemas.errors import ForktrailError, GraphBehind, GraphBusy, InvalidInput

Items = Sequence[object]


class Asker:
    """One client of the owner, on one connection."""

    def __init__(self, owned: Owned) -> None:
        self._owned = owned
        self._hold: Hold | None = None
        self._lock = threading.Lock()
        self._interrupt: Callable[[], None] | None = None
        self._gone = False
        self._questions: dict[str, Callable[[Frame], tuple[Items, Frame]]] = {
            "catch_up": self._catch_up,
            "verdict": self._verdict,
            "position": self._position,
            "nodes": self._nodes,
            "edges": self._edges,
            "query": self._query,
            "check": self._check,
            "rebuild": self._rebuild,
            "let_go": self._let_go,
        }

    def answer(self, request: Frame) -> Iterator[bytes]:
        """The frames of the answer to one request.

        Raises:
            OwnerGone: there is none, since this process stops owning the graph.
        """
        try:
            question = self._questions.get(str(request.get("do")))
            if question is None:
                raise InvalidInput(f"there is no question {request.get('do')!r}", code="bad_request")
            items, done = question(request)
            yield from chunks(items)
        except ForktrailError as error:
            yield answer_bytes({"error": error_json(error)})
        else:
            yield answer_bytes({"done": done})

    def leave(self) -> None:
        """The client is gone: end what is done for it. May be called again, until the answer ends."""
        self._gone = True
        with self._lock:
            if self._interrupt is not None:
                self._interrupt()
        if self._hold is not None:
            self._owned.gate.release(self._hold)

    def _catch_up(self, request: Frame) -> tuple[Items, Frame]:
        if self._hold is not None:
            self._owned.gate.release(self._hold)
        end = request.get("end")
        target = self._owned.end() if end is None else _whole(end)
        wait_seconds = _whole(request.get("wait_ms")) / 1000 if request.get("fold", True) else 0.0
        projection = self._owned.wait_for(target, wait_seconds, self._is_gone)
        if request.get("hold"):
            self._hold = self._owned.gate.hold()
            projection = self._owned.projection()
        return (), {"next_offset": projection.next_offset}

    def _verdict(self, request: Frame) -> tuple[Items, Frame]:
        offset = _whole(request.get("offset"))
        projection = self._owned.wait_for(offset + 1, _whole(request.get("wait_ms")) / 1000, self._is_gone)
        key = NodeKey("Event", offset)
        row = projection.graph.nodes([key]).get(key)
        if row is None:
            raise GraphBehind(f"offset {offset} isn't folded yet", run=self._owned.run, offset=offset)
        return (), {"row": dict(row)}

    def _position(self, request: Frame) -> tuple[Items, Frame]:
        end = self._owned.end()
        with self._still(request) as projection:
            return (), asdict(projection.position(end))

    def _nodes(self, request: Frame) -> tuple[Items, Frame]:
        keys = node_keys(request.get("keys"))
        with self._still(request) as projection:
            found = projection.graph.nodes(keys)
        return [((key.table, key.id), dict(row)) for key, row in found.items()], {}

    def _edges(self, request: Frame) -> tuple[Items, Frame]:
        keys = edges_keys(request.get("keys"))
        with self._still(request) as projection:
            found = projection.graph.edges(keys)
        return [[_other_end(key, edge) for edge in found[key]] for key in keys], {}

    def _query(self, request: Frame) -> tuple[Items, Frame]:
        cypher, parameters = request.get("cypher"), values_of(request.get("parameters", {}))
        timeout_ms = None if request.get("timeout_ms") is None else _whole(request["timeout_ms"])
        if not isinstance(cypher, str):
            raise InvalidInput("a query is a text", code="bad_request")
        with self._still(request) as projection:
            table = projection.graph.query(cypher, parameters, timeout_ms=timeout_ms, running=self._running)
        return table.rows, {"columns": table.columns}

    def _check(self, request: Frame) -> tuple[Items, Frame]:
        """Compare the digest kept with one made anew of all rows, while the fold goes on."""
        hold = self._owned.gate.hold()
        try:
            projection = self._owned.projection()
            kept = projection.projector.state_digest
            rows, tables = projection.graph.rows(), projection.graph.tables
            first = list(islice(rows, 1))
        finally:
            self._owned.gate.release(hold)
        if digest.state_digest(digest.recompute(chain(first, rows), tables)) == kept:
            return (), {"sound": True}
        # A CHECKPOINT meanwhile takes the old versions of rows from whoever still reads them: look again, undisturbed.
        with self._owned.gate.writing():
            return (), {"sound": self._owned.projection().sound()}

    def _rebuild(self, request: Frame) -> tuple[Items, Frame]:
        return (), {"next_offset": self._owned.rebuild(self._is_gone).next_offset}

    def _let_go(self, request: Frame) -> tuple[Items, Frame]:
        self._owned.let_go.set()
        return (), {}

    @contextmanager
    def _still(self, request: Frame) -> Iterator[Projection]:
        """The projection, kept from moving; where it is to be as of an offset, it is, from the beginning to the end."""
        as_of = request.get("as_of")
        if as_of is None:
            yield self._owned.projection()
            return
        hold = self._held()
        self._owned.gate.extend(hold, busy=True)
        yield self._at(_whole(as_of))
        self._held()
        self._at(as_of)
        self._owned.gate.extend(hold, busy=False)

    def _held(self) -> Hold:
        """The client's hold, made anew where its time was up."""
        if self._hold is None or not self._owned.gate.holds(self._hold):
            self._hold = self._owned.gate.hold()
        return self._hold

    def _at(self, offset: int) -> Projection:
        projection = self._owned.projection()
        if projection.next_offset != offset:
            raise GraphBusy(
                f"the graph of {self._owned.run} went on from offset {offset} to {projection.next_offset} "
                "while it was read",
                code="graph_moved",
                hint="try again",
                run=self._owned.run,
                offset=offset,
            )
        return projection

    @contextmanager
    def _running(self, interrupt: Callable[[], None]) -> Iterator[None]:
        with self._lock:
            self._interrupt = interrupt
        try:
            yield
        finally:
            with self._lock:
                self._interrupt = None

    def _is_gone(self) -> bool:
        return self._gone


def _other_end(key: EdgesKey, edge: EdgeKey) -> tuple[str, NodeId]:
    other = edge.target if key.end == "source" else edge.source
    return other.table, other.id


def _whole(value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    raise InvalidInput(f"{value!r} is no whole number from 0", code="bad_request")
