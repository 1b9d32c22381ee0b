"""`forktrail project`: fold a run into its graph, once or as events come, or rebuild the graph."""

from __future__ import annotations

import argparse
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

from forktrail_lab.console.arguments import add_format, add_run
from forktrail_lab.console.output import counted, note, print_facts, print_result
from forktrail_lab.console.upgrade_report import print_upgrade
from forktrail_lab.console.work import leave_at_once
from forktrail_projectors.aside import prune, set_aside
from forktrail_projectors.content_digest import content_digest
from forktrail_projectors.fold import FOLD_VERSION
from forktrail_projectors.lock import WAIT_SECONDS
from forktrail_projectors.owner.live import Owner, own
from forktrail_projectors.projection import fold_in_memory, open_projection
from forktrail_projectors.upgrade import check_upgrade
from forktrail_projectors.view import RunView
from forktrail_schemas.errors import ExitCode, GraphHung, InvalidInput
from forktrail_schemas.settings import Settings

EXAMPLE = (
    "  forktrail project $RUN\n  forktrail project $RUN --rebuild\n  forktrail project $RUN --follow &\n"
    "  forktrail project $RUN --check-upgrade"
)
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)
# How long a process that owns a graph may take to end in good order.
STOP_SECONDS_MAX = 4.0


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the run, and whether to rebuild or to go on."""
    add_run(parser)
    parser.add_argument("--rebuild", action="store_true", help="make the graph anew from the log; keep the old one")
    parser.add_argument(
        "--follow",
        action="store_true",
        help="own the graph until Ctrl-C or SIGTERM: fold events as they come, and answer all other commands",
    )
    parser.add_argument(
        "--check-upgrade",
        action="store_true",
        help="change nothing; say what of the graph as it stands this version would read or decide otherwise (exit 6)",
    )
    parser.add_argument(
        "--content-digest",
        action="store_true",
        help="add a digest of what the log came to, without offsets, times and keys: two logs that came to the same"
        " have the same one; folds the log in memory once more",
    )
    parser.add_argument(
        "--prune-aside",
        action="store_true",
        help="after folding, delete this run's graphs that were set aside because they didn't fit the log; else they"
        " are kept, as one may be the only trace of records that the log lost",
    )
    add_format(parser)


def run(arguments: argparse.Namespace, settings: Settings) -> int:
    """Fold to the log's end, check the kept digest against one made from every row, and say where the graph stands.

    A graph whose digest is wrong is rebuilt, with a line that says so. With `--follow`, fold on until stopped.

    Raises:
        InvalidInput: `--check-upgrade`, which changes nothing, was asked for together with something else.
        NotFound: no such run; with `--check-upgrade`, no graph of it.
        GraphMismatch: the graph is of another topic, and a rebuild wasn't asked for.
        GraphBusy: with `--follow` or `--check-upgrade`, another process owns the graph already.
        Corruption: the log itself is damaged, or a rebuilt graph doesn't match its digest.
    """
    if arguments.check_upgrade:
        return _check_upgrade(arguments, settings)
    if arguments.follow:
        if arguments.prune_aside:
            raise InvalidInput("--prune-aside comes after folding, and --follow folds on", hint="leave one of them out")
        _follow(arguments, settings)
        return ExitCode.OK
    with open_projection(settings, arguments.run, rebuild=arguments.rebuild, say=note) as view:
        sound = view.sound()
        facts = _facts(view)
    if not sound:
        note(f"the rows of {arguments.run}'s graph don't match its digest")
        with open_projection(settings, arguments.run, rebuild=True, say=note) as view:
            facts = _facts(view)
    if arguments.content_digest:
        facts["content_digest"] = _content_digest(settings, facts)
    print_facts(facts | {"rebuilt": arguments.rebuild or not sound}, arguments.format)
    _tell_aside(settings, arguments.run, pruned=arguments.prune_aside)
    return ExitCode.OK


def _tell_aside(settings: Settings, run: str, *, pruned: bool) -> None:
    """Say what graphs were set aside, and delete them where that is asked for."""
    graphs = set_aside(settings, run)
    if graphs:
        size = f"{counted(len(graphs), 'graph')} set aside, {sum(graph.size for graph in graphs) / 1_000_000:.1f} MB"
        note(f"{size}: deleted" if pruned else f"{size}; --prune-aside deletes that")
    if pruned:
        prune(graphs)


def _check_upgrade(arguments: argparse.Namespace, settings: Settings) -> int:
    if arguments.rebuild or arguments.follow or arguments.content_digest or arguments.prune_aside:
        raise InvalidInput("--check-upgrade changes nothing and goes alone", hint="leave the other options out")
    upgrade = check_upgrade(settings, arguments.run)
    print_upgrade(upgrade, arguments.format)
    return ExitCode.DIFFERENCE if upgrade.differs else ExitCode.OK


def _content_digest(settings: Settings, facts: dict[str, object]) -> str:
    """Of the log up to where the graph stands, whoever owns that."""
    graph, _ = fold_in_memory(settings, str(facts["run"]), int(str(facts["next_offset"])))
    return content_digest(graph.rows(), graph.tables)


def _facts(view: RunView) -> dict[str, object]:
    position = view.position()
    return {
        "run": view.run,
        "next_offset": position.next_offset,
        "end": position.end,
        "state_digest": position.state_digest,
        "log_root": position.log_root,
        "fold_version": FOLD_VERSION,
    }


def _follow(arguments: argparse.Namespace, settings: Settings) -> None:
    name = arguments.run
    with (
        _until_stopped(),
        own(settings, name, rebuild=arguments.rebuild, say=note, wait_seconds=WAIT_SECONDS) as owner,
    ):
        _print_start(owner, arguments.format)
        owner.wait()
    note(f"{name} is let go of")


def _print_start(owner: Owner, format: str) -> None:
    position = owner.position()
    address = str(owner.address) if owner.address else None
    facts: dict[str, object] = {
        "run": owner.run,
        "next_offset": position.next_offset,
        "end": position.end,
        "process": os.getpid(),
        "socket": address,
    }
    answers = f"others are answered on {address}" if address else "others have to wait"
    place = f"offset {position.next_offset} of {position.end}"
    print_result(f"process {os.getpid()} folds {owner.run} live from {place}; {answers}", facts, format)


@contextmanager
def _until_stopped() -> Iterator[None]:
    """End the block in good order at the first signal to stop; later ones don't disturb that.

    Where that takes too long, as with a query that the engine doesn't end, the process ends at once: what is committed
    stays, and whoever opens the graph next goes on from there.
    """

    too_long = threading.Timer(STOP_SECONDS_MAX, _leave, ["it isn't closed yet"])
    too_long.daemon = True

    def stop(number: int, frame: FrameType | None) -> None:
        for name in STOP_SIGNALS:
            signal.signal(name, signal.SIG_IGN)
        too_long.start()
        raise KeyboardInterrupt

    before = {name: signal.signal(name, stop) for name in STOP_SIGNALS}
    try:
        yield
    except KeyboardInterrupt:
        pass
    except GraphHung as error:
        _leave(error.message)
    finally:
        too_long.cancel()
        for name, handler in before.items():
            signal.signal(name, handler)


def _leave(why: str) -> NoReturn:
    note(f"the graph is let go of at once: {why}; nothing that was folded is lost")
    leave_at_once(ExitCode.OK)
