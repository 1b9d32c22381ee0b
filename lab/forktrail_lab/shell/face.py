"""Where a shell speaks: answers, pages, notes and errors, on a screen or into a pipe."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

from forktrail_lab.console.output import Format, note, print_lines, print_rows, printable
from forktrail_lab.console.widths import wrapped
from forktrail_lab.shell.answer import answer_page, count_line
from forktrail_lab.shell.asking import Answer
from forktrail_lab.shell.export import require_names
from forktrail_lab.shell.faults import fitted
from forktrail_lab.shell.pager import environment, external_pager, page_inside, page_outside
from forktrail_lab.shell.preferences import Preferences
from forktrail_lab.shell.table import Page
from forktrail_projectors.graph.protocol import Table

MORE_HINT = "`:limit N` brings more, `:export FILE` writes all"
# What an answer must leave free to go without the pager: its count, and the prompt.
_LINES_KEPT = 2
_BOLD, _RED, _DIM, _PLAIN = "\x1b[1m", "\x1b[31m", "\x1b[2m", "\x1b[0m"


class Face(Protocol):
    """A shell's side to its user.

    Attributes:
        interactive: whether somebody watches and can press Ctrl-C.
    """

    interactive: bool

    def size(self) -> tuple[int, int]:
        """Columns and lines of the screen."""
        ...

    def answer(self, answer: Answer) -> None:
        """Show rows, and how many they are."""
        ...

    def table(self, table: Table, below: Sequence[str] = ()) -> None:
        """Show rows that the shell itself knows, in the form that answers have, and lines about them."""
        ...

    def page(self, page: Page) -> None:
        """Show lines, in a pager where they are many."""
        ...

    def say(self, line: str) -> None:
        """Say something beside the answers."""
        ...

    def fail(self, lines: Sequence[str]) -> None:
        """Say what went wrong."""
        ...

    def lines(self, lines: Sequence[str]) -> None:
        """Show lines as they are, now."""
        ...

    def interrupted(self, told: str = "") -> None:
        """Go on after Ctrl-C, on a line of its own, with a word about what it ended."""
        ...

    def redrawn(self) -> AbstractContextManager[None]:
        """A `with` block in which each page takes the place of the one before."""
        ...

    def redraw(self, page: Page, footer: str) -> None:
        """Show a page in such a block, cut to the screen."""
        ...


class Screen:
    """A terminal."""

    interactive = True

    def __init__(self, preferences: Preferences) -> None:
        """Speak as preferences say at the time."""
        self._preferences = preferences
        self._colours = not os.environ.get("NO_COLOR")
        self._drawn: list[str] = []
        self._kept: list[str] | None = None

    def size(self) -> tuple[int, int]:
        """As the terminal has it now."""
        size = shutil.get_terminal_size()
        return size.columns, size.lines

    def answer(self, answer: Answer) -> None:
        """Rows in whatever form fits, then their count."""
        page = answer_page(answer.table, self.size()[0], self._preferences.expand)
        self.page(page)
        milliseconds = answer.milliseconds if self._preferences.timing else None
        line = count_line(len(answer.table.rows), more=answer.more, milliseconds=milliseconds)
        self.say(f"{line} {MORE_HINT}" if answer.more else line)

    def table(self, table: Table, below: Sequence[str] = ()) -> None:
        """The rows, or that there are none, and the lines under them."""
        rows = answer_page(table, self.size()[0]) if table.rows else Page((), ("none",))
        self.page(Page(rows.head, [*rows.body, *(["", *below] if below else [])]))

    def page(self, page: Page) -> None:
        """Through the pager where the screen is too short."""
        lines = len(page.head) + len(page.body)
        if self._preferences.pager != "off" and lines > self.size()[1] - _LINES_KEPT:
            words = external_pager(self._preferences.pager, environment())
            if words is not None and page_outside(page, words, environment()):
                return
            page = self._paged(page)
        print_lines([*(self._in(_BOLD, line) for line in page.head), *page.body])

    def say(self, line: str) -> None:
        """In faint letters; while a page fills the screen, once that is left."""
        if self._kept is not None:
            self._kept.append(line)
        else:
            for piece in wrapped(printable(line), self.size()[0]):
                print(self._in(_DIM, piece), flush=True)

    def fail(self, lines: Sequence[str]) -> None:
        """The message in red, broken at spaces."""
        print_lines([self._in(_RED, line) for line in fitted(lines, self.size()[0])])

    def _paged(self, page: Page) -> Page:
        kept: list[str] = []
        self._kept = kept
        try:
            return page_inside(page)
        finally:
            self._kept = None
            for line in kept:
                self.say(line)

    def lines(self, lines: Sequence[str]) -> None:
        """At once."""
        print_lines(lines)

    def interrupted(self, told: str = "") -> None:
        """Over the ^C that the terminal shows."""
        print("\r\x1b[K", end="", flush=True)
        if told:
            self.say(told)

    @contextmanager
    def redrawn(self) -> Iterator[None]:
        """On the terminal's other screen; the last page then stays on this one."""
        self._drawn = []
        sys.stdout.write("\x1b[?1049h")
        try:
            yield
        finally:
            sys.stdout.write("\x1b[?1049l")
            print_lines(self._drawn)

    def redraw(self, page: Page, footer: str) -> None:
        """From the top, without a flicker: every line is written over, the rest cleared."""
        columns, rows = self.size()
        room = rows - len(page.head) - 2
        body = list(page.body[:room])
        if len(page.body) > room:
            body[-1] = f"… {len(page.body) - room + 1:,} more lines"
        self._drawn = [*(self._in(_BOLD, line) for line in page.head), *body, self._in(_DIM, footer[:columns])]
        sys.stdout.write("\x1b[H" + "".join(f"{line}\x1b[K\n" for line in self._drawn) + "\x1b[J")
        sys.stdout.flush()

    def _in(self, style: str, line: str) -> str:
        return f"{style}{line}{_PLAIN}" if self._colours and line else line


