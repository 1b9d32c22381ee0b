"""The `forktrail` command: finds the command's module, runs it, turns errors into one line and an exit code.

A command is a module in `forktrail_lab.commands` with `EXAMPLE`, `configure(parser)` and
`run(arguments, settings) -> int`. It is imported only when it is called, so `forktrail --help` stays fast.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol, cast

from forktrail_lab.broker.room import shortage_of
from forktrail_lab.console.output import note
from forktrail_lab.console.work import leave_at_once
from forktrail_lab.entry import EXIT_INTERRUPTED
from forktrail_schemas.errors import ExitCode, ForktrailError, GraphHung, LogUnavailable
from forktrail_schemas.settings import Settings

PROGRAM = "forktrail"
COMMANDS_PACKAGE = "forktrail_lab.commands"


class CommandModule(Protocol):
    """What each module in `forktrail_lab.commands` offers."""

    EXAMPLE: str
    configure: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace, Settings], int]


@dataclass(frozen=True)
class Command:
    """A command's line in the overview and the module that does it."""

    module: str
    summary: str


@dataclass(frozen=True)
class CommandGroup:
    """Commands that belong together in the overview."""

    title: str
    commands: dict[str, Command]


GROUPS: tuple[CommandGroup, ...] = (
    CommandGroup(
        "Set up",
        {
            "broker": Command("broker", "start, stop or look at the local Kafka broker"),
            "demo": Command("demo", "play the evidence story, or a due diligence, as separate processes"),
            "lab": Command("lab", "serve the deliberately vulnerable services on loopback"),
            "key": Command("key", "make signing keys; register and revoke them in a run"),
        },
    ),
    CommandGroup(
        "Runs",
        {
            "run": Command("run", "open, list, show or close a run"),
            "set": Command("set", "change settings of a run"),
            "budget": Command("budget", "show or set the budgets of a run"),
            "revision": Command("revision", "advance the active revision of a run"),
            "schema": Command("schema", "list or show schemas, declare one in a run, publish them for other tools"),
            "tail": Command("tail", "print the events of a run with their verdicts"),
            "dead": Command("dead", "list, show, resend or acknowledge records refused for what they are"),
        },
    ),
    CommandGroup(
        "Evidence",
        {
            "report": Command("report", "file a report on a registered test"),
            "case": Command("case", "list the cases of a run, or show all that one is and rests on"),
            "investigate": Command("investigate", "propose the next test from the graph alone"),
            "approve": Command("approve", "approve a case, so that it may be run, or what a behavior asks"),
            "deny": Command("deny", "refuse a case, or what a behavior asks"),
            "runner": Command("runner", "run approved tests, within bounds, once per approval"),
            "review": Command("review", "accept or reject an observation"),
            "retry": Command("retry", "let an inconclusive test be proposed again"),
            "withdraw": Command("withdraw", "withdraw a finding, or list what would lose support"),
            "evidence": Command("evidence", "print stored evidence, or recompute it with receipts and outcomes"),
            "handoff": Command("handoff", "write or verify the packet that hands a run on"),
        },
    ),
    CommandGroup(
        "Behaviors",
        {
            "behaviors": Command("behaviors", "react to a run with a pack's behaviors, or list those of a run"),
            "executions": Command("executions", "list or show what behaviors did; cancel one, settle a call of it"),
            "approvals": Command("approvals", "list what waits for a person: cases, and what behaviors ask"),
            "policy": Command("policy", "say which changes a reviewer has to accept, or list what holds"),
            "patches": Command("patches", "list, show, accept or reject what was proposed"),
            "pack": Command("pack", "list the installed packs, check one, or begin one of your own"),
            "replay": Command("replay", "run every execution again and compare all it made; certify that"),
            "trace": Command("trace", "print the tree of causes of a run"),
        },
    ),
    CommandGroup(
        "Graph",
        {
            "project": Command("project", "fold a run into its graph, once or as events come, or rebuild the graph"),
            "query": Command("query", "ask a run's graph in Cypher, read-only"),
            "shell": Command("shell", "ask interactively, with completion, history and paging, as the run goes on"),
            "why-not": Command("why_not", "say why a test is not eligible"),
        },
    ),
)
COMMANDS: dict[str, Command] = {name: command for group in GROUPS for name, command in group.commands.items()}


