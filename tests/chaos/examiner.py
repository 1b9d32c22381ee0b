"""Opens a graph, or a copy of one, in a process of its own: the engine may end the process that opens a damaged file.

    python -m chaos.examiner ENGINE

Takes one JSON object a line, {"graph": path, "verdicts": path or null}, and answers each with one: next_offset, the
state digest as it was kept and as all rows give it, and the content digest; or, where the graph doesn't open, why. The
verdict on each record is written to the file `verdicts`, a JSON list a line; without one, only next_offset is told.
"""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import orjson

from chaos.children import TESTS_FOLDER
from forktrail_projectors import digest
from forktrail_projectors.content_digest import content_digest
from forktrail_projectors.graph.cypher import CypherGraph
from forktrail_projectors.projector import verdict_of_row
from forktrail_projectors.record import Verdict
from forktrail_projectors.state import NodeKey
from forktrail_schemas.errors import GraphError


@dataclass(frozen=True)
class Examined:
    """What a graph holds.

    Attributes:
        fault: why it can't be told; empty otherwise.
        kept: the state digest that was kept as rows changed.
        recomputed: the one that all rows give.
    """

    fault: str = ""
    next_offset: int = 0
    kept: str = ""
    recomputed: str = ""
    content: str = ""
    verdicts: tuple[Verdict, ...] = ()


class Examiner:
    """Asks the process that opens graphs; where that is ended by one, the next is asked of another."""

    def __init__(self, engine: str) -> None:
        self._engine = engine
        self._process: subprocess.Popen[bytes] | None = None

    def examine(self, graph: Path, folder: Path) -> Examined:
        """Everything about a graph that nobody owns; `folder` takes the verdicts on their way."""
        path = folder / f"{graph.name}.verdicts"
        found = self._ask({"graph": str(graph), "verdicts": str(path)})
        if found.fault:
            return found
        verdicts = tuple(Verdict(*orjson.loads(line)) for line in path.read_bytes().splitlines())
        return replace(found, verdicts=verdicts)

    def next_offset(self, graph: Path) -> Examined:
        """How far a graph has come; one that isn't there is at 0."""
        return self._ask({"graph": str(graph), "verdicts": None}) if graph.exists() else Examined()

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.communicate()
            self._process = None

    def _ask(self, request: dict[str, str | None]) -> Examined:
        if self._process is None:
            command = [sys.executable, "-m", "chaos.examiner", self._engine]
            pipe = subprocess.PIPE
            self._process = subprocess.Popen(command, cwd=TESTS_FOLDER, stdin=pipe, stdout=pipe)
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(orjson.dumps(request) + b"\n")
        process.stdin.flush()
        answer = process.stdout.readline()
        if answer:
            return Examined(**orjson.loads(answer))
        self._process = None
        return Examined(fault=f"opening it ended the process: exit {process.wait()}")


def main() -> None:
    """Examine what is asked for, until stdin ends."""
    for line in sys.stdin.buffer:
        request = orjson.loads(line)
        verdicts = request["verdicts"]
        try:
            graph = CypherGraph.open(Path(request["graph"]), sys.argv[1])
            try:
                found = _examined(graph, Path(verdicts) if verdicts else None)
            finally:
                graph.close()
        except GraphError as error:
            found = {"fault": str(error)}
        print(orjson.dumps(found).decode(), flush=True)


def _examined(graph: CypherGraph, verdicts: Path | None) -> dict[str, object]:
    cursor = graph.cursor()
    if cursor is None or verdicts is None:
        return {"next_offset": cursor.next_offset if cursor else 0}
    rows = list(graph.rows())
    found = [verdict_of_row(row) for key, row in rows if isinstance(key, NodeKey) and key.table == "Event"]
    verdicts.write_bytes(b"".join(orjson.dumps(list(verdict)) + b"\n" for verdict in sorted(found)))
    return {
        "next_offset": cursor.next_offset,
        "kept": digest.state_digest(cursor.accumulator),
        "recomputed": digest.state_digest(digest.recompute(rows)),
        "content": content_digest(rows),
    }


if __name__ == "__main__":
    main()
