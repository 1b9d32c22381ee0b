"""The embedded graph engine: the one module that imports ladybug or kuzu, opens their files and names their quirks.

Both offer the same Python calls and the same Cypher. One process can load one of them: their native types clash. The
same file is never opened twice in a process: neither engine refuses that, and both lose data by it.
"""

from __future__ import annotations

import importlib
import importlib.util  # kuzu uses it without importing it
import inspect
import re
import shutil
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol, cast

from forktrail_projectors.graph.arrow import ArrowTable
from forktrail_schemas.errors import GraphBusy, GraphDiskFull, GraphError, GraphUnavailable

# Each engine's package, and the extra that installs it.
ENGINES: Mapping[str, str] = {"ladybug": "forktrail[projectors]", "kuzu": "forktrail[kuzu]"}
DEFAULT_ENGINE = "ladybug"

# A cap on cached pages and uncommitted rows of one database, not an allocation.
BUFFER_POOL_BYTES = 512 << 20
# Reserved addresses, not memory; a power of two. The engine's default of 8 TiB fails at the 16th open database.
DATABASE_BYTES_MAX = 1 << 36
# The engine runs CHECKPOINT inside the commit that takes its write-ahead log past this. At its default of 16 MB a
# commit stalls for a second at 100,000 events.
LOG_BYTES_MAX = 256 << 20

# A log up to this size is left for the next opening to replay, at about 0.2 ms a KiB; a CHECKPOINT of 100,000 events
# takes 100 ms however little has changed, and each in a process of its own makes the file grow.
LOG_BYTES_KEPT = 256 << 10
# Less room on the disk may not do for a commit: the largest batch has 16 MB of values, and the engine adds to it.
ROOM_BYTES_MIN = 32 << 20
# A longer log, which a killed process left, goes into the file once an opening has replayed it. Otherwise a process
# that is killed again and again replays ever more: 30 MB take two seconds, LOG_BYTES_MAX almost twenty.
LOG_BYTES_REPLAYED_MAX = 4 << 20

# What the engine lays beside a database file; each is part of it until a clean close.
SIDE_SUFFIXES = (
    ".wal",
    ".wal.checkpoint",
    ".shadow",
    ".tmp",
    ".checkpoint.apply.lock",
    ".checkpoint.intent.lock",
)

# A line of the statement in quotes and a line of carets, which the parser puts under its message.
_DRAWING = re.compile(r'\n"[^\n]*"\n *\^*\s*\Z')

_open_paths: set[Path] = set()
_open_paths_lock = threading.Lock()


class Result(Protocol):
    """The rows of one statement."""

    def get_column_names(self) -> list[str]: ...
    def has_next(self) -> bool: ...
    def get_n(self, count: int) -> list[list[Any]]: ...
    def get_all(self) -> list[list[Any]]: ...
    def get_as_arrow(self, chunk_size: int) -> ArrowTable: ...
    def close(self) -> None: ...


class Plan(Protocol):
    """A statement that the engine has planned; it is rebound to other values, of any width and null or not."""


class Connection(Protocol):
    """A session of a database, with its own transaction and settings."""

    def execute(self, query: str | Plan, parameters: dict[str, Any] | None = None) -> Result | list[Result]: ...
    def prepare(self, query: str, parameters: dict[str, Any] | None = None) -> Plan: ...
    def set_query_timeout(self, timeout_in_ms: int) -> None: ...
    def interrupt(self) -> None: ...
    def close(self) -> None: ...


class _Native(Protocol):
    def close(self) -> None: ...


class Database:
    """An open database. Close it: until then its path can't be opened again by anyone.

    Attributes:
        engine: "ladybug" or "kuzu".
        path: the file, None if the database lies in memory.
        read_only: True if the engine refuses every write.
    """

    def __init__(self, engine: str, path: Path | None, read_only: bool, is_new: bool, native: _Native) -> None:
        self.engine = engine
        self.path = path
        self.read_only = read_only
        self._is_new = is_new
        self._native: _Native | None = native

    def connect(self) -> Connection:
        """Open a session."""
        if self._native is None:
            raise GraphUnavailable("the graph is closed")
        return cast("Connection", _load(self.engine).Connection(self._native))

    def close(self) -> None:
        """Release the file; closing twice is fine. Sessions must be closed first.

        Runs CHECKPOINT if the write-ahead log is long or the file new, so that a new one is whole by itself.

        Raises:
            GraphError: the engine failed; the file is released.
        """
        native, self._native = self._native, None
        if native is None:
            return
        try:
            if self._keeps_log():
                session = _load(self.engine).Connection(native)
                session.execute("CALL force_checkpoint_on_close=false")
                session.close()
            native.close()
        except Exception as error:  # whatever the binding makes of a C++ exception
            raise GraphError(f"the graph didn't close cleanly: {engine_message(error)}") from error
        finally:
            _release(self.path)

    def require_room(self) -> None:
        """See that the disk has room for a commit; the engine ends the process in the midst of one that doesn't fit.

        Raises:
            GraphDiskFull: it hasn't.
        """
        if self.path is None:
            return
        free = shutil.disk_usage(self.path.parent).free
        if free < ROOM_BYTES_MIN:
            raise GraphDiskFull(
                f"the disk of {self.path.name} has {free / 1_000_000:.1f} MB left, and a commit may take "
                f"{ROOM_BYTES_MIN / 1_000_000:.1f} MB",
                hint="make room; the fold goes on from where it stands",
            )

    def log_bytes(self) -> int | None:
        """The size of the write-ahead log beside the file; None where there is none."""
        if self.path is None:
            return None
        log = self.path.with_name(self.path.name + ".wal")
        return log.stat().st_size if log.exists() else None

    def _keeps_log(self) -> bool:
        size = self.log_bytes()
        return size is not None and size <= LOG_BYTES_KEPT and not self.read_only and not self._is_new


