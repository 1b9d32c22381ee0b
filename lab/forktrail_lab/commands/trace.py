"""`forktrail trace`: the tree of causes, from what came from outside down to what followed."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence

from forktrail_lab.console.arguments import add_format, add_run, offset
from forktrail_lab.console.output import Format, note, print_lines, printable, to_json
from forktrail_lab.console.session import open_session
from forktrail_schemas.errors import ExitCode, NotFound
from forktrail_schemas.settings import Settings

EXAMPLE = "  forktrail trace $RUN\n  forktrail trace $RUN --at 12 --depth 3"
LINES_MAX = 1_000

_EVENTS = "MATCH (e:Event) RETURN e.offset, e.type, e.subject, e.actor, e.verdict, e.reason ORDER BY e.offset"
_CAUSED = "MATCH (a:Event)-[:CAUSED]->(b:Event) RETURN a.offset, b.offset ORDER BY a.offset, b.offset"

_Told = tuple[object, ...]


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare run, where to begin, how deep."""
    add_run(parser)
    parser.add_argument("--at", type=offset, metavar="OFFSET", help="the tree below this event (default: all trees)")
    parser.add_argument("--depth", type=offset, metavar="N", help="levels to show (default: all)")
    parser.add_argument(
        "--limit", type=offset, default=LINES_MAX, metavar="N", help=f"lines to show (default: {LINES_MAX:,})"
    )
    add_format(parser)


def run(arguments: argparse.Namespace, settings: Settings) -> int:
    """Print an indented line per event, below what caused it first; other causes are named behind it."""
    with open_session(settings, arguments.run) as session:
        events = {int(str(row[0])): tuple(row[1:]) for row in session.query(_EVENTS).rows}
        pairs = [(int(str(cause)), int(str(effect))) for cause, effect in session.query(_CAUSED).rows]
    if arguments.at is not None and arguments.at not in events:
        raise NotFound(f"{arguments.run} has no offset {arguments.at}", run=arguments.run)
    causes: dict[int, list[int]] = {}
    effects: dict[int, list[int]] = {}
    for cause, effect in pairs:
        causes.setdefault(effect, []).append(cause)
        effects.setdefault(cause, []).append(effect)
    roots = [arguments.at] if arguments.at is not None else [one for one in events if one not in causes]
    shown = list(_tree(roots, causes, effects, arguments.depth, arguments.limit + 1))
    if arguments.format == Format.JSON:
        print(to_json([_as_json(depth, at, events[at], causes.get(at, [])) for depth, at in shown[: arguments.limit]]))
    else:
        print_lines([_line(depth, at, events[at], causes.get(at, [])) for depth, at in shown[: arguments.limit]])
    if len(shown) > arguments.limit:
        note(f"more than {arguments.limit} lines: --at OFFSET shows a part, --depth N the upper levels, --limit N more")
    return ExitCode.OK


def _tree(
    roots: Sequence[int],
    causes: Mapping[int, Sequence[int]],
    effects: Mapping[int, Sequence[int]],
    depth_max: int | None,
    lines_max: int,
) -> Iterator[tuple[int, int]]:
    """Events with their depth, each below the first of its causes; without recursion, since chains may be long."""
    left = [(0, root) for root in reversed(roots)]
    while left and lines_max:
        depth, at = left.pop()
        lines_max -= 1
        yield depth, at
        if depth_max is None or depth < depth_max:
            below = [effect for effect in effects.get(at, ()) if min(causes[effect]) == at]
            left += [(depth + 1, effect) for effect in reversed(below)]


def _line(depth: int, at: int, told: _Told, causes: Sequence[int]) -> str:
    type, subject, actor, verdict, reason = told
    name = str(type).rpartition(".")[2] or "record"
    more = [] if verdict == "valid" else [f"{verdict} {reason}".strip()]
    if len(causes) > 1:
        more.append(f"also from {', '.join(str(cause) for cause in causes if cause != min(causes))}")
    remark = f"  ({'; '.join(more)})" if more else ""
    return printable(f"{'  ' * depth}{at} {name} {subject or ''} by {actor or '-'}{remark}")


def _as_json(depth: int, at: int, told: _Told, causes: Sequence[int]) -> dict[str, object]:
    names = ("type", "subject", "actor", "verdict", "reason")
    return {"offset": at, "depth": depth, "causes": list(causes), **dict(zip(names, told, strict=True))}
