"""An owner answers over its socket what its graph would answer itself, to many at once, whatever one of them does."""

from __future__ import annotations

import json
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, cast
from unittest.mock import Mock

import pytest

from forktrail_projectors.graph.cypher import CypherGraph, Running
from forktrail_projectors.graph.protocol import Table
from forktrail_projectors.owner import client, server
from forktrail_projectors.owner.client import Connection, OwnerView
from forktrail_projectors.owner.frames import HEADER, REQUEST_BYTES_MAX, Frame, frame_bytes
from forktrail_projectors.owner.messages import OwnerGone
from forktrail_projectors.owner.server import Server
from forktrail_projectors.state import EdgesKey, NodeKey, Value
from forktrail_schemas import events
from forktrail_schemas.errors import GraphBehind, GraphBusy, GraphError, InvalidInput
from support.served import WAIT_S, Served, serving
from support.story import Story

COUNT = "MATCH (e:Event) RETURN count(*)"


@pytest.fixture
def told() -> Story:
    story = Story()
    story.open()
    story.register("root", enables=["a"])
    story.settle(story.report("root"))
    return story


@pytest.fixture
def served(told: Story, tmp_path: Path) -> Iterator[Served]:
    with serving(told, tmp_path) as served:
        yield served


def late(served: Served) -> None:
    """Fold one more event."""
    served.fold(served.story.record(served.story.event(events.GoalSet, text="more")))


def read_frame(sock: socket.socket) -> Any:
    with sock.makefile("rb") as file:
        length, _ = HEADER.unpack(file.read(HEADER.size))
        return json.loads(file.read(length))


def test_every_row_position_and_verdict_is_the_graphs_own(served: Served) -> None:
    local, view = served.projection, served.view()
    view.catch_up()
    nodes = [key for key, _ in local.graph.rows() if isinstance(key, NodeKey)]
    edges = [EdgesKey("ENABLES", "source", key) for key in nodes if key.table == "Finding"]
    edges += [EdgesKey("CAUSED", "target", key) for key in nodes if key.table == "Event"]
    missing = [NodeKey("Finding", "none"), NodeKey("Event", 10**6)]
    assert view.graph.nodes([*nodes, *missing]) == local.graph.nodes(nodes)
    assert view.graph.edges(edges) == local.graph.edges(edges)
    assert any(view.graph.edges(edges).values())
    assert view.position() == local.position()
    assert view.next_offset == local.next_offset == len(served.story.records)
    assert [view.verdict(n) for n in range(view.next_offset)] == [local.verdict(n) for n in range(view.next_offset)]
    assert view.sound()


@pytest.mark.parametrize(
    ("cypher", "parameters"),
    [
        ("MATCH (k:`Key`) RETURN k.id, k.roles, k.revoked ORDER BY k.id", {}),
        ("MATCH (f:Finding)-[e:ENABLES]->(c:Capability) RETURN f, e, c", {}),
        ("MATCH p = (f:Finding)-[:ENABLES]->(:Capability) RETURN p", {}),
        ("MATCH (e:Event) WHERE e.offset = $n RETURN e.type, $t AS t, $l AS l", {"n": 1, "t": "é\n\x01", "l": ("a",)}),
        ("RETURN null AS nothing, true AS yes, -1.5 AS number, [] AS list, {a: 1} AS map", {}),
        ("MATCH (e:Event) WHERE e.offset < 0 RETURN e.id AS id", {}),
        ("UNWIND [9223372036854775807, 9223372036854775807] AS n RETURN sum(n) AS large", {}),
    ],
)
def test_an_answer_has_the_columns_and_values_that_it_has_without_a_socket(
    served: Served, cypher: str, parameters: Mapping[str, Value]
) -> None:
    assert served.view(live=True).query(cypher, parameters) == served.projection.graph.query(cypher, parameters)


def test_a_hundred_thousand_rows_come_in_order(served: Served) -> None:
    table = served.view(live=True).query("UNWIND range(1, 100000) AS n RETURN n, n * 2 AS twice, 'text' AS text")
    assert table.columns == ("n", "twice", "text")
    assert list(table.rows) == [(n, 2 * n, "text") for n in range(1, 100_001)]


def test_what_is_wrong_is_the_same_error_as_without_a_socket(served: Served) -> None:
    view = served.view(live=True)
    for cypher in ("CREATE (:Asset {id: 'x'})", "MATCH (n:None) RETURN n", "RETURN $missing", "COPY Asset FROM 'x'"):
        with pytest.raises(InvalidInput) as there:
            view.query(cypher)
        with pytest.raises(InvalidInput) as here:
            served.projection.graph.query(cypher)
        assert str(there.value) == str(here.value)
    assert view.query("RETURN 1").rows == [(1,)]