class Pipe:
    """Answers to stdout in one format, everything else to stderr."""

    interactive = False

    def __init__(self, format: str, preferences: Preferences) -> None:
        """Speak in one of the formats."""
        self._format = format
        self._preferences = preferences

    def size(self) -> tuple[int, int]:
        """What the environment says, else 80 by 24; nothing is cut to it."""
        size = shutil.get_terminal_size()
        return size.columns, size.lines

    def answer(self, answer: Answer) -> None:
        """All rows, and a note where a limit was set and there are more."""
        table = answer.table
        if self._format == Format.JSON:
            require_names(table)
        print_rows(table.columns, table.rows, self._format)
        if answer.more or self._preferences.timing:
            milliseconds = answer.milliseconds if self._preferences.timing else None
            note(count_line(len(table.rows), more=answer.more, milliseconds=milliseconds))

    def table(self, table: Table, below: Sequence[str] = ()) -> None:
        """The rows in the format, uncut; lines would break JSON and CSV, so they go to stderr there."""
        print_rows(table.columns, table.rows, self._format)
        if self._format == Format.TABLE:
            print_lines(below)
        else:
            self.fail(below)

    def page(self, page: Page) -> None:
        """Every line."""
        print_lines(page.lines)

    def say(self, line: str) -> None:
        """On stderr."""
        note(printable(line))

    def fail(self, lines: Sequence[str]) -> None:
        """On stderr."""
        for line in lines:
            note(line)

    def lines(self, lines: Sequence[str]) -> None:
        """At once."""
        print_lines(lines)

    def interrupted(self, told: str = "") -> None:
        """On stderr."""
        if told:
            note(told)

    @contextmanager
    def redrawn(self) -> Iterator[None]:
        """One page after the other."""
        yield

    def redraw(self, page: Page, footer: str) -> None:
        """One page after the other."""
        print_lines([*page.lines, footer])
