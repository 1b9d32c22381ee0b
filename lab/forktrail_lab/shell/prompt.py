"""The prompt: history, completion, colours, keys, and the toolbar that says where the run stands."""

from __future__ import annotations

import shutil
from pathlib import Path

from prompt_toolkit import PromptSession
from prompt_toolkit.application.current import get_app
from prompt_toolkit.auto_suggest import AutoSuggestFromHistory
from prompt_toolkit.completion import Completer
from prompt_toolkit.enums import EditingMode
from prompt_toolkit.filters import Condition, completion_is_selected, has_focus
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.history import History
from prompt_toolkit.input import Input
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.lexers import PygmentsLexer
from prompt_toolkit.output import Output
from prompt_toolkit.patch_stdout import patch_stdout
from prompt_toolkit.styles import Style

from forktrail_lab.console.output import printable
from forktrail_lab.console.widths import cut, width
from forktrail_lab.shell.completer import ShellCompleter
from forktrail_lab.shell.dispatch import is_finished
from forktrail_lab.shell.history import ShellHistory
from forktrail_lab.shell.lexer import ShellLexer
from forktrail_lab.shell.pulse import Pulse
from forktrail_lab.shell.session import Session

_BUFFER = "DEFAULT_BUFFER"
_RUN_WIDTH_MAX = 24
_REFRESH_SECONDS = 0.5
_MENU_LINES = 8
# In the terminal's own colours, since those that Pygments takes can't be read on a dark ground.
_STYLE = Style.from_dict(
    {
        "pygments.keyword": "bold ansigreen",
        "pygments.keyword.pseudo": "bold ansimagenta",
        "pygments.literal.string": "ansired",
        "pygments.literal.number": "ansimagenta",
        "pygments.name.variable": "ansimagenta",
        "pygments.comment": "ansibrightblack",
        "prompt": "bold",
        "continuation": "fg:ansibrightblack",
        "bottom-toolbar": "noreverse fg:ansigray bg:#303030",
        "toolbar.run": "bold fg:ansiwhite",
        "toolbar.behind": "fg:ansiyellow",
        "toolbar.trouble": "fg:ansibrightred",
        "auto-suggestion": "fg:ansibrightblack",
    }
)


class Prompt:
    """Reads one statement, or command to the shell, at a time."""

    def __init__(
        self,
        session: Session,
        pulse: Pulse,
        history: History | None = None,
        *,
        input: Input | None = None,
        output: Output | None = None,
    ) -> None:
        """Make it for a session.

        Args:
            input, output: where keys come from and the line is drawn; the terminal, if left out.
        """
        self._session = session
        self._pulse = pulse
        self._prompt: PromptSession[str] = PromptSession(
            history=history,
            completer=self._completer(),
            complete_while_typing=True,
            lexer=PygmentsLexer(ShellLexer),
            auto_suggest=AutoSuggestFromHistory(),
            multiline=True,
            prompt_continuation=self._continuation,
            bottom_toolbar=self._toolbar,
            key_bindings=_keys(session),
            editing_mode=self._editing_mode(),
            refresh_interval=_REFRESH_SECONDS,
            reserve_space_for_menu=_MENU_LINES,
            search_ignore_case=True,
            enable_suspend=True,
            enable_open_in_editor=True,
            tempfile_suffix=".cypher",
            style=_STYLE,
            include_default_pygments_style=False,
            input=input,
            output=output,
        )

    def read(self) -> str:
        """What is typed next.

        Raises:
            KeyboardInterrupt: Ctrl-C cleared the input.
            EOFError: Ctrl-D on an empty line.
        """
        self._prompt.editing_mode = self._editing_mode()
        with self._pulse.beating(), patch_stdout(raw=True):
            return self._prompt.prompt([("class:prompt", self._words())])

    def _completer(self) -> Completer:
        return ShellCompleter(self._session.vocabulary)

    def _editing_mode(self) -> EditingMode:
        return EditingMode.VI if self._session.preferences.vi else EditingMode.EMACS

    def _words(self) -> str:
        return f"{cut(printable(self._session.source.run), _RUN_WIDTH_MAX)}> "

    def _continuation(self, columns: int, line: int, wraps: int) -> StyleAndTextTuples:
        return [("class:continuation", "· ".rjust(columns) if not wraps else " " * columns)]

    def _toolbar(self) -> StyleAndTextTuples:
        return toolbar(self._session, self._pulse, shutil.get_terminal_size().columns)


def toolbar(session: Session, pulse: Pulse, columns: int) -> StyleAndTextTuples:
    """The run, its offset and the log's end, how far behind it is and who folds it, or what is wrong; then the keys."""
    standing = pulse.standing
    parts: list[tuple[str, str]] = [("class:toolbar.run", f" {printable(session.source.run)} ")]
    if standing is not None:
        parts.append(("", f" offset {standing.next_offset:,} of {standing.end:,} "))
        if standing.behind:
            parts.append(("class:toolbar.behind", f" {standing.behind:,} behind "))
    room = columns - sum(width(text) for _, text in parts)
    if pulse.trouble:
        return [*parts, ("class:toolbar.trouble", cut(f" {printable(pulse.trouble)}", max(1, room)))]
    owner = f" {standing.owner} " if standing is not None else " … "
    keys = f"F4 {'vi' if session.preferences.vi else 'emacs'}  :help "
    room -= width(owner) + width(keys)
    return [*parts, ("", owner), *([("", " " * room + keys)] if room > 0 else [])]


def open_history(path: Path) -> History:
    """The history kept in a file.

    Raises:
        OSError: the file can't be made.
    """
    return ShellHistory(path)


def _keys(session: Session) -> KeyBindings:
    keys = KeyBindings()
    typing = has_focus(_BUFFER)

    @keys.add("enter", filter=typing & completion_is_selected)
    def _accept(event: KeyPressEvent) -> None:
        """Take the chosen completion, and stay."""
        event.current_buffer.complete_state = None

    @keys.add(
        "enter", filter=typing & ~completion_is_selected & Condition(lambda: is_finished(get_app().current_buffer.text))
    )
    def _run(event: KeyPressEvent) -> None:
        event.current_buffer.validate_and_handle()

    @keys.add("escape", "enter", filter=typing)
    def _another_line(event: KeyPressEvent) -> None:
        event.current_buffer.newline(copy_margin=False)

    @keys.add("f4")
    def _other_keys(event: KeyPressEvent) -> None:
        session.preferences.vi = not session.preferences.vi
        event.app.editing_mode = EditingMode.VI if session.preferences.vi else EditingMode.EMACS

    return keys
