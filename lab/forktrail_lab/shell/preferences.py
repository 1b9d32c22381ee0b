"""What a session is set to: bounds, forms and keys."""

from __future__ import annotations

from dataclasses import dataclass

ROWS_MAX = 10_000


@dataclass
class Preferences:
    """Settings of one session, changed by commands to the shell.

    Attributes:
        expand: when rows become blocks of a line per value: auto, on or off.
        rows_max: how many rows a query brings back; None is all of them.
        timeout_ms: how long the engine may take over a query; None is as long as it takes.
        timing: whether the time that a query took is said.
        pager: auto, builtin, off or a command.
        vi: whether the input line is edited as in vi.
    """

    expand: str = "auto"
    rows_max: int | None = ROWS_MAX
    timeout_ms: int | None = None
    timing: bool = True
    pager: str = "auto"
    vi: bool = False
