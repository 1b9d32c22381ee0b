"""Large bytes by their SHA-256: written and synced before an event names them, checked whenever they are read."""

from __future__ import annotations

import hashlib
import os
import re
import secrets
from pathlib import Path
from typing import Protocol, cast

from fsspec.core import url_to_fs  # type: ignore[import-untyped]  # fsspec ships no types
from fsspec.implementations.local import LocalFileSystem  # type: ignore[import-untyped]  # the same

from forktrail_schemas.errors import Corruption, EvidenceMissing, ForktrailError, InvalidInput

SHA256_HEX = re.compile("[0-9a-f]{64}")
FILE_MODE = 0o600
FOLDER_MODE = 0o700


class _FileSystem(Protocol):
    """The part of an fsspec file system that is used here."""

    def makedirs(self, path: str, exist_ok: bool) -> None: ...
    def pipe_file(self, path: str, value: bytes) -> None: ...
    def cat_file(self, path: str) -> bytes: ...
    def mv(self, path1: str, path2: str) -> None: ...
    def exists(self, path: str) -> bool: ...


class BlobStore:
    """Bytes at `<root>/<first two hex digits>/<SHA-256>`, in a folder or any store that fsspec knows.

    What `put` has returned is there and durable: a local file is written under a temporary name, synced, renamed, and
    its folder synced. Any number of processes may put the same bytes at once. A process killed in `put` leaves at
    most a file whose name starts with a dot, which nothing reads.
    """

    def __init__(self, root: str) -> None:
        """Name the store; nothing is read or made yet.

        Args:
            root: a folder's path, taken literally, or a URL such as `s3://bucket/prefix`. What has no `://`, or
                starts with `/`, is a path.

        Raises:
            InvalidInput: fsspec knows no such kind of URL.
            ForktrailError: the package for that kind isn't installed.
        """
        try:
            file_system, path = _file_system_and_path(root)
        except ImportError as error:
            raise ForktrailError(
                f"a blob store at {root} needs a package: {error}", code="extra_missing", hint="install it with pip"
            ) from error
        except ValueError as error:
            raise InvalidInput(
                f"{root!r} is no place for a blob store: {error}", hint="give a folder or an fsspec URL"
            ) from error
        self._local = isinstance(file_system, LocalFileSystem)
        self._file_system = file_system
        self._root = path.rstrip("/")

    def put(self, data: bytes) -> str:
        """Store bytes and return their SHA-256 in hex; bytes already there are left, or repaired if they are wrong.

        Raises:
            ForktrailError: the store refused them (`blob_store_unavailable`); nothing may name the digest then.
        """
        digest = hashlib.sha256(data).hexdigest()
        try:
            if self._local:
                self._put_local(Path(self._path(digest)), data)
            else:
                self._put_remote(self._path(digest), data)
        except OSError as error:
            raise ForktrailError(
                f"can't store {digest}: {error}", code="blob_store_unavailable", hint="make room or check the store"
            ) from error
        return digest

    def get(self, sha256: str) -> bytes:
        """Return the bytes of that digest, checked against it.

        Raises:
            InvalidInput: `sha256` is not 64 hex digits in lower case.
            EvidenceMissing: the store has none.
            Corruption: the store has others under that name.
            ForktrailError: the store doesn't answer (`blob_store_unavailable`).
        """
        path = self._path(sha256)
        try:
            data = self._file_system.cat_file(path)
        except FileNotFoundError as error:
            raise EvidenceMissing(
                f"no blob {sha256} in {self._root}", hint="copy it there from where it was written"
            ) from error
        except OSError as error:
            raise ForktrailError(
                f"can't read {sha256}: {error}", code="blob_store_unavailable", hint="check the store"
            ) from error
        if hashlib.sha256(data).hexdigest() != sha256:
            raise Corruption(f"the bytes stored as {sha256} are others", hint="restore them from another copy")
        return data

    def has(self, sha256: str) -> bool:
        """Whether something is stored under that digest; only `get` checks what.

        Raises:
            InvalidInput: `sha256` is not 64 hex digits in lower case.
        """
        return self._file_system.exists(self._path(sha256))

    def _path(self, sha256: str) -> str:
        if SHA256_HEX.fullmatch(sha256) is None:
            raise InvalidInput(f"{sha256!r} is not a SHA-256 in hex", hint="give 64 lower-case hex digits")
        return f"{self._root}/{sha256[:2]}/{sha256}"

    def _put_local(self, path: Path, data: bytes) -> None:
        _make_folder(path.parent)
        if not (path.is_file() and path.read_bytes() == data):
            temporary = path.parent / f".{path.name}.{secrets.token_hex(8)}"
            try:
                _write_synced(temporary, data)
                temporary.replace(path)
            except BaseException:
                temporary.unlink(missing_ok=True)
                raise
        _sync_folder(path.parent)  # also where another process renamed the file, and perhaps hasn't synced yet

    def _put_remote(self, path: str, data: bytes) -> None:
        if self._file_system.exists(path) and self._file_system.cat_file(path) == data:
            return
        folder, _, name = path.rpartition("/")
        temporary = f"{folder}/.{name}.{secrets.token_hex(8)}"
        self._file_system.makedirs(folder, exist_ok=True)
        self._file_system.pipe_file(temporary, data)
        self._file_system.mv(temporary, path)


def _file_system_and_path(root: str) -> tuple[_FileSystem, str]:
    """Where a store is; fsspec alone would read `a::b` in a path as a chain of URLs, and `~` as the user's home."""
    if "://" not in root or root.startswith("/"):
        return cast(_FileSystem, LocalFileSystem()), str(Path(root).absolute())
    file_system, path = url_to_fs(root)
    return cast(_FileSystem, file_system), str(path)


def _write_synced(path: Path, data: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, FILE_MODE)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _make_folder(folder: Path) -> None:
    """Make a folder and those above it, each durable in the one that holds it."""
    if folder.is_dir():
        return
    _make_folder(folder.parent)
    folder.mkdir(mode=FOLDER_MODE, exist_ok=True)
    _sync_folder(folder.parent)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
