"""`forktrail behaviors`: react to a run with the behaviors of a pack, and show which a run has."""

from __future__ import annotations

import argparse
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from forktrail_behaviors.clerk import Clerk
from forktrail_behaviors.desk import ThreadedDesk
from forktrail_behaviors.determinism import guard
from forktrail_behaviors.log import KafkaLog
from forktrail_behaviors.mirrored_graph import MirroredGraph
from forktrail_behaviors.pack import Pack
from forktrail_behaviors.position import PositionFile
from forktrail_behaviors.reactor import Reactor
from forktrail_behaviors.registering import to_declare
from forktrail_behaviors.worker import Worker
from forktrail_lab.console.arguments import ADMIN_KEY, add_action, add_actions, add_format, add_key, add_run
from forktrail_lab.console.output import counted, note, print_rows
from forktrail_lab.console.pack_arguments import add_models, add_packs, loaded, with_models
from forktrail_lab.console.session import RunSession, open_session
from forktrail_producers.blobs import BlobStore
from forktrail_producers.keys import KeyStore
from forktrail_projectors.rules.context import text
from forktrail_projectors.state import NodeId, Row
from forktrail_schemas.errors import ExitCode, NotFound
from forktrail_schemas.events import KeyRegistered
from forktrail_schemas.settings import Settings
from forktrail_schemas.signatures import SigningKey

RUN_EXAMPLE = "  forktrail behaviors run $RUN --pack mypack\n  forktrail behaviors run $RUN --pack mypack --until-idle"
LIST_EXAMPLE = "  forktrail behaviors list $RUN"
EXAMPLE = f"{RUN_EXAMPLE}\n{LIST_EXAMPLE}"
WORKER_KEY = "worker"
LIST_COLUMNS = ("name", "version", "registered_at_offset", "running", "completed", "failed", "cancelled", "reacts_to")

_LIST = """
MATCH (b:Behavior)
OPTIONAL MATCH (x:Execution) WHERE x.behavior = b.id
RETURN b.id AS name, b.version, b.registered_offset AS since,
       sum(CASE WHEN x.status = 'running' THEN 1 ELSE 0 END) AS running,
       sum(CASE WHEN x.status = 'completed' THEN 1 ELSE 0 END) AS completed,
       sum(CASE WHEN x.status = 'failed' THEN 1 ELSE 0 END) AS failed,
       sum(CASE WHEN x.status = 'cancelled' THEN 1 ELSE 0 END) AS cancelled,
       b.subscriptions
ORDER BY since
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare run and list."""
    actions = add_actions(parser, "run|list")
    working = add_action(actions, "run", "declare what a pack needs, claim a run, and react to it", RUN_EXAMPLE)
    add_run(working)
    add_packs(working)
    add_models(working)
    add_key(working, ADMIN_KEY)
    working.add_argument(
        "--until-idle", action="store_true", help="end once nothing is left to do but what people decide"
    )
    listing = add_action(actions, "list", "list the behaviors of a run, and how they fared", LIST_EXAMPLE)
    add_run(listing)
    add_format(listing, rows=True)


def run(arguments: argparse.Namespace, settings: Settings) -> int:
    """Do the action."""
    if arguments.action == "list":
        with open_session(settings, arguments.run) as session:
            rows = session.query(_LIST).rows
        print_rows(LIST_COLUMNS, rows, arguments.format)
        return ExitCode.OK
    pack = with_models(loaded(arguments.packs), arguments.models, settings.home, os.environ)
    key = _worker_key(settings)
    with open_session(settings, arguments.run) as session:
        holder = _prepared(session, pack, key, arguments.key)
    _work(arguments, settings, pack, key, holder)
    return ExitCode.OK


class _Rows:
    """A session's rows by key, as far as declarations ask for them."""

    def __init__(self, session: RunSession) -> None:
        self._session = session

    def node(self, table: str, id: NodeId) -> Row | None:
        """The row of a node."""
        return self._session.row(table, id)


def _prepared(session: RunSession, pack: Pack, key: SigningKey, admin: str) -> str:
    """Write what the run lacks: types, behaviors, the worker's key. Returns the name that the key speaks for."""
    missing = to_declare(pack, _Rows(session))
    row = session.row("Key", key.key_id)
    if not missing and row is not None:
        return text(row, "holder")
    person = session.person(admin)
    for cls, fields in missing:
        session.write(cls, person, **fields)  # type: ignore[arg-type]  # none of them is called `causes`
    if missing:
        note(f"{counted(len(missing), 'declaration')} of {pack.name} written to {session.projection.run}")
    if row is not None:
        return text(row, "holder")
    session.write(
        KeyRegistered,
        person,
        key_id=key.key_id,
        public_key=key.public_key,
        holder=WORKER_KEY,
        holder_kind="service",
        roles=["worker"],
    )
    note(f"the key {WORKER_KEY!r} is registered: from here on, a worker's events must be signed")
    return WORKER_KEY


def _worker_key(settings: Settings) -> SigningKey:
    store = KeyStore(settings.keys_dir)
    try:
        return store.load(WORKER_KEY)
    except NotFound:
        return store.new(WORKER_KEY)


def _work(arguments: argparse.Namespace, settings: Settings, pack: Pack, key: SigningKey, holder: str) -> None:
    """React until told to stop, or until nothing is left to do."""
    log = KafkaLog(settings, arguments.run, key)
    blobs = BlobStore(str(settings.blobs_dir))
    reactor = Reactor(MirroredGraph(settings.graph_engine), log.topic_id, pack, blobs, log.record_at)
    clerk = Clerk(arguments.run, holder, blobs)
    position = PositionFile(settings.home / "workers" / f"{arguments.run}.json", log.topic_id)
    worker = Worker(clerk, log, reactor, ThreadedDesk(clerk, log, pack), position)
    guard.install()
    ready = idle = False
    try:
        with _stoppable() as stopping:
            for nothing_left in worker.steps(stopping):
                if worker.epoch and not ready:
                    ready = True
                    note(f"reacting to {arguments.run} (epoch {worker.epoch}); Ctrl-C ends it")
                    _tell_left(reactor)
                if nothing_left and arguments.until_idle:
                    idle = True
                    break
        waiting = counted(len(reactor.open_executions), "execution")
        note(f"{'idle' if idle else 'stopped'} at offset {reactor.next_offset}; {waiting} open")
        if idle and reactor.open_executions:
            note(f"`forktrail approvals list {arguments.run}` shows what waits for people")
    finally:
        reactor.close()
        log.close()


def _tell_left(reactor: Reactor) -> None:
    """Say which executions can't go on, since their behavior's code has changed since they began."""
    for behavior, executions in reactor.foreign_executions.items():
        note(
            f"{counted(len(executions), 'execution')} of an earlier version of {behavior} can't go on without its code:"
            " load that, or end them with `forktrail executions cancel`"
        )


@contextmanager
def _stoppable() -> Iterator[threading.Event]:
    """An event that Ctrl-C and SIGTERM set, instead of ending the process."""
    stopping = threading.Event()

    def stop(number: int, frame: FrameType | None) -> None:
        stopping.set()

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stopping
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
