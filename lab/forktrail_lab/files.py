"""Reads the files that a user names: never without end, and never waiting for somebody to write."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from forktrail_schemas.errors import InvalidInput, NotFound


def read_file(path: Path, bytes_max: int, *, what: str = "file", hint: str = "give the file itself") -> bytes:
    """The bytes of a regular file; of a larger one the first `bytes_max` and one more, so that the caller can tell.

    Args:
        what: what it should be, for the messages.
        hint: what to do where it can't be read.

    Raises:
        NotFound: there is no such file.
        InvalidInput: it can't be read.
    """
    try:
        # Without O_NONBLOCK, opening a FIFO waits until somebody writes to it.
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as opened:
            if not stat.S_ISREG(os.fstat(opened.fileno()).st_mode):
                raise InvalidInput(f"{path} is not a regular file", hint=hint)
            return opened.read(bytes_max + 1)
    except FileNotFoundError as error:
        raise NotFound(f"there is no {what} {path}", hint=hint) from error
    except OSError as error:
        raise InvalidInput(f"{path} can't be read: {error.strerror}", hint=hint) from error


def whole_file(path: Path, bytes_max: int, *, what: str = "file", hint: str = "give the file itself") -> bytes:
    """All bytes of a regular file; raises as `read_file`, and InvalidInput where it has more than `bytes_max`."""
    data = read_file(path, bytes_max, what=what, hint=hint)
    if len(data) > bytes_max:
        raise InvalidInput(f"{path} is larger than {bytes_max:,} bytes", hint=f"no {what} is so large")
    return data
