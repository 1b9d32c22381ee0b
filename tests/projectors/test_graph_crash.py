"""A graph whose process is killed at any moment opens with whole batches, or says that it doesn't open.

SIGKILL leaves the page cache, so this is no test of power loss.
"""

from __future__ import annotations

import os
import random
import select
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from forktrail_projectors.graph import cypher
from forktrail_projectors.graph.cypher import CypherGraph
from forktrail_projectors.graph.declared_tables import BUILT_IN
from forktrail_projectors.graph.engine import database_files
from forktrail_projectors.graph.memory import MemoryGraph
from forktrail_projectors.graph.protocol import Cursor, Graph
from forktrail_projectors.state import Changes, NodeKey, Value
from forktrail_schemas.errors import GraphUnavailable

ENGINE = os.environ.get("FORKTRAIL_GRAPH_ENGINE", "ladybug")
SEED = int(os.environ.get("FORKTRAIL_TEST_SEED") or random.randrange(2**32))
KILLS = 8
EVENTS_PER_BATCH = 20


def batch(graph: Graph, first: int) -> tuple[Changes, Cursor]:
    """The batch that follows offset `first`: events, a case, relations, and a change of the batch before."""
    made = Changes()

    def put(table: str, key: str | int, **values: Value) -> NodeKey:
        node = NodeKey(table, key)
        before = graph.nodes([node]).get(node)
        blank: dict[str, Value] = dict.fromkeys(BUILT_IN.nodes[table].columns)
        made.put_node(node, before, {**(before or blank), BUILT_IN.nodes[table].key: key, **values})
        return node

    case = put("Case", f"case-{first}", status="open", depth=first)
    for offset in range(first, first + EVENTS_PER_BATCH):
        event = put("Event", offset, id=f"event-{offset}", type="T" * (offset % 700))
        made.put_edge("PRODUCED", event, case, {})
        if offset:
            made.put_edge("CAUSED", NodeKey("Event", offset - 1), event, {})
    if first:
        put("Case", f"case-{first - EVENTS_PER_BATCH}", status="closed", changed_offset=first)
    next_offset = first + EVENTS_PER_BATCH
    return made, Cursor("topic", next_offset, f"{next_offset:064x}", (f"{first:064x}",), "0", 1)


def write_until_killed(path: Path, seed: int) -> None:
    """The child: commits batches, now and then runs CHECKPOINT or closes, and tells of each commit."""
    dice = random.Random(seed)
    graph = CypherGraph.open(path, ENGINE)
    while True:
        cursor = graph.cursor()
        graph.commit(*batch(graph, cursor.next_offset if cursor else 0))
        committed = graph.cursor()
        print(committed.next_offset if committed else 0, flush=True)
        if dice.random() < 0.15:
            graph.checkpoint()
        elif dice.random() < 0.05:
            graph.close()
            graph = CypherGraph.open(path, ENGINE)


def kill_at_some_moment(path: Path, dice: random.Random) -> int:
    """Run a child for a random number of commits and a random time more; returns what it had told of."""
    command = [sys.executable, __file__, str(path), str(dice.randrange(2**32))]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        told = 0
        for _ in range(dice.randrange(25)):
            line = child.stdout.readline()
            assert line, "the child failed; its error is above"
            told = int(line)
        with select.epoll() as nothing:  # waits, and nothing wakes it
            nothing.poll(dice.random() * (0.02 if told else 0.3))
        child.send_signal(signal.SIGKILL)
        return max([told, *(int(line) for line in child.stdout.read().splitlines(keepends=True) if line[-1] == "\n")])


def expected_at(next_offset: int) -> MemoryGraph:
    graph = MemoryGraph()
    for first in range(0, next_offset, EVENTS_PER_BATCH):
        graph.commit(*batch(graph, first))
    return graph


def test_after_a_kill_the_graph_holds_whole_batches_or_does_not_open(tmp_path: Path) -> None:
    dice = random.Random(SEED)
    path = tmp_path / "run.graph"
    opened = unavailable = 0
    for kill in range(KILLS):
        told = kill_at_some_moment(path, dice)
        case = f"seed {SEED}, kill {kill}"
        try:
            graph = CypherGraph.open(path, ENGINE)
        except GraphUnavailable as error:
            print(f"{case}: {error}")
            unavailable += 1
            for file in database_files(path):
                file.unlink()
            continue
        opened += 1
        cursor = graph.cursor()
        assert (cursor.next_offset if cursor else 0) >= told, case
        expected = expected_at(cursor.next_offset if cursor else 0)
        assert cursor == expected.cursor(), case
        assert dict(graph.rows()) == dict(expected.rows()), case
        graph.close()
    print(f"seed {SEED}: {opened} opened, {unavailable} did not")
    assert opened


def test_a_long_log_that_a_kill_left_goes_into_the_file_at_the_next_opening(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    live = CypherGraph.open(tmp_path / "run.graph", ENGINE)
    for first in range(0, 5 * EVENTS_PER_BATCH, EVENTS_PER_BATCH):
        live.commit(*batch(live, first))
    killed = tmp_path / "killed"
    killed.mkdir()
    for file in database_files(tmp_path / "run.graph"):  # between commits, they are what SIGKILL would leave
        shutil.copyfile(file, killed / file.name)
    live.close()
    path, log = killed / "run.graph", killed / "run.graph.wal"
    size = log.stat().st_size
    for most, is_kept in ((size, True), (size - 1, False)):
        monkeypatch.setattr(cypher, "LOG_BYTES_REPLAYED_MAX", most)
        graph = CypherGraph.open(path, ENGINE)
        assert log.exists() == is_kept
        assert dict(graph.rows()) == dict(expected_at(5 * EVENTS_PER_BATCH).rows())
        graph.close()


if __name__ == "__main__":
    write_until_killed(Path(sys.argv[1]), int(sys.argv[2]))