def overview() -> str:
    """The text of `forktrail --help`."""
    lines = [
        f"usage: {PROGRAM} COMMAND [options]",
        "",
        "Agent work as a log of facts that you can fold and question.",
    ]
    for group in GROUPS:
        lines += ["", f"{group.title}:"]
        lines += [f"  {name:<12} {command.summary}" for name, command in group.commands.items()]
    lines += [
        "",
        f"`{PROGRAM} COMMAND --help` explains a command and shows an example.",
        "Exit codes: 0 ok, 1 error, 2 usage, 3 not found, 4 corruption, 5 divergence, 6 difference found, "
        "7 approval required.",
        "",
        "example:",
        f"  {PROGRAM} broker start && {PROGRAM} run list",
    ]
    return "\n".join(lines) + "\n"


def load_command(name: str) -> CommandModule:
    """Import the module of a command.

    Raises:
        ForktrailError: the command needs packages that are not installed.
    """
    with _extras_named(name):
        return cast(CommandModule, importlib.import_module(f"{COMMANDS_PACKAGE}.{COMMANDS[name].module}"))


@contextmanager
def _extras_named(name: str) -> Iterator[None]:
    """Say which extra a command needs, where a package of it is missing."""
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("forktrail"):
            raise
        raise ForktrailError(
            f"`{PROGRAM} {name}` needs more than the producer's packages; {error.name!r} is missing",
            code="extra_missing",
            hint="pip install 'forktrail[all]', or '.[all]' in a checkout",
        ) from error


@contextmanager
def _shortage_told(settings: Settings) -> Iterator[None]:
    """Where the local broker's disk is full, say so: Kafka makes a timeout of it, or ends."""
    try:
        yield
    except LogUnavailable as error:
        ours = not settings.external_kafka and settings.kafka_dir.is_dir()
        if ours and (shortage := shortage_of(settings.kafka_dir)):
            error.hint = f"{shortage}: make room, then `{PROGRAM} broker start`"
        raise


def command_parser(name: str, module: CommandModule) -> argparse.ArgumentParser:
    """The argument parser of one command, with its example at the end of the help."""
    parser = argparse.ArgumentParser(
        prog=f"{PROGRAM} {name}",
        description=COMMANDS[name].summary[0].upper() + COMMANDS[name].summary[1:] + ".",
        epilog=f"example:\n{module.EXAMPLE}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    module.configure(parser)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the `forktrail` command; returns its exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    if not words or words[0] in ("-h", "--help", "help"):
        sys.stdout.write(overview())
        return ExitCode.OK if words else ExitCode.USAGE
    if words[0] == "--version":
        from importlib.metadata import version  # costs 40 ms, which only --version should pay

        print(f"{PROGRAM} {version(PROGRAM)}")
        return ExitCode.OK
    name, rest = words[0], words[1:]
    if name not in COMMANDS:
        print(f"{PROGRAM}: unknown command {name!r} (`{PROGRAM} --help` lists them)", file=sys.stderr)
        return ExitCode.USAGE
    try:
        module = load_command(name)
        arguments = command_parser(name, module).parse_args(rest)
        settings = Settings.from_environment(os.environ)
        with _extras_named(name), _shortage_told(settings):
            return module.run(arguments, settings)
    except GraphHung as error:
        leave_at_once(_told(name, _before_closing(error)))
    except (ForktrailError, OSError, KeyboardInterrupt) as error:
        return _told(name, error)


def _told(name: str, error: BaseException) -> int:
    """Say in a line what ended a command; returns its exit code."""
    if isinstance(error, KeyboardInterrupt):
        return EXIT_INTERRUPTED
    if isinstance(error, BrokenPipeError):  # the reader of our output, `head` say, has gone
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitCode.OK
    if isinstance(error, ForktrailError):
        note(f"{PROGRAM} {name}: {error}")
        return error.exit_code
    # A full disk, a folder that may not be written.
    note(f"{PROGRAM} {name}: {type(error).__name__}: {error}")
    return ExitCode.ERROR


def _before_closing(error: GraphHung) -> BaseException:
    """What ended the command before its graph couldn't be closed; the error itself where nothing did."""
    before: BaseException | None = error
    while isinstance(before, GraphHung):
        before = before.__context__
    return before if isinstance(before, (ForktrailError, KeyboardInterrupt)) else error


if __name__ == "__main__":
    sys.exit(main())
