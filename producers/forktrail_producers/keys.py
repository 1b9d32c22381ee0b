"""Private keys in a folder: one PEM file each, readable by its owner alone."""

from __future__ import annotations

import os
import re
import secrets
import stat
from pathlib import Path

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from forktrail_schemas.errors import InvalidInput, NotFound
from forktrail_schemas.signatures import SigningKey

_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}")
_SUFFIX = ".pem"


class KeyStore:
    """Signing keys by name. The name is also whom the key speaks for, unless it is registered for another holder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def new(self, name: str) -> SigningKey:
        """Make a key and write it with mode 0600, whole and synced or not at all.

        A process killed here leaves at most a file whose name starts with a dot, which nothing reads.

        Raises:
            InvalidInput: the name is malformed or taken.
            OSError: the folder or file can't be written; the name is free still.
        """
        path = self._path(name)
        key = SigningKey.generate()
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        private = Ed25519PrivateKey.from_private_bytes(key.private_bytes())
        text = private.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        temporary = self._folder / f".{name}.{secrets.token_hex(8)}"
        try:
            _write_synced(temporary, text)
            os.link(temporary, path)  # a rename would replace a key of that name
        except FileExistsError:
            raise InvalidInput(
                f"there is a key named {name!r} already", hint="it is left as it is: use it, or choose another name"
            ) from None
        finally:
            temporary.unlink(missing_ok=True)
        _sync_folder(self._folder)
        return key

    def load(self, name: str) -> SigningKey:
        """Read a key.

        Raises:
            NotFound: there is none of that name.
            InvalidInput: others may read the file, or it isn't an Ed25519 key.
        """
        path = self._path(name)
        try:
            mode = stat.S_IMODE(path.stat().st_mode)
            text = path.read_bytes()
        except FileNotFoundError:
            raise NotFound(
                f"there is no key named {name!r} in {self._folder}", hint=f"make it with `forktrail key new {name}`"
            ) from None
        if mode & 0o077:
            raise InvalidInput(f"{path} may be read by others (mode {mode:o})", hint=f"chmod 600 {path}")
        try:
            private = serialization.load_pem_private_key(text, password=None)
        except (ValueError, TypeError):
            raise InvalidInput(f"{path} is not an unencrypted PEM private key") from None
        if not isinstance(private, Ed25519PrivateKey):
            raise InvalidInput(f"{path} is not an Ed25519 key")
        return SigningKey.from_private_bytes(private.private_bytes_raw())

    def names(self) -> list[str]:
        """The names of all keys, sorted."""
        return sorted(path.name.removesuffix(_SUFFIX) for path in self._folder.glob(f"*{_SUFFIX}"))

    def _path(self, name: str) -> Path:
        if not _NAME.fullmatch(name):
            raise InvalidInput(f"{name!r} is no key name", hint="use lower-case letters, digits, '.', '_' and '-'")
        return self._folder / f"{name}{_SUFFIX}"


def _write_synced(path: Path, data: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
