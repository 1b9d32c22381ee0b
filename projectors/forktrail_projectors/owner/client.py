"""Asks a graph's owner over its socket: one `Connection` a question at a time, and a view of the run made of them."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from forktrail_projectors.graph.protocol import Table
from forktrail_projectors.graph.session import GRACE_SECONDS, out_of_time
from forktrail_projectors.owner.frames import ANSWER_BYTES_MAX, HEADER, Frame, body_length, frame_of, request_bytes
from forktrail_projectors.owner.messages import (
    PROTOCOL,
    SILENCE_SECONDS,
    OwnerGone,
    error_of,
    found_edges,
    found_nodes,
    row_of,
)
from forktrail_projectors.projector import verdict_of_row
from forktrail_projectors.reader import LogReader
from forktrail_projectors.record import Verdict
from forktrail_projectors.state import EdgeKey, EdgesKey, NodeKey, Row, Value
from forktrail_projectors.view import Position
from forktrail_schemas.errors import GraphBusy, GraphError

CONNECT_SECONDS = 5.0
_PATIENCE_SECONDS_MIN = 0.001  # 0 would mean not to wait at all

Dial = Callable[[], socket.socket]


@dataclass(frozen=True)
class Answer:
    """What the owner said to one request."""

    items: list[Any]
    done: Frame


def dial(path: Path) -> socket.socket:
    """Connect to an owner's socket.

    Raises:
        OwnerGone: nobody answers there.
    """
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.settimeout(CONNECT_SECONDS)
        connection.connect(str(path))
    except OSError as error:
        connection.close()
        raise OwnerGone from error
    return connection


class Connection:
    """One connection to an owner, greeted; for one thread at a time, but for `cut`.

    Attributes:
        idle: it is fit for another question.
    """

    def __init__(self, sock: socket.socket, run: str) -> None:
        """Take the owner's greeting.

        Raises:
            OwnerGone: it closed.
            GraphBusy: it doesn't answer, speaks another version, or has too many clients.
        """
        self._socket = sock
        self._cut = False
        self._deadline: float | None = None
        self.idle = True
        try:
            self.greeting = self._receive()
            _check_greeting(self.greeting, run)
        except BaseException:
            self.close()
            raise

    def ask(self, request: Frame, within_seconds: float | None = None) -> Answer:
        """Put a question and wait for the whole answer.

        Args:
            within_seconds: how long to wait in all, whatever the owner does; None is as long as it says it is at work.

        Raises:
            OwnerGone: the connection ended before the answer did.
            GraphError: the time ran out (code `query_timeout`).
            ForktrailError: whatever the owner says went wrong.
        """
        data = request_bytes(request)
        self._deadline = None if within_seconds is None else time.monotonic() + within_seconds
        self.idle = False
        self._socket.settimeout(self._patience())
        try:
            self._socket.sendall(data)
        except OSError as error:
            raise self._ended() from error
        items: list[Any] = []
        while True:
            frame = self._receive()
            items += frame.get("items", ())
            self.idle = "error" in frame or "done" in frame
            if "error" in frame:
                raise error_of(frame["error"])
            if "done" in frame:
                return Answer(items, frame["done"])

    def cut(self) -> None:
        """End the question that another thread waits for; the owner interrupts what it does for it."""
        self._cut = True
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Let go of it."""
        self._socket.close()

    def _receive(self) -> Frame:
        length, kind = body_length(self._exactly(HEADER.size), ANSWER_BYTES_MAX)
        return frame_of(self._exactly(length), kind)

    def _exactly(self, count: int) -> bytes:
        data = bytearray(count)
        view, filled = memoryview(data), 0
        while filled < count:
            self._socket.settimeout(self._patience())
            try:
                received = self._socket.recv_into(view[filled:])
            except TimeoutError as error:
                if self._deadline is not None and time.monotonic() >= self._deadline:
                    raise out_of_time() from error
                raise GraphBusy(
                    "the process that owns the graph doesn't answer", hint="see what it does, or stop it"
                ) from error
            except OSError as error:
                raise self._ended() from error
            if received == 0:
                raise self._ended()
            filled += received
        return bytes(data)

    def _patience(self) -> float:
        """Seconds to wait for a byte."""
        if self._deadline is None:
            return SILENCE_SECONDS
        return min(SILENCE_SECONDS, max(_PATIENCE_SECONDS_MIN, self._deadline - time.monotonic()))

    def _ended(self) -> Exception:
        if self._cut:
            return GraphError("the query was cancelled", code="query_cancelled")
        return OwnerGone()


