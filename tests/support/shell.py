"""A shell on a story's graph, without a broker or a terminal: its source, and a face that remembers what it is told."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from forktrail_lab.shell.answer import answer_page
from forktrail_lab.shell.asking import Answer
from forktrail_lab.shell.named import NamedQueries
from forktrail_lab.shell.preferences import Preferences
from forktrail_lab.shell.session import Session
from forktrail_lab.shell.source import Standing
from forktrail_lab.shell.table import Page
from forktrail_projectors.graph.cypher import CypherGraph
from forktrail_projectors.graph.protocol import Table
from forktrail_projectors.state import Value
from forktrail_schemas.errors import ForktrailError, GraphError
from support.rows import ENGINE
from support.story import Story


@dataclass
class StorySource:
    """A graph in memory that is folded event by event.

    Attributes:
        asked: every statement that came through, as it came.
        fails: errors to raise before the graph is asked, one a question.
        hangs: whether a question waits until it is cancelled.
    """

    graph: CypherGraph
    run: str = "story"
    behind: int = 0
    asked: list[str] = field(default_factory=list)
    fails: list[ForktrailError] = field(default_factory=list)
    hangs: bool = False
    cancelled: threading.Event = field(default_factory=threading.Event)

    def query(self, cypher: str, parameters: Mapping[str, Value], timeout_ms: int | None) -> Table:
        """Answer from the graph."""
        self.asked.append(cypher)
        if self.fails:
            raise self.fails.pop(0)
        if self.hangs:
            assert self.cancelled.wait(20)
            raise GraphError("the query was cancelled", code="query_cancelled")
        return self.graph.query(cypher, parameters, timeout_ms=timeout_ms)

    def standing(self) -> Standing:
        """Where the graph stands."""
        if self.fails:
            raise self.fails.pop(0)
        cursor = self.graph.cursor()
        next_offset = 0 if cursor is None else cursor.next_offset
        return Standing(next_offset, next_offset + self.behind, "nobody")

    def cancel(self) -> None:
        """End what hangs."""
        self.cancelled.set()

    def close(self) -> None:
        """Release the graph."""
        self.graph.close()


@dataclass
class Listener:
    """A face that remembers."""

    interactive: bool = True
    screen: tuple[int, int] = (100, 30)
    answers: list[Answer] = field(default_factory=list)
    pages: list[Page] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    failed: list[list[str]] = field(default_factory=list)
    shown: list[str] = field(default_factory=list)
    redraws: list[tuple[Page, str]] = field(default_factory=list)

    def size(self) -> tuple[int, int]:
        """The screen's."""
        return self.screen

    def answer(self, answer: Answer) -> None:
        """Remember it."""
        self.answers.append(answer)

    def table(self, table: Table, below: Sequence[str] = ()) -> None:
        """Remember it as a screen shows it."""
        rows = answer_page(table, self.screen[0]) if table.rows else Page((), ("none",))
        self.pages.append(Page(rows.head, [*rows.body, *(["", *below] if below else [])]))

    def page(self, page: Page) -> None:
        """Remember it."""
        self.pages.append(page)

    def lines(self, lines: Sequence[str]) -> None:
        """Remember them."""
        self.shown.extend(lines)

    def say(self, line: str) -> None:
        """Remember it."""
        self.said.append(line)

    def fail(self, lines: Sequence[str]) -> None:
        """Remember them."""
        self.failed.append(list(lines))

    def interrupted(self, told: str = "") -> None:
        """Remember what was told."""
        self.said.append(told)

    @contextmanager
    def redrawn(self) -> Iterator[None]:
        """Nothing to prepare."""
        yield

    def redraw(self, page: Page, footer: str) -> None:
        """Remember it."""
        self.redraws.append((page, footer))

    @property
    def rows(self) -> list[tuple[object, ...]]:
        """The rows of the last answer."""
        return list(self.answers[-1].table.rows)


@dataclass
class Shell:
    """A session with what stands around it."""

    session: Session
    source: StorySource
    face: Listener
    story: Story


def story_shell(folder: Path, *, opened: bool = True) -> Shell:
    """A shell on a story that has just been opened."""
    graph = CypherGraph.in_memory(ENGINE)
    story = Story(graph=graph)
    if opened:
        story.open()
    source, face = StorySource(graph), Listener()
    session = Session(source, face, NamedQueries(folder / "queries.json"), Preferences())
    return Shell(session, source, face, story)
