"""A query that is stopped ends, or is left to itself where the engine does not listen; nobody waits for it longer."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from forktrail_projectors.graph.cypher import CypherGraph
from forktrail_projectors.graph.protocol import Table
from forktrail_projectors.graph.session import END_SECONDS
from forktrail_schemas.errors import GraphError, GraphHung
from support.rows import ENGINE
from support.slow import DEAF, LISTENS
from support.workbench import wait_until

# Rows that the engine makes in a tenth of the time that it takes to fetch them.
MANY_ROWS = "UNWIND range(1, 3000000) AS n RETURN n"
WAIT_S = 30.0


@pytest.fixture
def graph(tmp_path: Path) -> Iterator[CypherGraph]:
    graph = CypherGraph.open(tmp_path / "run.graph", ENGINE)
    yield graph
    graph.close()


class Asked:
    """A query that another thread waits for."""

    def __init__(self, graph: CypherGraph, cypher: str) -> None:
        self._began = threading.Event()
        self._interrupt: Callable[[], None] | None = None
        self._pool = ThreadPoolExecutor(1)
        self.answer: Future[Table] = self._pool.submit(graph.query, cypher, running=self._running)
        assert self._began.wait(WAIT_S)
        time.sleep(0.1)  # so that it is in the engine by now

    def interrupt(self) -> None:
        """Stop it."""
        assert self._interrupt is not None
        self._interrupt()

    @contextmanager
    def _running(self, interrupt: Callable[[], None]) -> Iterator[None]:
        self._interrupt = interrupt
        self._began.set()
        yield


def code_of(answer: Future[Table]) -> str:
    """The code of the error that it ends with."""
    error = answer.exception(WAIT_S)
    assert isinstance(error, GraphError)
    return error.code


@pytest.mark.skipif(ENGINE == "kuzu", reason="kuzu takes two seconds to hear of it")
def test_a_close_ends_a_query_that_listens(graph: CypherGraph) -> None:
    asked = Asked(graph, LISTENS)
    began = time.monotonic()
    graph.close()
    assert time.monotonic() - began < END_SECONDS
    assert code_of(asked.answer) == "query_timeout"


def test_a_close_does_not_wait_for_a_query_that_does_not_listen(graph: CypherGraph, tmp_path: Path) -> None:
    asked = Asked(graph, DEAF.format(size=50_000))
    began = time.monotonic()
    with pytest.raises(GraphHung):
        graph.close()
    assert time.monotonic() - began < 3 * END_SECONDS
    assert not asked.answer.done()
    with pytest.raises(GraphError, match="already open"):
        CypherGraph.open(tmp_path / "run.graph", ENGINE)
    wait_until(asked.answer.done)
    graph.close()
    CypherGraph.open(tmp_path / "run.graph", ENGINE).close()


def test_the_fetching_of_rows_ends_at_the_deadline_too(graph: CypherGraph) -> None:
    began = time.monotonic()
    graph.query(MANY_ROWS)
    whole = time.monotonic() - began
    began = time.monotonic()
    with pytest.raises(GraphError) as raised:
        graph.query(MANY_ROWS, timeout_ms=int(whole * 400))
    assert raised.value.code == "query_timeout"
    assert time.monotonic() - began < 0.8 * whole


def test_the_fetching_of_rows_can_be_interrupted(graph: CypherGraph) -> None:
    asked = Asked(graph, MANY_ROWS)
    while not asked.answer.done():
        asked.interrupt()
        time.sleep(0.02)
    assert code_of(asked.answer) == "query_timeout"
    assert graph.query("RETURN 1 AS one").rows == [(1,)]