class OwnerView:
    """A run as its owner shows it. Implements `RunView`, but raises OwnerGone where the owner ends.

    Threads may share it, but for `reader`; a question that is asked while another waits gets a connection of its own.

    Attributes:
        process: the id of the owner's process.
        stays: whether the owner means to stay.
    """

    def __init__(
        self, dial: Dial, run: str, bootstrap_servers: str, *, live: bool = False, wait_seconds: float
    ) -> None:
        """Connect.

        Args:
            bootstrap_servers: where this process reads the log, should it be asked to.
            live: whether each question is answered from the newest graph, and not from that of the last `catch_up`.
            wait_seconds: how long the owner may take to fold what is asked for.

        Raises:
            OwnerGone, GraphBusy: as `Connection`.
        """
        self._dial = dial
        self._bootstrap_servers = bootstrap_servers
        self._reader: LogReader | None = None
        self._live = live
        self._wait_ms = int(wait_seconds * 1000)
        self._lock = threading.Lock()
        self._busy: set[Connection] = set()
        self._idle: list[Connection] = [Connection(dial(), run)]
        self._closed = False
        self.run = run
        self.process = int(self._idle[0].greeting["process"])
        self.stays = bool(self._idle[0].greeting.get("stays"))
        self.next_offset = 0

    @property
    def owner(self) -> str:
        """Who holds the graph."""
        return "this process" if self.process == os.getpid() else f"process {self.process}"

    @property
    def graph(self) -> OwnerView:
        """What can be read of the graph."""
        return self

    @property
    def reader(self) -> LogReader:
        """The log, read by this process."""
        if self._reader is None:
            self._reader = LogReader(self._bootstrap_servers, self.run)
        return self._reader

    def catch_up(self, end: int | None = None, *, fold: bool = True) -> None:
        """See `RunView`.

        Args:
            fold: False raises GraphBehind at once where something isn't folded yet.
        """
        request = {"do": "catch_up", "end": end, "fold": fold, "hold": not self._live, "wait_ms": self._wait_ms}
        self.next_offset = int(self._ask(request).done["next_offset"])

    def verdict(self, offset: int) -> Verdict:
        """See `RunView`; waits until it is folded."""
        done = self._ask({"do": "verdict", "offset": offset, "wait_ms": self._wait_ms}).done
        return verdict_of_row(row_of(done["row"]))

    def position(self) -> Position:
        """See `RunView`."""
        return Position(**self._ask(self._steady({"do": "position"})).done)

    def sound(self) -> bool:
        """See `RunView`."""
        return bool(self._ask({"do": "check"}).done["sound"])

    def rebuild(self) -> None:
        """Have the owner make the graph anew from the log."""
        self._ask({"do": "rebuild"})

    def query(
        self, cypher: str, parameters: Mapping[str, Value] | None = None, *, timeout_ms: int | None = None
    ) -> Table:
        """See `GraphView`."""
        request: Frame = {"do": "query", "cypher": cypher, "parameters": dict(parameters or {})}
        within_seconds = None if timeout_ms is None else timeout_ms / 1000 + GRACE_SECONDS
        answer = self._ask(self._steady(request | {"timeout_ms": timeout_ms}), within_seconds)
        return Table(tuple(answer.done["columns"]), [tuple(row) for row in answer.items])

    def nodes(self, keys: Collection[NodeKey]) -> dict[NodeKey, Row]:
        """See `GraphView`."""
        return found_nodes(self._ask(self._steady({"do": "nodes", "keys": [[*key] for key in keys]})).items)

    def edges(self, keys: Collection[EdgesKey]) -> dict[EdgesKey, tuple[EdgeKey, ...]]:
        """See `GraphView`."""
        asked = list(keys)
        sent = [[key.table, key.end, [*key.node]] for key in asked]
        return found_edges(asked, self._ask(self._steady({"do": "edges", "keys": sent})).items)

    def let_go(self) -> None:
        """Ask an owner that doesn't mean to stay to let go of the graph at once; one that stays does nothing."""
        self._ask({"do": "let_go"})

    def cancel(self) -> None:
        """End the questions that are asked through this view now, whatever thread waits for them."""
        with self._lock:
            busy = list(self._busy)
        for connection in busy:
            connection.cut()

    def close(self) -> None:
        """Let go of all connections; questions that other threads still ask end."""
        with self._lock:
            self._closed = True
            idle, busy = list(self._idle), list(self._busy)
            self._idle.clear()
        for connection in busy:  # whoever waits on it closes it: until then, a mere close wouldn't reach the owner
            connection.cut()
        for connection in idle:
            connection.close()
        if self._reader is not None:
            self._reader.close()

    def _steady(self, request: Frame) -> Frame:
        return request if self._live else request | {"as_of": self.next_offset}

    def _ask(self, request: Frame, within_seconds: float | None = None) -> Answer:
        connection = self._taken()
        try:
            return connection.ask(request, within_seconds)
        finally:
            self._given_back(connection)

    def _taken(self) -> Connection:
        with self._lock:
            if self._closed:
                raise OwnerGone
            connection = self._idle.pop() if self._idle else None
            if connection is not None:
                self._busy.add(connection)
                return connection
        connection = Connection(self._dial(), self.run)
        with self._lock:
            self._busy.add(connection)
        return connection

    def _given_back(self, connection: Connection) -> None:
        with self._lock:
            self._busy.discard(connection)
            # Half an answer, which Ctrl-C leaves, is no use to the next question.
            if connection.idle and not self._closed:
                self._idle.append(connection)
                return
        connection.close()


def _check_greeting(greeting: Frame, run: str) -> None:
    if "error" in greeting:
        raise error_of(greeting["error"])
    if greeting.get("forktrail") != PROTOCOL:
        raise GraphBusy(
            f"process {greeting.get('process')} owns the graph and is of another version of Forktrail",
            hint="stop it, or use its version",
        )
    if greeting.get("run") != run:  # a socket's path that was taken over by another run's owner
        raise OwnerGone
