"""What this code would read or decide otherwise than the code that made a graph did; nothing is changed to find out.

The graph on disk is read as it stands, whichever version made its tables, and compared with a fold in memory, by this
code, of the same records.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from contextlib import ExitStack, closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from forktrail_projectors.fold import FOLD_VERSION
from forktrail_projectors.graph.engine import database_files
from forktrail_projectors.graph.stored import StoredCursor, StoredGraph
from forktrail_projectors.lock import WAIT_SECONDS
from forktrail_projectors.owner.client import OwnerView
from forktrail_projectors.owner.messages import OwnerGone
from forktrail_projectors.owner.turn import answered_or_locked, owner_of
from forktrail_projectors.projection import fold_in_memory, graph_file, lock_file
from forktrail_projectors.reader import LogReader
from forktrail_projectors.row_diff import DifferenceGroup, RowDifference, grouped, row_differences
from forktrail_projectors.state import EdgeKey, NodeKey, Row
from forktrail_schemas.errors import GraphBusy, GraphMismatch, NotFound
from forktrail_schemas.settings import Settings

EVENT_TABLE = "Event"


@dataclass(frozen=True)
class Decision:
    """A verdict without its words; both are "" where a graph holds none."""

    kind: str
    reason: str


@dataclass(frozen=True)
class VerdictChange:
    """An offset that is decided otherwise."""

    offset: int
    type: str
    before: Decision
    after: Decision


@dataclass(frozen=True)
class Upgrade:
    """How a fold by this code differs from the graph on disk.

    Attributes:
        fold_version: of the code that made the graph.
        code_fold_version: of this code.
        next_offset: the records below it were compared.
        verdicts: by offset.
        rows: by table, kind and columns; those of events are among them.
    """

    run: str
    fold_version: int
    code_fold_version: int
    next_offset: int
    verdicts: tuple[VerdictChange, ...]
    rows: tuple[DifferenceGroup, ...]

    @property
    def differs(self) -> bool:
        """Whether anything would be read or decided otherwise."""
        return bool(self.verdicts or self.rows)


def check_upgrade(settings: Settings, run: str, *, wait_seconds: float = WAIT_SECONDS) -> Upgrade:
    """Compare a run's graph on disk with what this code makes of the same records.

    Holds all rows of both in memory, about 2 KB a row. Beside an owner, a copy of the graph is compared, which is made
    while the fold waits.

    Raises:
        NotFound: there is no such run, or no graph of it on this machine.
        GraphBusy: another process held the graph for `wait_seconds`, or its owner changed the file while it was copied.
        GraphMismatch: the graph is of another topic, or ahead of its log.
        GraphUnavailable: the file doesn't open, or holds no graph of a run.
        LogUnavailable: Kafka doesn't answer.
    """
    path = graph_file(settings, run)
    with LogReader(settings.bootstrap_servers, run) as reader:
        topic_id, end = reader.topic_id, reader.end()
    if not path.exists():
        raise NotFound(
            f"there is no graph of {run} to compare with", hint=f"`forktrail project {run}` makes one", run=run
        )
    with ExitStack() as stack:
        lock = lock_file(settings, run)
        ask = partial(owner_of, lock, run, settings.bootstrap_servers, wait_seconds=wait_seconds)
        view = answered_or_locked(stack, lock, ask, wait_seconds)
        if view is not None:
            path = _copy(stack, view, path)
        stored = StoredGraph.open(path, settings.graph_engine)
        stack.callback(stored.close)
        cursor = stored.cursor()
        _check_log(run, cursor, topic_id, end)
        graph, _ = fold_in_memory(settings, run, cursor.next_offset)
        return compared(run, cursor, stored.rows(), graph.rows())


def compared(
    run: str,
    cursor: StoredCursor,
    before: Iterable[tuple[NodeKey | EdgeKey, Row]],
    after: Iterable[tuple[NodeKey | EdgeKey, Row]],
) -> Upgrade:
    """How rows that this code folded (`after`) differ from those of a stored graph (`before`)."""
    differences = list(row_differences(before, after))
    changes = [change for change in map(_verdict_change, differences) if change is not None]
    return Upgrade(
        run,
        cursor.fold_version,
        FOLD_VERSION,
        cursor.next_offset,
        tuple(sorted(changes, key=lambda change: change.offset)),
        tuple(grouped(differences)),
    )


def _copy(stack: ExitStack, view: OwnerView, path: Path) -> Path:
    """A copy of a graph that its owner holds still meanwhile, for as long as `stack` stands; lets go of the owner.

    Raises:
        GraphBusy: the owner didn't hold it still for so long.
    """
    with closing(view):
        try:
            view.catch_up(0)
            files = database_files(path)
            before = [_state(file) for file in files]
            folder = Path(stack.enter_context(TemporaryDirectory(prefix="forktrail-")))
            for file in files:
                shutil.copy(file, folder)
            moved = before != [_state(file) for file in database_files(path)]
        except (OwnerGone, FileNotFoundError):
            moved = True
    if moved:
        raise GraphBusy(
            f"the graph of {view.run} was changed by {view.owner} while it was copied",
            code="graph_moved",
            hint="try again",
            run=view.run,
        )
    return folder / path.name


def _state(file: Path) -> tuple[str, int, int, int]:
    """What is another once a file was written to or replaced."""
    found = file.stat()
    return file.name, found.st_ino, found.st_size, found.st_mtime_ns


def _check_log(run: str, cursor: StoredCursor, topic_id: str, end: int) -> None:
    """Refuse to compare a graph with a log that it wasn't folded from."""
    hint = f"forktrail project {run} --rebuild"
    if cursor.topic_id != topic_id:
        raise GraphMismatch(f"the graph of {run} was folded from another topic of that name", hint=hint, run=run)
    if cursor.next_offset > end:
        raise GraphMismatch(
            f"the graph of {run} is at offset {cursor.next_offset}, ahead of its log, which ends at {end}",
            hint=hint,
            run=run,
        )


def _verdict_change(difference: RowDifference) -> VerdictChange | None:
    key = difference.key
    if not isinstance(key, NodeKey) or key.table != EVENT_TABLE:
        return None
    before, after = _decision(difference.before), _decision(difference.after)
    if before == after:
        return None
    named = (difference.after or difference.before or {}).get("type")
    return VerdictChange(int(key.id), str(named or ""), before, after)


def _decision(row: Row | None) -> Decision:
    row = row or {}
    return Decision(str(row.get("verdict") or ""), str(row.get("reason") or ""))
