"""Pages of more lines than the screen has: in the user's own pager, or in this one, whose column names stay on top."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from forktrail_lab.shell.table import Page

if TYPE_CHECKING:
    from prompt_toolkit.application import Application
    from prompt_toolkit.input import Input
    from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
    from prompt_toolkit.layout import Layout
    from prompt_toolkit.output import Output

# Cut long lines, leave when one screen holds all, keep it on the screen, pass colours.
LESS_OPTIONS = "-RSFX"
_HELP = "q leave · space/b page · j/k line · g/G ends · / search · n/N next"


def external_pager(choice: str, environ: Mapping[str, str]) -> list[str] | None:
    """The words of the pager to start, or None for the one in here.

    Args:
        choice: `auto` takes $PAGER if it is set; `builtin` this one; anything else is a command.
    """
    command = environ.get("PAGER", "").strip() if choice == "auto" else "" if choice == "builtin" else choice
    try:
        words = shlex.split(command)
    except ValueError:
        return None
    return words or None


def page_outside(page: Page, words: Sequence[str], environ: Mapping[str, str]) -> bool:
    """Show a page in another program; returns False where it can't be started."""
    try:
        process = subprocess.Popen(words, stdin=subprocess.PIPE, env={"LESS": LESS_OPTIONS, **environ})
    except OSError:
        return False
    assert process.stdin is not None
    text = "\n".join(page.lines) + "\n"
    try:
        process.stdin.write(text.encode("utf-8", "replace"))
        process.stdin.close()
    except (BrokenPipeError, KeyboardInterrupt):  # it was left before it had read all
        pass
    while True:
        try:
            process.wait()
            return True
        except KeyboardInterrupt:  # the pager got it too, and decides what it means
            continue


@dataclass
class View:
    """What is seen of a page: lines `top` to `top + height`, and what is searched for."""

    page: Page
    height: int = 1
    top: int = 0
    pattern: str = ""
    typing: str | None = None
    message: str = ""

    @property
    def count(self) -> int:
        """How many lines can move."""
        return len(self.page.body)

    def visible(self) -> Sequence[str]:
        """The lines that are seen."""
        return self.page.body[self.top : self.top + self.height]

    def move(self, lines: int) -> None:
        """Go on, or back, as far as there are lines."""
        self.go(self.top + lines)

    def go(self, top: int) -> None:
        """Have a line on top, or the last page."""
        self.top = max(0, min(top, self.count - self.height))
        self.message = ""

    def search(self, *, backward: bool = False) -> None:
        """Go to the next line that holds the pattern, in any letter case; says so where none does."""
        step = -1 if backward else 1
        wanted = self.pattern.lower()
        place = self.top + step
        while 0 <= place < self.count:
            if wanted in self.page.body[place].lower():
                self.top, self.message = place, ""
                return
            place += step
        self.message = f"no {'earlier' if backward else 'further'} line has {self.pattern!r}"

    def status(self) -> str:
        """The line at the bottom."""
        if self.typing is not None:
            return f"/{self.typing}"
        last = min(self.top + self.height, self.count)
        return f"lines {self.top + 1:,}-{last:,} of {self.count:,} · {self.message or _HELP}"


def page_inside(page: Page, input: Input | None = None, output: Output | None = None) -> Page:
    """Show a page on the whole screen until it is left; returns what was seen last."""
    view = View(page)
    _application(view, input, output).run()
    return Page(page.head, list(view.visible()))


def environment() -> Mapping[str, str]:
    """The environment in which a pager is started."""
    return os.environ


def _application(view: View, input: Input | None, output: Output | None) -> Application[None]:
    from prompt_toolkit.application import Application

    return Application(layout=_layout(view), key_bindings=_keys(view), full_screen=True, input=input, output=output)


def _layout(view: View) -> Layout:
    from prompt_toolkit.data_structures import Point
    from prompt_toolkit.layout import FormattedTextControl, HSplit, Layout, UIContent, UIControl, Window

    class Body(UIControl):
        """Hands out the visible lines alone, so that a page costs the same at any length."""

        def create_content(self, width: int, height: int) -> UIContent:
            view.height = height
            view.top = max(0, min(view.top, view.count - height))
            lines = view.visible()
            return UIContent(
                get_line=lambda place: [(_style(view, lines[place]), lines[place])] if lines else [],
                line_count=max(1, len(lines)),
                cursor_position=Point(0, 0),
                show_cursor=False,
            )

        def is_focusable(self) -> bool:
            return True

    body = Window(Body(), wrap_lines=False)
    head = [Window(FormattedTextControl([("bold", line)]), height=1, wrap_lines=False) for line in view.page.head]
    status = Window(FormattedTextControl(view.status), height=1, style="reverse")
    return Layout(HSplit([*head, body, status]), focused_element=body)


def _style(view: View, line: str) -> str:
    return "bold" if view.pattern and view.pattern.lower() in line.lower() else ""


def _keys(view: View) -> KeyBindings:
    from prompt_toolkit.filters import Condition
    from prompt_toolkit.key_binding import KeyBindings

    keys = KeyBindings()
    typing = Condition(lambda: view.typing is not None)
    moves = {
        ("j", "down", "enter", "e"): lambda: view.move(1),
        ("k", "up", "y"): lambda: view.move(-1),
        (" ", "f", "pagedown", "c-f"): lambda: view.move(view.height),
        ("b", "pageup", "c-b"): lambda: view.move(-view.height),
        ("d", "c-d"): lambda: view.move(view.height // 2),
        ("u", "c-u"): lambda: view.move(-(view.height // 2)),
        ("g", "home", "<"): lambda: view.go(0),
        ("G", "end", ">"): lambda: view.go(view.count),
        ("n",): lambda: view.search(),
        ("N",): lambda: view.search(backward=True),
    }
    for names, move in moves.items():
        for name in names:
            keys.add(name, filter=~typing)(lambda event, move=move: move())
    for name in ("q", "Q", "c-c"):
        keys.add(name, filter=~typing)(lambda event: event.app.exit())
    keys.add("/", filter=~typing)(lambda event: setattr(view, "typing", ""))
    _search_keys(view, keys, typing)
    return keys


def _search_keys(view: View, keys: KeyBindings, typing: object) -> None:
    """The keys while a pattern is typed."""
    from prompt_toolkit.keys import Keys

    @keys.add(Keys.Any, filter=typing)  # type: ignore[arg-type]  # a filter, whose type is imported late
    def _letter(event: KeyPressEvent) -> None:
        if event.data.isprintable():
            view.typing = (view.typing or "") + event.data

    @keys.add("backspace", filter=typing)  # type: ignore[arg-type]  # as above
    def _back(event: KeyPressEvent) -> None:
        view.typing = view.typing[:-1] if view.typing else None

    @keys.add("enter", filter=typing)  # type: ignore[arg-type]  # as above
    def _search(event: KeyPressEvent) -> None:
        view.pattern, view.typing = view.typing or view.pattern, None
        if view.pattern:
            view.search()

    @keys.add("c-c", filter=typing)  # type: ignore[arg-type]  # as above
    def _leave(event: KeyPressEvent) -> None:
        view.typing = None