def test_a_query_that_takes_too_long_is_stopped(served: Served) -> None:
    nodes = ", ".join(f"({name}:Event)" for name in "abcdefgh")
    product = " * ".join(f"{name}.offset" for name in "abcdefgh")
    slow = f"MATCH {nodes} RETURN sum({product} % 7)"
    with pytest.raises(GraphError) as raised:
        served.view(live=True).query(slow, timeout_ms=100)
    assert raised.value.code == "query_timeout"


def test_a_verdict_is_waited_for_until_it_is_folded(served: Served) -> None:
    offset = len(served.story.records)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(served.view().verdict, offset)
        late(served)
        assert waiting.result(WAIT_S) == served.projection.verdict(offset)


def test_what_is_not_folded_in_time_is_behind(served: Served) -> None:
    view, offset = served.view(wait_seconds=0.05), len(served.story.records)
    with pytest.raises(GraphBehind, match=f"at offset {offset} of {offset + 1}"):
        view.verdict(offset)
    with pytest.raises(GraphBehind):
        view.catch_up(offset + 1)
    served.story.records.append(served.story.record(served.story.event(events.GoalSet, text="not folded")))
    with pytest.raises(GraphBehind, match="synchronization is in progress"):
        served.view().catch_up(fold=False)


def test_a_steady_view_shows_one_state_and_the_fold_waits_for_it(served: Served) -> None:
    view = served.view()
    view.catch_up()
    before = view.query(COUNT).rows
    folding = threading.Thread(target=late, args=(served,), daemon=True)
    folding.start()
    for _ in range(5):
        assert view.query(COUNT).rows == before
        assert view.position().next_offset == view.next_offset
    assert folding.is_alive()
    view.catch_up()
    folding.join(WAIT_S)
    assert not folding.is_alive()
    view.catch_up()
    assert view.query(COUNT).rows == [(len(served.story.records),)]


def test_a_steady_view_that_lost_its_hold_says_so_rather_than_mixing_two_states(served: Served) -> None:
    view = served.view()
    view.catch_up()
    view.query(COUNT)
    served.owned.gate.clear()
    assert view.query(COUNT).rows == [(view.next_offset,)]  # nothing was folded meanwhile
    served.owned.gate.clear()
    late(served)
    for ask in (lambda: view.query(COUNT), lambda: view.nodes([NodeKey("Event", 0)]), lambda: view.position()):
        with pytest.raises(GraphBusy) as raised:
            ask()
        assert raised.value.code == "graph_moved"
    view.catch_up()
    assert view.query(COUNT).rows == [(len(served.story.records),)]


def test_a_view_that_is_closed_holds_nothing_up(served: Served) -> None:
    view = served.view()
    view.catch_up()
    view.close()
    late(served)
    assert served.projection.next_offset == len(served.story.records)


def test_a_live_view_holds_nothing_up(served: Served) -> None:
    view = served.view(live=True)
    view.catch_up()
    late(served)
    assert view.query(COUNT).rows == [(len(served.story.records),)]


def test_threads_that_share_a_view_are_answered_side_by_side(served: Served) -> None:
    view = served.view(live=True)
    with ThreadPoolExecutor(20) as pool:
        answers = list(pool.map(lambda n: view.query("RETURN $n AS n", {"n": n}).rows, range(200)))
    assert answers == [[(n,)] for n in range(200)]


def test_a_client_too_many_is_told_so_and_a_place_that_is_left_can_be_taken(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "CLIENTS_MAX", 3)
    connections = [served.connect() for _ in range(3)]
    with pytest.raises(GraphBusy, match="3 others"):
        served.connect()
    connections[0].close()
    deadline = time.monotonic() + WAIT_S
    while True:
        try:
            served.connect()
            return
        except GraphBusy:
            assert time.monotonic() < deadline


class SlowGraph:
    """A graph whose query takes until somebody ends it."""

    def __init__(self) -> None:
        self.began, self.ended = threading.Event(), threading.Event()

    def query(self, cypher: str, parameters: object, *, timeout_ms: int | None, running: Running) -> Table:
        with running(self.ended.set):
            self.began.set()
            if self.ended.wait(WAIT_S):
                raise GraphError("interrupted", code="query_timeout")
            return Table((), [])


@pytest.fixture
def slow(served: Served) -> SlowGraph:
    graph = SlowGraph()
    served.projection.graph = cast(CypherGraph, graph)
    return graph


def asked_in_a_thread(view: OwnerView) -> Any:
    return ThreadPoolExecutor(1).submit(view.query, "anything")


@pytest.mark.parametrize("end", [OwnerView.cancel, OwnerView.close])
def test_a_question_that_its_client_ends_is_interrupted_in_the_owner(
    served: Served, slow: SlowGraph, end: Callable[[OwnerView], None]
) -> None:
    view = served.view(live=True)
    answer = asked_in_a_thread(view)
    assert slow.began.wait(WAIT_S)
    end(view)
    with pytest.raises(GraphError) as raised:
        answer.result(WAIT_S)
    assert raised.value.code == "query_cancelled"
    assert slow.ended.wait(WAIT_S)


