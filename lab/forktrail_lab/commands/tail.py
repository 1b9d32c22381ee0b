"""`forktrail tail`: print the events of a run with their verdicts."""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Sequence

from forktrail_lab.console.arguments import add_run, offset
from forktrail_lab.console.event_lines import EventLines, event_row
from forktrail_lab.console.output import Format, note, print_lines, time_text, to_json, write_csv
from forktrail_projectors.projection import open_projection
from forktrail_projectors.reader import LogReader
from forktrail_schemas.errors import ExitCode
from forktrail_schemas.settings import Settings

EXAMPLE = "  forktrail tail $RUN\n  forktrail tail $RUN --from 12 --follow --format json | jq .verdict"
PAGE_EVENTS = 5_000
_PAGE = """
MATCH (e:Event) WHERE e.offset >= $start AND e.offset < $until
RETURN e.offset, e.id, e.type, e.occurred_at, e.actor_kind, e.actor, e.subject, e.verdict, e.reason, e.detail
ORDER BY e.offset
"""
_FIELDS = ("offset", "id", "type", "occurred_at", "actor_kind", "actor", "subject", "verdict", "reason", "detail")
_SHOWN = ("offset", "occurred_at", "type", "actor", "subject", "verdict", "reason", "detail")


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the run, where to begin, and whether to go on."""
    add_run(parser)
    parser.add_argument("--from", dest="start", type=offset, default=0, metavar="OFFSET", help="(default: 0)")
    parser.add_argument("--follow", action="store_true", help="go on as events come, until Ctrl-C")
    parser.add_argument(
        "--format",
        choices=[format.value for format in Format],
        default="table",
        help="json: one object a line",
    )


def run(arguments: argparse.Namespace, settings: Settings) -> int:
    """Print events from an offset to the log's end, or for ever.

    The graph is owned only while a batch is folded and printed, so others get at it in between.

    Raises:
        NotFound: no such run.
    """
    printer = _Printer(settings, arguments.run, arguments.format, arguments.start)
    printer.print_new()
    if arguments.follow:
        with LogReader(settings.bootstrap_servers, arguments.run) as reader:
            for batch in reader.follow(min(printer.next_offset, reader.end())):
                if batch and batch[-1].offset >= printer.next_offset:
                    printer.print_new()
    return ExitCode.OK


class _Printer:
    """Prints each event once, in order."""

    def __init__(self, settings: Settings, run: str, format: str, start: int) -> None:
        self._settings = settings
        self._run = run
        self._format = format
        self._header = True
        self._lines = EventLines(shutil.get_terminal_size().columns if sys.stdout.isatty() else None)
        self.next_offset = start

    def print_new(self) -> None:
        """Fold to the log's end and print what wasn't printed yet; nothing is printed while the graph is owned."""
        end = None
        while end is None or self.next_offset < end:
            events, log_end = self._next_page()
            end = log_end if end is None else end
            self._print(events)
            self.next_offset += len(events)
            if not events:
                return

    def _next_page(self) -> tuple[list[dict[str, object]], int]:
        with open_projection(self._settings, self._run, say=note) as projection:
            bounds = {"start": self.next_offset, "until": self.next_offset + PAGE_EVENTS}
            found = projection.graph.query(_PAGE, bounds)
            return [dict(zip(_FIELDS, row, strict=True)) for row in found.rows], projection.next_offset

    def _print(self, events: Sequence[dict[str, object]]) -> None:
        if self._format == Format.JSON:
            print_lines([to_json(event | {"time": time_text(event["occurred_at"])}) for event in events])
            return
        if self._format == Format.CSV:
            rows = [(*event.values(), time_text(event["occurred_at"])) for event in events]
            write_csv(sys.stdout, (*_FIELDS, "time"), rows, header=self._header)
            self._header = False
        else:
            print_lines(self._lines.lines([event_row(*(event[name] for name in _SHOWN)) for event in events]))
