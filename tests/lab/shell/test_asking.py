"""Bounds on rows, and Ctrl-C. No broker."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from forktrail_lab.shell.asking import Cancelled, Question, ask, bounded, interruptible
from forktrail_lab.shell.dispatch import execute
from forktrail_lab.shell.tokens import code
from support.shell import Shell


@pytest.mark.parametrize(
    "cypher",
    [
        "MATCH (e:Event) RETURN e.offset",
        "MATCH (e:Event) RETURN e.offset ORDER BY e.offset SKIP 2",
        "MATCH (b:Budget) RETURN b.limit",
        "MATCH (b:Budget) RETURN b.id AS limit",
        "MATCH (e:Event) WITH e LIMIT 3 RETURN e.offset",
        "MATCH (e:Event) WHERE EXISTS { MATCH (e)-[:CAUSED]->(x:Event) } RETURN e.offset",
        "UNWIND [1, 2] AS x RETURN x",
        "CALL show_tables() RETURN *",
    ],
)
def test_a_bound_is_put_where_there_is_none(cypher: str, shell: Shell) -> None:
    assert bounded(cypher, 7) == f"{cypher} LIMIT 7"
    whole = shell.source.graph.query(cypher).rows
    assert len(shell.source.graph.query(bounded(cypher, 1)).rows) == min(1, len(whole))


@pytest.mark.parametrize(
    "cypher",
    [
        "MATCH (e:Event) RETURN e.offset LIMIT 3",
        "MATCH (e:Event) RETURN e.offset ORDER BY e.offset limit $n",
        "RETURN 1 AS x UNION RETURN 2 AS x",
        "EXPLAIN MATCH (e:Event) RETURN e.offset",
        "PROFILE MATCH (e:Event) RETURN e.offset",
        "MATCH (e:Event)",
        "CREATE (:Asset {id: 'x'})",
    ],
)
def test_none_is_put_where_it_would_change_the_answer_or_is_one_already(cypher: str) -> None:
    assert bounded(cypher, 7) == cypher


def test_rows_beyond_the_limit_are_said_to_be_there(shell: Shell) -> None:
    execute(shell.session, ":limit 10")
    execute(shell.session, "UNWIND range(1, 11) AS i RETURN i")
    assert (len(shell.face.rows), shell.face.answers[-1].more) == (10, True)
    execute(shell.session, "UNWIND range(1, 10) AS i RETURN i")
    assert (len(shell.face.rows), shell.face.answers[-1].more) == (10, False)
    execute(shell.session, "UNWIND range(1, 11) AS i RETURN i LIMIT 11")
    assert (len(shell.face.rows), shell.face.answers[-1].more) == (10, True)
    execute(shell.session, "UNWIND range(1, 11) AS i RETURN i UNION ALL RETURN 0 AS i")
    assert (len(shell.face.rows), shell.face.answers[-1].more) == (10, True)
    execute(shell.session, ":limit off")
    execute(shell.session, "UNWIND range(1, 11) AS i RETURN i")
    assert (len(shell.face.rows), shell.face.answers[-1].more) == (11, False)
    assert "LIMIT" not in [token.word for token in code(shell.source.asked[-1])]


def test_ctrl_c_ends_a_question_at_once_and_the_shell_goes_on(shell: Shell, ctrl_c: Callable[[], None]) -> None:
    shell.source.hangs = True
    ctrl_c()
    began = time.monotonic()
    assert not execute(shell.session, "RETURN 1")
    assert time.monotonic() - began < 5
    assert shell.source.cancelled.is_set()
    assert shell.face.said == ["cancelled"]
    shell.source.hangs = False
    assert execute(shell.session, "RETURN 1")


def test_ctrl_c_does_not_wait_for_work_that_will_not_end(ctrl_c: Callable[[], None]) -> None:
    forever = threading.Event()
    ctrl_c()
    began = time.monotonic()
    with pytest.raises(Cancelled):
        interruptible(lambda: forever.wait(30), lambda: None)
    assert time.monotonic() - began < 5
    forever.set()


def test_in_a_script_ctrl_c_ends_the_script(shell: Shell, ctrl_c: Callable[[], None]) -> None:
    shell.face.interactive = False
    shell.source.hangs = True
    ctrl_c()
    with pytest.raises(KeyboardInterrupt):
        execute(shell.session, "RETURN 1; RETURN 2")


def test_the_time_a_question_takes_is_measured_and_its_error_kept(shell: Shell) -> None:
    answer = ask(shell.source, Question("RETURN 1 AS one", {}))
    assert (answer.table.columns, answer.table.rows) == (("one",), [(1,)])
    assert answer.milliseconds > 0
    with pytest.raises(ZeroDivisionError):
        interruptible(lambda: 1 // 0, lambda: None)
