"""`forktrail lab serve`: run the deliberately vulnerable services until told to stop."""

from __future__ import annotations

import argparse
import os
import signal
import threading
from pathlib import Path

from forktrail_lab.console.arguments import add_action, add_actions
from forktrail_lab.console.output import note
from forktrail_lab.exchange.targets import TARGETS_FILE, load_targets, save_targets
from forktrail_lab.registry.file import load_registry, shipped_registry_path
from forktrail_lab.services import LOOPBACK, Lab, is_loopback
from forktrail_schemas.errors import ForktrailError
from forktrail_schemas.settings import Settings

EXAMPLE = "  forktrail lab serve"


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    serve = add_action(
        add_actions(parser, "serve"),
        "serve",
        "serve each asset in each revision on a loopback port of its own, until Ctrl-C or SIGTERM",
        EXAMPLE,
    )
    serve.add_argument("--registry", type=Path, metavar="FILE", help="the registry to serve (default: northwind)")
    serve.add_argument(
        "--targets", type=Path, metavar="FILE", help="where to write the addresses (default: lab/targets.json at home)"
    )
    serve.add_argument(
        "--host", metavar="ADDRESS", help=f"address to listen on (default: {LOOPBACK}, this machine alone)"
    )


def run(arguments: argparse.Namespace, settings: Settings) -> int:
    """Serve until a signal comes; returns the exit code."""
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    registry = load_registry(arguments.registry or shipped_registry_path()).registry
    path: Path = arguments.targets or settings.lab_dir / TARGETS_FILE
    host: str = arguments.host or LOOPBACK
    if not is_loopback(host):
        note(f"warning: {host} is not loopback, and these services are vulnerable on purpose")
    with Lab.start(registry, host=host, beyond_loopback=arguments.host is not None) as lab:
        _warn_of_replacement(path)
        written = save_targets(path, lab.targets(os.getpid()))
        try:
            for service in lab.services:
                print(f"{service.revision}  {service.asset:<20} {service.origin}")
            print(f"targets in {path}; stop with Ctrl-C", flush=True)
            stop.wait()
        finally:
            _remove_if_unchanged(path, written)
    print("stopped", flush=True)
    return 0


def _warn_of_replacement(path: Path) -> None:
    """Say so where another lab that still runs wrote the file about to be replaced."""
    try:
        pid = load_targets(path).pid
    except ForktrailError:
        return
    if pid is not None and _is_running(pid):
        note(f"{path} named the services of process {pid}, which is still running")


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _remove_if_unchanged(path: Path, written: bytes) -> None:
    """Remove the targets file unless another process has replaced it."""
    try:
        if path.read_bytes() == written:
            path.unlink()
    except FileNotFoundError:
        pass