def test_a_view_goes_on_with_another_connection_after_a_cancelled_question(served: Served, slow: SlowGraph) -> None:
    view = served.view(live=True)
    answer = asked_in_a_thread(view)
    assert slow.began.wait(WAIT_S)
    view.cancel()
    assert isinstance(answer.exception(WAIT_S), GraphError)
    view.catch_up()


class DeafGraph(SlowGraph):
    """A graph whose query takes its time, whatever it is told."""

    def query(self, cypher: str, parameters: object, *, timeout_ms: int | None, running: Running) -> Table:
        with running(lambda: None):
            self.began.set()
            self.ended.wait(WAIT_S)
            return Table((), [])


def test_a_client_gives_up_at_its_deadline_whatever_the_owner_does(served: Served) -> None:
    deaf = DeafGraph()
    whole, served.projection.graph = served.projection.graph, cast(CypherGraph, deaf)
    view = served.view(live=True)
    began = time.monotonic()
    with pytest.raises(GraphError) as raised:
        view.query("anything", timeout_ms=200)
    assert raised.value.code == "query_timeout"
    assert 0.2 < time.monotonic() - began < 2
    served.projection.graph = whole
    assert view.query(COUNT).rows == [(len(served.story.records),)]  # on another connection: this one is hung up
    deaf.ended.set()


def test_an_owner_is_told_that_another_wants_the_graph(served: Served) -> None:
    view = served.view(live=True)
    view.let_go()
    assert served.owned.let_go.is_set()
    assert view.query(COUNT).rows == [(len(served.story.records),)]  # whether it does is its own affair


def test_half_an_answer_that_ctrl_c_left_is_not_taken_for_the_next(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    view = served.view(live=True)
    with monkeypatch.context() as patch:
        patch.setattr(client, "frame_of", Mock(side_effect=[{"items": [[1]]}, KeyboardInterrupt]))
        with pytest.raises(KeyboardInterrupt):
            view.query("UNWIND range(1, 50000) AS n RETURN n")
    assert view.query("RETURN 2 AS two").rows == [(2,)]


def test_a_client_that_dies_has_its_query_interrupted(served: Served, slow: SlowGraph) -> None:
    with served.raw() as sock:
        read_frame(sock)
        sock.sendall(frame_bytes({"do": "query", "cypher": "x"}, 1_000))
        assert slow.began.wait(WAIT_S)
    assert slow.ended.wait(WAIT_S)


def test_while_the_owner_works_it_says_so(served: Served, slow: SlowGraph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "STILL_AT_IT_SECONDS", 0.1)
    with served.raw() as sock:
        sock.settimeout(WAIT_S)
        assert read_frame(sock)["run"] == served.story.run
        sock.sendall(frame_bytes({"do": "query", "cypher": "x"}, 1_000))
        assert [read_frame(sock) for _ in range(3)] == [{}, {}, {}]


def test_an_owner_that_stops_leaves_its_clients_to_the_next(served: Served, slow: SlowGraph) -> None:
    view = served.view(live=True)
    answer = asked_in_a_thread(view)
    assert slow.began.wait(WAIT_S)
    served.owned.closed(for_good=True)
    served.server.close()
    with pytest.raises(OwnerGone):
        answer.result(WAIT_S)
    assert slow.ended.wait(WAIT_S)


def test_a_failure_of_the_fold_is_what_everybody_is_told(served: Served) -> None:
    served.owned.closed(GraphBusy("the disk is full"))
    view = served.view()
    for ask in (view.catch_up, lambda: view.query("RETURN 1"), lambda: view.verdict(0), lambda: view.verdict(10**6)):
        with pytest.raises(GraphBusy, match="the disk is full"):
            ask()


def test_while_the_graph_is_opened_anew_the_patient_wait_and_the_others_are_told(served: Served) -> None:
    served.owned.closed()
    with pytest.raises(GraphBusy, match="opened anew"):
        served.view(live=True).query("RETURN 1")
    with pytest.raises(GraphBusy, match="opened anew"):
        served.view(wait_seconds=0.01).catch_up()
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(served.view().catch_up)
        served.owned.opened(served.projection)
        waiting.result(WAIT_S)


def test_a_client_that_does_not_read_holds_up_neither_others_nor_the_fold(served: Served) -> None:
    with served.raw() as lazy:
        rows = (
            "UNWIND range(1, 300000) AS n RETURN n, 'a text of some length, so that no buffer takes them all' AS text"
        )
        lazy.sendall(frame_bytes({"do": "query", "cypher": rows}, 1_000))
        for _ in range(5):
            late(served)
            view = served.view()
            view.catch_up()
            assert view.query(COUNT).rows == [(len(served.story.records),)]
            view.close()


def test_a_client_that_never_reads_is_left(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "UNREAD_SECONDS", 0.1)
    monkeypatch.setattr(server, "CLIENTS_MAX", 1)
    with served.raw() as lazy:
        rows = (
            "UNWIND range(1, 300000) AS n RETURN n, 'a text of some length, so that no buffer takes them all' AS text"
        )
        lazy.sendall(frame_bytes({"do": "query", "cypher": rows}, 1_000))
        deadline = time.monotonic() + WAIT_S
        while True:
            try:
                served.connect()
                return
            except GraphBusy:
                assert time.monotonic() < deadline


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"GET / HTTP/1.1\r\n", "frame_too_large"),
        (struct.pack(">IB", REQUEST_BYTES_MAX + 1, 0), "frame_too_large"),
        (struct.pack(">IB", 2, 9) + b"{}", "bad_frame"),
        (struct.pack(">IB", 3, 0) + b"no!", "bad_frame"),
        (struct.pack(">IB", 2, 0) + b"[]", "bad_frame"),
    ],
)
def test_what_is_no_frame_is_said_and_ends_the_connection(served: Served, data: bytes, code: str) -> None:
    with served.raw() as sock:
        sock.settimeout(WAIT_S)
        read_frame(sock)
        sock.sendall(data)
        assert read_frame(sock)["error"]["code"] == code
        assert sock.recv(1) == b""