def open_database(
    path: Path | None,
    engine: str = DEFAULT_ENGINE,
    *,
    read_only: bool = False,
    bulk: bool = False,
    buffer_pool_bytes: int = BUFFER_POOL_BYTES,
) -> Database:
    """Open a database file, or make it; None keeps it in memory.

    A torn or damaged write-ahead log is an error, never skipped.

    Args:
        bulk: for loading many rows: CHECKPOINT runs only when asked for, and one thread keeps the rows in their order.

    Raises:
        GraphBusy: the file is open, here or in another process.
        GraphUnavailable: the engine isn't installed, or it refuses the file.
    """
    module = _load(engine)
    is_new = path is None or not path.exists()
    if path is not None:
        path = path.resolve()
        _refuse_leftovers(path, read_only)
        _claim(path)
    try:
        options = _options(module, read_only, bulk, buffer_pool_bytes)
        native = module.Database(":memory:" if path is None else str(path), **options)
    except BaseException as error:
        _release(path)
        if isinstance(error, Exception):
            raise _not_opened(error, path) from error
        raise
    return Database(engine, path, read_only, is_new, native)


def engine_message(error: BaseException) -> str:
    """The engine's whole message in one line: without the drawing of the statement, control characters escaped."""
    text = _DRAWING.sub("", str(error)).strip() or type(error).__name__
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def database_files(path: Path) -> tuple[Path, ...]:
    """The database file and whatever lies beside it; move or delete them together."""
    candidates = (path, *(path.with_name(path.name + suffix) for suffix in SIDE_SUFFIXES))
    return tuple(candidate for candidate in candidates if candidate.exists())


def _load(engine: str) -> Any:
    extra = ENGINES.get(engine)
    if extra is None:
        raise GraphUnavailable(f"no graph engine is called {engine!r}", hint=f"use one of {', '.join(ENGINES)}")
    others = [name for name in ENGINES if name != engine and sys.modules.get(name) is not None]
    if others:
        raise GraphUnavailable(
            f"this process has loaded {others[0]}, and {engine} can't be loaded beside it",
            hint="use one graph engine per process",
        )
    try:
        return importlib.import_module(engine)
    except ImportError as error:
        raise GraphUnavailable(f"{engine} can't be imported: {error}", hint=f"pip install '{extra}'") from error


def _options(module: Any, read_only: bool, bulk: bool, buffer_pool_bytes: int) -> dict[str, object]:
    wanted: dict[str, object] = {
        "buffer_pool_size": buffer_pool_bytes,
        "max_db_size": DATABASE_BYTES_MAX,
        "read_only": read_only,
        "max_num_threads": 1 if bulk else 0,
        "auto_checkpoint": not bulk,
        "checkpoint_threshold": LOG_BYTES_MAX,
        "throw_on_wal_replay_failure": True,
        "enable_checksums": True,
    }
    known = inspect.signature(module.Database.__init__).parameters
    return {name: value for name, value in wanted.items() if name in known}


def _refuse_leftovers(path: Path, read_only: bool) -> None:
    if path.exists():
        return
    if read_only:
        raise GraphUnavailable(f"there is no graph at {path.name}")
    if leftovers := database_files(path):
        raise GraphUnavailable(
            f"{leftovers[0].name} has no graph beside it", hint="delete it, then rebuild the graph from its log"
        )


def _not_opened(error: Exception, path: Path | None) -> GraphError:
    message = engine_message(error)
    if "could not set lock" in message.lower():
        return GraphBusy(message, hint="ask the process that holds the graph, or wait until it ends")
    name = "an in-memory graph" if path is None else path.name
    return GraphUnavailable(f"{name} doesn't open: {message}", hint="rebuild the graph from its log")


def _claim(path: Path) -> None:
    with _open_paths_lock:
        if path in _open_paths:
            raise GraphBusy(f"{path.name} is already open in this process", hint="share it, or close it first")
        _open_paths.add(path)


def _release(path: Path | None) -> None:
    if path is not None:
        with _open_paths_lock:
            _open_paths.discard(path)
