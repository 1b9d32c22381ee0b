"""What is asked of a run at rest: of the projector that still runs, of the graph that it leaves, and of the log."""

from __future__ import annotations

import signal
import subprocess
from contextlib import closing
from functools import partial
from pathlib import Path

from chaos.checker import Check, Stream, check_equal, check_log
from chaos.children import END_SECONDS
from chaos.examiner import Examined
from chaos.folds import calm_content_digest, fold_log, read_log
from chaos.rig import REST_SECONDS, Rig
from forktrail_projectors.lock import holder
from forktrail_projectors.owner.client import OwnerView, dial
from forktrail_projectors.owner.messages import OwnerGone
from forktrail_projectors.projection import lock_file
from forktrail_schemas.errors import ForktrailError

STATE_DIGESTS = "state digests agree"
CONTENT_DIGESTS = "the content digest is that of the same events without chaos"
SELF_ENDED = "no process ends by itself, but for want of the broker"
STOPS_WELL = "the projector ends in good order when it is asked to"
# What a process may end of while the broker is away.
_BROKER_AWAY = "log_unavailable:"


def examine(rig: Rig) -> list[Check]:
    """Everything that must hold of a run whose producer is done; stops the projector, and rebuilds the graph."""
    live = ask_projector(rig)
    stopped = _stop_projector(rig)
    rig.say(f"  {live.next_offset:,} records folded; checking")
    left = rig.examiner.examine(rig.graph, rig.folder)
    rebuilt, _ = rig.project("--rebuild")
    log = read_log(rig.settings, rig.run)
    in_memory, content = fold_log(log)
    states = {
        "live": live.kept,
        "live rows": live.recomputed,
        "reopened": left.kept or left.fault,
        "reopened rows": left.recomputed or left.fault,
        "rebuilt": rebuilt,
        "in memory": in_memory,
    }
    contents = {"graph": left.content or left.fault, "log": content, "calm": calm_content_digest(rig.journal.sent)}
    return [
        *check_log([Stream(rig.journal.sent, rig.journal.offsets)], log, left.verdicts),
        check_equal(STATE_DIGESTS, states),
        check_equal(CONTENT_DIGESTS, contents),
        self_ended(rig),
        Check(STOPS_WELL, "SIGTERM", stopped),
    ]


def ask_projector(rig: Rig) -> Examined:
    """What the running projector says of its graph, once it has caught up; nobody else opens the graph instead."""
    found = holder(lock_file(rig.settings, rig.run))
    if found is None or found.socket is None:
        return _unanswered("no projector answers")
    try:
        with closing(_view(rig, found.socket)) as view:
            view.catch_up()
            position = view.position()
            rows = position.state_digest if view.sound() else "the rows give another digest"
            return Examined("", position.next_offset, position.state_digest, rows)
    except OwnerGone:
        return _unanswered("the projector ended")
    except ForktrailError as error:
        return _unanswered(str(error))


def _view(rig: Rig, socket: Path) -> OwnerView:
    return OwnerView(partial(dial, socket), rig.run, rig.settings.bootstrap_servers, wait_seconds=REST_SECONDS)


def _unanswered(fault: str) -> Examined:
    return Examined(fault, 0, fault, fault)


def self_ended(rig: Rig) -> Check:
    """Whether a process ended by itself though the broker wasn't missing."""
    faults = tuple(
        f"{exit.name}: exit {exit.code}: {exit.last_words[-300:]}"
        for exit in (*rig.producer.exits, *rig.projector.exits)
        if exit.code != 1 or _BROKER_AWAY not in exit.last_words
    )
    return Check(SELF_ENDED, f"{rig.producer.lives} producers, {rig.projector.lives} projectors", faults)


def _stop_projector(rig: Rig) -> tuple[str, ...]:
    """What went wrong when it was asked to stop."""
    rig.projector.signal(signal.SIGTERM)
    try:
        code = rig.projector.wait()
    except subprocess.TimeoutExpired:
        rig.projector.close()
        return (f"it still runs {END_SECONDS:.0f} s after SIGTERM",)
    return () if code == 0 else (f"exit {code}: {rig.projector.warned[-300:]}",)
