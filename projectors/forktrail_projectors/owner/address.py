"""Where an owner's socket lies: in a folder that only its user can enter, under a path that fits into an address."""

from __future__ import annotations

import hashlib
import os
import socket
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from forktrail_schemas.errors import GraphError

# An address holds 108 bytes on Linux and 104 on macOS, with the zero at its end.
PATH_BYTES_MAX = 103
CLIENTS_WAITING_MAX = 128
_NAME_DIGITS = 20


@contextmanager
def listening(folder: Path, name: str) -> Iterator[tuple[socket.socket, Path]]:
    """A listening socket and its path, for the length of a `with` block; for whoever holds the graph's lock.

    It lies in `folder`; where that makes the path too long, or the folder's drive takes no socket, in the user's own
    folder among the temporary files. What a killed owner left in its place is removed.

    Raises:
        GraphError: a socket can be made in neither (code `no_socket`).
    """
    sock, path = _made(folder, name)
    try:
        yield sock, path
    finally:
        sock.close()
        path.unlink(missing_ok=True)


def _made(folder: Path, name: str) -> tuple[socket.socket, Path]:
    short = hashlib.sha256(os.fsencode(folder / name)).hexdigest()[:_NAME_DIGITS]
    own = f"forktrail-{os.getuid()}"
    faults = []
    for path in (folder / f"{name}.sock", *(Path(temporary) / own / short for temporary in _temporary_folders())):
        try:
            return _bound(path), path
        except OSError as error:
            faults.append(f"{path.parent}: {error.strerror or error}")
    raise GraphError(
        f"no socket can be made ({'; '.join(faults)})", code="no_socket", hint="set TMPDIR to a local folder"
    )


def _temporary_folders() -> list[str]:
    return list(dict.fromkeys((tempfile.gettempdir(), "/tmp")))


def _bound(path: Path) -> socket.socket:
    encoded = os.fsencode(path)
    if len(encoded) > PATH_BYTES_MAX or b"\n" in encoded:
        raise OSError("its path is too long for a socket's address")
    _make_private(path.parent)
    path.unlink(missing_ok=True)
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        sock.bind(encoded)
        path.chmod(0o600)
        sock.listen(CLIENTS_WAITING_MAX)
    except BaseException:
        sock.close()
        raise
    return sock


def _make_private(folder: Path) -> None:
    """Make a folder that nobody else can enter, or see that it is one: anybody can make one among temporary files."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
        raise OSError("the folder is another user's")
    if stat.S_IMODE(found.st_mode) & 0o077:
        folder.chmod(0o700)