@pytest.mark.parametrize(
    "request_frame",
    [
        {},
        {"do": "format the disk"},
        {"do": "nodes"},
        {"do": "nodes", "keys": [["Event"]]},
        {"do": "nodes", "keys": [["Event", True]]},
        {"do": "nodes", "keys": [["Event", None]]},
        {"do": "nodes", "keys": "Event"},
        {"do": "nodes", "keys": [["NoTable", 1]]},
        {"do": "edges", "keys": [["CAUSED", "middle", ["Event", 1]]]},
        {"do": "query"},
        {"do": "query", "cypher": 1},
        {"do": "query", "cypher": "RETURN 1", "parameters": [1]},
        {"do": "query", "cypher": "RETURN $a", "parameters": {"a": {}}},
        {"do": "query", "cypher": "RETURN $a", "parameters": {"a": [1]}},
        {"do": "query", "cypher": "RETURN 1", "timeout_ms": "1"},
        {"do": "query", "cypher": "RETURN 1", "as_of": -1},
        {"do": "verdict"},
        {"do": "verdict", "offset": 0},
        {"do": "verdict", "offset": -1, "wait_ms": 0},
        {"do": "catch_up", "wait_ms": 0.5},
        {"do": "catch_up", "end": "x", "wait_ms": 0},
    ],
    ids=str,
)
def test_a_question_that_makes_no_sense_is_an_error_and_the_next_is_answered(
    served: Served, request_frame: Frame
) -> None:
    connection = served.connect()
    with pytest.raises((InvalidInput, GraphError)):
        connection.ask(request_frame)
    assert connection.idle
    assert connection.ask({"do": "query", "cypher": "RETURN 1 AS one"}).items == [[1]]


def greeted(greeting: Frame | None, run: str = "story") -> Connection:
    """A connection to something that greets so, or says nothing."""
    here, there = socket.socketpair()
    if greeting is not None:
        there.sendall(frame_bytes(greeting, 1_000))
    try:
        return Connection(here, run)
    finally:
        there.close() if greeting is not None else None


def test_an_owner_of_another_version_or_run_is_recognised() -> None:
    with pytest.raises(GraphBusy, match=r"process 7 .* another version"):
        greeted({"forktrail": 99, "run": "story", "process": 7})
    with pytest.raises(OwnerGone):
        greeted({"forktrail": 1, "run": "another", "process": 7})


def test_an_owner_that_hangs_is_not_waited_for_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "SILENCE_SECONDS", 0.05)
    with pytest.raises(GraphBusy, match="doesn't answer"):
        greeted(None)


def test_a_server_that_closes_just_as_an_answer_left_answers_no_more(served: Served) -> None:
    for _ in range(40):
        server = Server(served.owned, None)
        view = OwnerView(server.dial, served.story.run, "", live=True, wait_seconds=WAIT_S)
        view.query("RETURN 1")
        server.close()
        with pytest.raises(OwnerGone):
            view.query("RETURN 1")


def test_this_process_can_ask_itself_without_a_path(served: Served) -> None:
    view = OwnerView(served.server.dial, served.story.run, "", live=True, wait_seconds=WAIT_S)
    assert view.owner == "this process"
    assert view.query("RETURN 1").rows == [(1,)]
    served.server.close()
    with pytest.raises(OwnerGone):
        view.query("RETURN 1")
